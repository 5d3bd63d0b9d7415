import { InputError } from '../../base/errors.ts'
import { memoryLimit } from '../../base/memory-limit.ts'
import type { ZoneText } from './text.ts'

/** Smaller files are loaded whatever the limit is. */
const OCTETS_MIN = 1024 * 1024
/**
 * Octets of a record while it is loaded: 70 of its numbers, and 80 in the image. A million short records took 200 MiB.
 * A good zone must not be refused, so this is rather too little.
 */
const RECORD_OCTETS = 150
/** The text, and its names and rdata. */
const TEXT_COPIES = 2
const NEWLINE = 0x0a
const SEMICOLON = 0x3b
const MIB = 2 ** 20

/**
 * Returns an error if loading this file needs more than `memoryMax` octets of memory, as far as its size and number of
 * lines show. The kernel would end the process, and the version in force with it.
 */
export function memoryProblem(
  { file, text }: ZoneText,
  memoryMax: number | 'left' = Number.POSITIVE_INFINITY,
): InputError | undefined {
  // To ask the system takes 150 µs.
  if (text.length < OCTETS_MIN) return undefined
  const octetsMax = memoryMax === 'left' ? memoryLeft() : memoryMax
  const needed = countLines(text) * RECORD_OCTETS + text.length * TEXT_COPIES
  if (needed <= octetsMax) return undefined
  const [need, has] = [needed, Math.max(0, octetsMax)].map((octets) => Math.round(octets / MIB))
  const message = `loading the zone needs about ${need} MiB of memory, and ${has} MiB are left`
  return new InputError({ file, line: 1 }, `${message}; give the server more, or split the zone`)
}

/** Returns the number of lines except empty ones and comments. */
function countLines(text: Uint8Array): number {
  let lines = 0
  let previous = NEWLINE
  for (let at = 0; at < text.length; at++) {
    const c = text[at]!
    if (previous === NEWLINE && c !== NEWLINE && c !== SEMICOLON) lines++
    previous = c
  }
  return lines
}

/** Returns the octets of memory that this process may still take. */
function memoryLeft(): number {
  return memoryLimit() - process.memoryUsage.rss()
}
