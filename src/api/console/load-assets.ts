import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { InputError } from '../../base/errors.ts'

/** A file of the console, in memory. */
export interface Asset {
  readonly contentType: string
  readonly identity: Buffer
  readonly gzip: Buffer
  /** The part of entity tags that both encodings share. */
  readonly digest: string
}

const PAGE = 'index.html'
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

/** Reads the built files of the console, by name; '' = the page. Throws InputError if they are missing. */
export function loadAssets(folder: string): ReadonlyMap<string, Asset> {
  const assets = new Map<string, Asset>()
  try {
    for (const name of readdirSync(folder)) {
      const contentType = CONTENT_TYPES[extname(name)]
      if (contentType === undefined) continue
      const identity = readFileSync(join(folder, name))
      const digest = createHash('sha256').update(identity).digest('base64url').slice(0, 22)
      const asset = { contentType, identity, gzip: gzipSync(identity, { level: 9 }), digest }
      assets.set(name === PAGE ? '' : name, asset)
    }
  } catch (error) {
    throw missing(folder, error)
  }
  if (!assets.has('')) throw missing(folder)
  return assets
}

function missing(folder: string, cause?: unknown): InputError {
  const message = `the web console is not built: ${folder} has no ${PAGE}; run \`npm run build\``
  return new InputError(undefined, message, cause)
}
