import { readFileSync } from 'node:fs'

/** Name of the program, as start-up lines and `version.bind` show it. */
export const PROGRAM = 'Sextant'

/** Version of the package. The same file is two folders above the sources and the build. */
export const VERSION: string = readVersion()

function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const manifest: unknown = JSON.parse(text)
  const known = typeof manifest === 'object' && manifest !== null && 'version' in manifest
  return known && typeof manifest.version === 'string' ? manifest.version : '0.0.0'
}
