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

const NEWLINE = 0x0a
const DASH = 0x2d
const DOT = 0x2e
const PERCENT = 0x25

/**
 * Finds the documents of a YAML stream in `octets` 0..`length`-1: each starts at its `---` line, or at
 * the beginning. Undefined where the stream has directives (`%`) or document ends (`...`), which need
 * a complete parser. One pass, no strings.
 */
export function splitDocuments(octets: Uint8Array, length: number): DocumentRange[] | undefined {
  const ranges: DocumentRange[] = []
  let start = 0
  let startLine = 1
  let line = 1
  let a = 0x811c9dc5
  let b = 0x2c1b3c6d
  let seen = 0
  for (let i = 0, lineStart = 0; i < length; i++) {
    const octet = octets[i]!
    if (i === lineStart) {
      if (octet === PERCENT || isMarker(octets, i, DOT)) return undefined
      if (octet === DASH && i > start && isMarker(octets, i, DASH)) {
        ranges.push(range(start, i, startLine, a, b, seen))
        start = i
        startLine = line
        a = 0x811c9dc5
        b = 0x2c1b3c6d
        seen = 0
      }
    }
    a = Math.imul(a ^ octet, 0x01000193)
    b = Math.imul(b ^ octet, 0x9e3779b1) ^ (b >>> 15)
    seen |= octet
    if (octet === NEWLINE) {
      lineStart = i + 1
      line++
    }
  }
  if (length > start) ranges.push(range(start, length, startLine, a, b, seen))
  return ranges
}

function range(
  start: number,
  end: number,
  line: number,
  digestA: number,
  digestB: number,
  seen: number,
): DocumentRange {
  return { start, end, line, digestA: digestA | 0, digestB: digestB | 0, isAscii: seen < 0x80 }
}

/** True for three of `octet` followed by white space or the end. */
function isMarker(octets: Uint8Array, at: number, octet: number): boolean {
  if (octets[at] !== octet || octets[at + 1] !== octet || octets[at + 2] !== octet) return false
  const next = octets[at + 3]
  return next === undefined || next === NEWLINE || next === 0x20 || next === 0x09 || next === 0x0d
}
