import { readFileSync } from 'node:fs'
import { PROGRAM, VERSION } from '../base/version.ts'

/** The last two lines of start-up and of `-version`: `Sextant-1.2.3`, then `linux/amd64, v20, COMMIT`. */
export function versionLines(): string[] {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  return [
    `${PROGRAM}-${VERSION}`,
    `${process.platform}/${arch}, node ${process.version}, ${commit()}`,
  ]
}

/** The commit that the package was built from: `gitHead` of its package.json, which releases set. */
function commit(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const manifest: unknown = JSON.parse(text)
  const known = typeof manifest === 'object' && manifest !== null && 'gitHead' in manifest
  return known && typeof manifest.gitHead === 'string' ? manifest.gitHead.slice(0, 9) : 'dev'
}
