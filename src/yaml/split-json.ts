import { DOCUMENT_OCTETS_MAX, type DocumentRange } from './split-documents.ts'

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
  #isAtEnd = false
  #at: number
  #line = 1
  #count = 0

  private constructor(octets: Buffer, itemsStart: number) {
    this.#octets = octets
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
    let depth = 0
    let a = 0x811c9dc5
    let b = 0
    let at = start
    for (; at < octets.length; at++) {
      const c = octets[at]!
      if (c === QUOTE) {
        const end = endOfString(octets, at + 1, at + DOCUMENT_OCTETS_MAX)
        for (; at < end; at++) {
          a = Math.imul(a ^ octets[at]!, 0x01000193)
          b = (b + a) | 0
        }
      } else if (c === BRACE_OPEN || c === BRACKET_OPEN) depth++
      else if (depth === 0 && (c === COMMA || c === BRACKET_CLOSE || c === BRACE_CLOSE)) break
      else if (c === BRACE_CLOSE || c === BRACKET_CLOSE) depth--
      a = Math.imul(a ^ c, 0x01000193)
      b = (b + a) | 0
      if (at - start > DOCUMENT_OCTETS_MAX) {
        this.largeLine = line
        return undefined
      }
    }
    this.#skipTo(at)
    this.#count++
    if (octets[at] === COMMA) this.#at++
    // Makes the next call end the list.
    else this.#count = 0
    if (at >= octets.length || octets[at] === BRACE_CLOSE) this.#finish()
    return {
      start,
      end: at,
      line,
      digestA: a | 0,
      digestB: b | 0,
      isAscii: false,
      part: 'item',
    }
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

  #skipTo(end: number): void {
    const octets = this.#octets
    for (let i = this.#at; i < end; i++) if (octets[i] === NEWLINE) this.#line++
    this.#at = end
  }
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
