import {
  DOCUMENT_OCTETS_MAX,
  type DocumentRange,
  HASH_START,
  HIGH_BITS,
  hasNewline,
} from './split-documents.ts'

const NEWLINE = 0x0a
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BRACKET_OPEN = 0x5b
const BACKSLASH = 0x5c
const BRACKET_CLOSE = 0x5d
const BRACE_OPEN = 0x7b
const BRACE_CLOSE = 0x7d
const ITEMS = Buffer.from('items')

/**
 * Finds the items of a JSON object that has a key `items` with an array. It returns them one by
 * one, so that a list of any length is read in parts. It finds boundaries only; the parser checks
 * that the octets between them are JSON.
 */
export class JsonSplitter {
  /** The text up to the items: `{"kind": "List", "items": [`. */
  readonly head: string
  /** The text after the items, such as `]}`, and its first line: set after the last item. */
  tail = ''
  tailLine = 1
  /** Line of an item, or of the rest, that is longer than DOCUMENT_OCTETS_MAX; 0 = none. */
  largeLine = 0
  readonly #octets: Buffer
  readonly #words: DataView
  #isAtEnd = false
  #at: number
  #line = 1
  #count = 0

  private constructor(octets: Buffer, itemsStart: number) {
    this.#octets = octets
    this.#words = new DataView(octets.buffer, octets.byteOffset, octets.length)
    this.head = octets.toString('utf8', 0, itemsStart)
    this.#at = 0
    this.#skipTo(itemsStart)
  }

  /** Returns undefined if the first octets have no such key: then the text is one document. */
  static open(octets: Buffer): JsonSplitter | undefined {
    const start = findItems(octets, Math.min(octets.length, DOCUMENT_OCTETS_MAX))
    return start === -1 ? undefined : new JsonSplitter(octets, start)
  }

  /** Returns the octets of the next item; undefined at the end. If `largeLine` is set, the rest is not read. */
  next(): DocumentRange | undefined {
    if (this.#isAtEnd) return undefined
    const octets = this.#octets
    const spaceEnd = skipSpace(octets, this.#at)
    if (spaceEnd === -1) {
      this.largeLine = this.#line
      return undefined
    }
    this.#skipTo(spaceEnd)
    if (octets[this.#at] === BRACKET_CLOSE && this.#count === 0) return this.#finish()
    const start = this.#at
    const line = this.#line
    const at = endOfItem(octets, start)
    if (at === -1) {
      this.largeLine = line
      return undefined
    }
    const range = this.#hashTo(at)
    this.#count++
    if (octets[at] === COMMA) this.#at++
    // Makes the next call end the list.
    else this.#count = 0
    if (at >= octets.length || octets[at] === BRACE_CLOSE) this.#finish()
    return range
  }

  #finish(): undefined {
    const octets = this.#octets
    this.#isAtEnd = true
    if (octets.length - this.#at > DOCUMENT_OCTETS_MAX) {
      this.largeLine = this.#line
      return undefined
    }
    this.tail = octets.toString('utf8', this.#at)
    this.tailLine = this.#line
    return undefined
  }

  /** Goes to `end`, and returns the octets up to there. As `DocumentSplitter`, by four octets where possible. */
  #hashTo(end: number): DocumentRange {
    const octets = this.#octets
    const words = this.#words
    const start = this.#at
    const line = this.#line
    let a = HASH_START
    let b = 0
    let seen = 0
    let at = start
    while (at < end) {
      const isWord = at + 4 <= end
      const word = isWord ? words.getInt32(at, true) : octets[at]!
      const next = isWord ? at + 4 : at + 1
      if (!isWord || hasNewline(word)) this.#countLines(at, next)
      a = Math.imul(a ^ word, 0x01000193)
      a ^= a >>> 15
      b = (b + a) | 0
      seen |= word
      at = next
    }
    this.#at = end
    const isAscii = (seen & HIGH_BITS) === 0
    return { start, end, line, digestA: a | 0, digestB: b, isAscii, part: 'item' }
  }

  #skipTo(end: number): void {
    this.#countLines(this.#at, end)
    this.#at = end
  }

  #countLines(start: number, end: number): void {
    const octets = this.#octets
    for (let i = start; i < end; i++) if (octets[i] === NEWLINE) this.#line++
  }
}

/**
 * Returns the offset of the octet that ends the value which starts at `start`; the end of the octets if
 * none does. -1 = the value is longer than a document may be.
 */
function endOfItem(octets: Buffer, start: number): number {
  let depth = 0
  let at = start
  for (; at < octets.length; at++) {
    if (at - start > DOCUMENT_OCTETS_MAX) return -1
    const c = octets[at]!
    if (c <= SPACE) continue
    if (c === QUOTE) at = endOfString(octets, at + 1, at + DOCUMENT_OCTETS_MAX)
    else if (c === BRACE_OPEN || c === BRACKET_OPEN) depth++
    else if (depth === 0 && (c === COMMA || c === BRACKET_CLOSE || c === BRACE_CLOSE)) return at
    else if (c === BRACE_CLOSE || c === BRACKET_CLOSE) depth--
  }
  return at - start > DOCUMENT_OCTETS_MAX ? -1 : Math.min(at, octets.length)
}

/**
 * Returns the offset after the `[` of the outermost object's items; -1 = not in the first `length`
 * octets.
 */
function findItems(octets: Buffer, length: number): number {
  let depth = 0
  for (let at = 0; at < length; at++) {
    const c = octets[at]!
    if (c === BRACE_OPEN || c === BRACKET_OPEN) depth++
    else if (c === BRACE_CLOSE || c === BRACKET_CLOSE) depth--
    else if (c === QUOTE) {
      const start = at + 1
      at = endOfString(octets, start, length)
      if (depth !== 1 || octets.compare(ITEMS, 0, ITEMS.length, start, at) !== 0) continue
      const colon = skipSpace(octets, at + 1)
      if (octets[colon] !== COLON) continue
      const value = skipSpace(octets, colon + 1)
      if (octets[value] === BRACKET_OPEN) return value + 1
    }
  }
  return -1
}

/**
 * Returns the offset of the quote that ends a string which began before `at`; at most `max` or the
 * end.
 */
function endOfString(octets: Buffer, at: number, max: number): number {
  const end = Math.min(octets.length, max)
  for (let i = at; i < end; i++) {
    if (octets[i] === BACKSLASH) i++
    else if (octets[i] === QUOTE) return i
  }
  return end
}

/**
 * Returns the offset of the first octet from `from` on that is not white space; -1 = beyond the
 * maximum of a document.
 */
function skipSpace(octets: Buffer, from: number): number {
  const limit = Math.min(octets.length, from + DOCUMENT_OCTETS_MAX + 1)
  let at = from
  while (at < limit && (octets[at] === SPACE || (octets[at]! >= 9 && octets[at]! <= 13))) at++
  return at - from > DOCUMENT_OCTETS_MAX ? -1 : at
}
