import { closeSync, openSync } from 'node:fs'
import { InputError } from '../base/errors.ts'
import { readAtMost } from '../base/read.ts'
import { digestBlocks } from '../corefile/digest.ts'
import type { Environment } from '../corefile/environment.ts'
import { FILE_OCTETS_MAX } from '../corefile/importer.ts'
import {
  type ParseOptions,
  parseCorefile,
  type ServerBlock,
  type UnsetVariable,
} from '../corefile/parser.ts'
import type { CorefileView } from '../plugin/directive.ts'

/** The origin of a Corefile. */
export type CorefileSource =
  | { readonly kind: 'file'; readonly path: string }
  /** Errors contain `name`, and imports are relative to it. */
  | { readonly kind: 'text'; readonly name: string; readonly text: string }

/** How to read the text of a Corefile. */
interface CorefileOptions {
  readonly env: Environment
  readonly directiveNames: readonly string[]
  readonly declaredNames?: ParseOptions['declaredNames']
  readonly warn: (message: string) => void
}

/** The Corefile that replaces one without server blocks, as in CoreDNS. */
export function defaultCorefile(dnsPort: number): CorefileSource {
  return { kind: 'text', name: 'Corefile', text: `.:${dnsPort} {\nwhoami\nlog\n}\n` }
}

/** Returns the text of a Corefile. Throws InputError if a file can't be read. */
function readCorefile(source: CorefileSource): { name: string; text: string } {
  if (source.kind === 'text') return source
  let text: Buffer | undefined
  try {
    const descriptor = openSync(source.path, 'r')
    try {
      text = readAtMost(descriptor, FILE_OCTETS_MAX)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    throw unreadable(source.path, error instanceof Error ? error.message : String(error), error)
  }
  return { name: source.path, text: limitCorefile(source.path, text) }
}

/** Returns the text of a Corefile that `readAtMost` read. Throws InputError if it exceeds the limit. */
export function limitCorefile(name: string, octets: Buffer | undefined): string {
  if (octets === undefined) throw unreadable(name, `it is larger than ${FILE_OCTETS_MAX} octets`)
  return octets.toString('utf8')
}

function unreadable(name: string, reason: string, cause?: unknown): InputError {
  const message = `cannot read Corefile ${name}: ${reason}`
  return new InputError(undefined, message, cause)
}

/** Reads and parses a Corefile. One without any block becomes the default. Throws InputError. */
export function loadCorefile(
  source: CorefileSource,
  dnsPort: number,
  options: CorefileOptions & { readonly onUnknown?: (error: InputError) => void },
): { blocks: ServerBlock[]; view: CorefileView } {
  const unset: UnsetVariable[] = []
  const blocks = parseSource(source, dnsPort, { ...options, onUnset: (one) => unset.push(one) })
  const loadedDigest = digestBlocks(blocks)
  const view: CorefileView = {
    path: source.kind === 'file' ? source.path : '',
    loadedDigest,
    unset,
    digest: () => {
      if (source.kind === 'text') return loadedDigest
      // Accepts any directive: the reload reports an unknown one, and counts as failed.
      return digestBlocks(parseSource(source, dnsPort, { env: options.env, warn: () => {} }))
    },
  }
  return { blocks, view }
}

function parseSource(
  source: CorefileSource,
  dnsPort: number,
  options: ParseOptions,
): ServerBlock[] {
  const { name, text } = readCorefile(source)
  const blocks = parseCorefile(text, name, options)
  if (blocks.length > 0) return blocks
  options.warn?.(`${name}: no server block with a zone; serving .:${dnsPort} { whoami log }`)
  const fallback = readCorefile(defaultCorefile(dnsPort))
  return parseCorefile(fallback.text, fallback.name, options)
}
