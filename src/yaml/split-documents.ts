/** One document of a stream, or a part of a list, as octets `start` to `end` of the file. */
export interface DocumentRange {
  readonly start: number
  readonly end: number
  /** Line of its first octet, from 1. */
  readonly line: number
  /**
   * Two hashes of its octets: equal for equal documents, and different for different documents
   * except by chance.
   */
  readonly digestA: number
  readonly digestB: number
  readonly isAscii: boolean
  /**
   * `head`, `item`, `tail`: a document whose key `items` has a sequence is split into its items, so
   * that a list of any length is read in parts. The head and the tail surround the items; the tail
   * may be missing.
   */
  readonly part: 'whole' | 'head' | 'item' | 'tail'
}

/** Larger documents, and larger items of lists, are refused: Kubernetes stores no larger object either. */
export const DOCUMENT_OCTETS_MAX = 1_572_864

/** Why `DocumentSplitter.next` has no further range. */
type SplitEnd =
  | { readonly kind: 'end' }
  /** The stream has directives (`%`), or text behind a `...`, which need a complete parser. */
  | { readonly kind: 'directive' }
  /** The document that starts at `line` is longer than DOCUMENT_OCTETS_MAX. */
  | { readonly kind: 'large'; readonly line: number }

export const HASH_START = 0x811c9dc5
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const TAB = 0x09
const HASH = 0x23
const DASH = 0x2d
const DOT = 0x2e
const PERCENT = 0x25
/** The high bit of each octet of a word; all are 0 in ASCII. */
export const HIGH_BITS = 0x80808080
const ITEMS = Buffer.from('items:')

/**
 * Finds the documents of a YAML stream one by one. Each starts at its `---` line, after a `...`
 * line, or at the beginning. One pass, without strings.
 */
export class DocumentSplitter {
  /** Why `next` returned undefined. */
  ended: SplitEnd = { kind: 'end' }
  readonly #octets: Uint8Array
  readonly #length: number
  readonly #words: DataView
  #at = 0
  #line = 1
  /** Part of the next range. */
  #part: DocumentRange['part'] = 'whole'
  /** True if the last line that starts in the first column is `items:`. */
  #isAtItems = false

  constructor(octets: Uint8Array, length: number) {
    this.#octets = octets
    this.#length = length
    this.#words = new DataView(octets.buffer, octets.byteOffset, length)
  }

  /** Returns the next range; undefined at the end, for the reason in `ended`. */
  next(): DocumentRange | undefined {
    const octets = this.#octets
    const words = this.#words
    const length = this.#length
    let at = this.#at
    let line = this.#line
    const start = at
    const startLine = line
    let a = HASH_START
    let b = 0
    let seen = 0
    // One octet above the maximum of a document: the rest of a longer line is not read.
    const limit = Math.min(length, start + DOCUMENT_OCTETS_MAX + 1)
    for (; at < length; line++) {
      if (at - start > DOCUMENT_OCTETS_MAX) return this.#giveUp(startLine)
      const first = octets[at]!
      if (first !== SPACE && first !== NEWLINE && first !== HASH && first !== CARRIAGE_RETURN) {
        if (first === PERCENT) {
          this.ended = { kind: 'directive' }
          return undefined
        }
        if (first === DOT && isMarker(octets, at, DOT)) {
          const next = lineEnd(octets, at, length)
          if (next - at > DOCUMENT_OCTETS_MAX) return this.#giveUp(line)
          if (!isBlankLine(octets, at + 3, next)) {
            this.ended = { kind: 'directive' }
            return undefined
          }
          const part = this.#part
          this.#go(next, line + 1, 'whole')
          // Empty documents are returned too: the caller counts them and pauses in between.
          return range(start, at, startLine, a, b, seen, part)
        }
        if (at > start) {
          const next = this.#partAt(at)
          if (next !== undefined) {
            const part = this.#part
            this.#go(at, line, next)
            const own = next === 'item' && part === 'whole' ? 'head' : part
            return range(start, at, startLine, a, b, seen, own)
          }
        }
        this.#isAtItems = this.#part === 'whole' && isItemsKey(octets, at, limit)
      }
      // The main loop over all octets, four at a time up to the octets with the newline. FNV-1a,
      // and the sum of its states as the second hash. The shift mixes the high bits of a word into
      // all of it.
      while (at + 4 <= limit) {
        const word = words.getInt32(at, true)
        if (hasNewline(word)) break
        a = Math.imul(a ^ word, 0x01000193)
        a ^= a >>> 15
        b = (b + a) | 0
        seen |= word
        at += 4
      }
      let octet = -1
      while (at < limit && octet !== NEWLINE) {
        octet = octets[at++]!
        a = Math.imul(a ^ octet, 0x01000193)
        b = (b + a) | 0
        seen |= octet
      }
    }
    if (at - start > DOCUMENT_OCTETS_MAX) return this.#giveUp(startLine)
    const part = this.#part
    this.#go(length, line, 'whole')
    this.ended = { kind: 'end' }
    return length > start ? range(start, length, startLine, a, b, seen, part) : undefined
  }

  #giveUp(line: number): undefined {
    this.ended = { kind: 'large', line }
    return undefined
  }

  #go(at: number, line: number, part: DocumentRange['part']): void {
    this.#at = at
    this.#line = line
    this.#part = part
    this.#isAtItems = false
  }

  /**
   * Returns the part that begins at `at`, at the start of a line; undefined = the range continues.
   */
  #partAt(at: number): DocumentRange['part'] | undefined {
    const octets = this.#octets
    if (octets[at] === DASH) {
      if (isMarker(octets, at, DASH)) return 'whole'
      const isItem = isBlank(octets[at + 1])
      if (isItem && (this.#isAtItems || this.#part === 'item')) return 'item'
    }
    return this.#part === 'item' ? 'tail' : undefined
  }
}

/**
 * True if one of the four octets is a newline. The borrow sets the high bit of an octet that is
 * zero.
 */
export function hasNewline(word: number): boolean {
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
  part: DocumentRange['part'],
): DocumentRange {
  return {
    start,
    end,
    line,
    digestA: digestA | 0,
    digestB: digestB | 0,
    isAscii: (seen & HIGH_BITS) === 0,
    part,
  }
}

/** True for `octet` three times, followed by white space or the end. */
function isMarker(octets: Uint8Array, at: number, octet: number): boolean {
  if (octets[at] !== octet || octets[at + 1] !== octet || octets[at + 2] !== octet) return false
  return isBlank(octets[at + 3])
}

/** True for white space and for the end. */
function isBlank(octet: number | undefined): boolean {
  return (
    octet === undefined ||
    octet === NEWLINE ||
    octet === SPACE ||
    octet === TAB ||
    octet === CARRIAGE_RETURN
  )
}

/** True at `items:` if the rest of the line is empty or a comment. */
function isItemsKey(octets: Uint8Array, at: number, length: number): boolean {
  for (let i = 0; i < ITEMS.length; i++) if (octets[at + i] !== ITEMS[i]) return false
  let end = at + ITEMS.length
  while (end < length && (octets[end] === SPACE || octets[end] === CARRIAGE_RETURN)) end++
  if (end >= length || octets[end] === NEWLINE) return true
  return octets[end] === HASH && octets[end - 1] === SPACE
}

function isBlankLine(octets: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    if (octets[i] === HASH) return true
    if (!isBlank(octets[i])) return false
  }
  return true
}

/** Returns the offset after the newline of the line at `at`. */
function lineEnd(octets: Uint8Array, at: number, length: number): number {
  const end = octets.indexOf(NEWLINE, at)
  return end === -1 || end >= length ? length : end + 1
}
