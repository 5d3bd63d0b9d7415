/** One document of a stream, as octets `start` to `end` of the file. */
export interface DocumentRange {
  readonly start: number
  readonly end: number
  /** Line of its first octet, from 1. */
  readonly line: number
  /** Two hashes of its octets: equal for equal documents, different for different ones but by chance. */
  readonly digestA: number
  readonly digestB: number
  readonly isAscii: boolean
}

const HASH_START = 0x811c9dc5
const NEWLINE = 0x0a
const DASH = 0x2d
const DOT = 0x2e
const PERCENT = 0x25
/** The high bits of the octets of a word, set in none that is ASCII. */
const HIGH_BITS = 0x80808080

/**
 * Finds the documents of a YAML stream in `octets` 0..`length`-1: each starts at its `---` line, or at
 * the beginning. Undefined where the stream has directives (`%`) or document ends (`...`), which need
 * a complete parser. One pass, no strings.
 */
export function splitDocuments(octets: Uint8Array, length: number): DocumentRange[] | undefined {
  const ranges: DocumentRange[] = []
  let start = 0
  let startLine = 1
  let a = HASH_START
  let b = 0
  let seen = 0
  let at = 0
  const words = new DataView(octets.buffer, octets.byteOffset, length)
  for (let line = 1; at < length; line++) {
    const first = octets[at]!
    if (first === PERCENT || isMarker(octets, at, DOT)) return undefined
    if (first === DASH && at > start && isMarker(octets, at, DASH)) {
      ranges.push(range(start, at, startLine, a, b, seen))
      start = at
      startLine = line
      a = HASH_START
      b = 0
      seen = 0
    }
    // The loop that all octets go through, four at a time up to those with the line's end: FNV-1a, and
    // the sum of its states as the second hash. The shift takes what is high in a word into all of it.
    while (at + 4 <= length) {
      const word = words.getInt32(at, true)
      if (hasNewline(word)) break
      a = Math.imul(a ^ word, 0x01000193)
      a ^= a >>> 15
      b = (b + a) | 0
      seen |= word
      at += 4
    }
    let octet = -1
    while (at < length && octet !== NEWLINE) {
      octet = octets[at++]!
      a = Math.imul(a ^ octet, 0x01000193)
      b = (b + a) | 0
      seen |= octet
    }
  }
  if (length > start) ranges.push(range(start, length, startLine, a, b, seen))
  return ranges
}

/** True if one of the four octets is a newline: the borrow reaches the high bit of one that is zero. */
function hasNewline(word: number): boolean {
  const differing = word ^ 0x0a0a0a0a
  return ((differing - 0x01010101) & ~differing & HIGH_BITS) !== 0
}

function range(
  start: number,
  end: number,
  line: number,
  digestA: number,
  digestB: number,
  seen: number,
): DocumentRange {
  return {
    start,
    end,
    line,
    digestA: digestA | 0,
    digestB: digestB | 0,
    isAscii: (seen & HIGH_BITS) === 0,
  }
}

/** True for three of `octet` followed by white space or the end. */
function isMarker(octets: Uint8Array, at: number, octet: number): boolean {
  if (octets[at] !== octet || octets[at + 1] !== octet || octets[at + 2] !== octet) return false
  const next = octets[at + 3]
  return next === undefined || next === NEWLINE || next === 0x20 || next === 0x09 || next === 0x0d
}
