/**
 * A text pattern: `*` matches any run of characters, also an empty one. A match takes time
 * proportional to the square of the text's length at most, because each part is searched once, and
 * only if the text is long enough for all parts.
 */
export class StarPattern {
  readonly #first: string
  /** Between the first `*` and the last one. */
  readonly #middle: readonly string[]
  /** Behind the last `*`; undefined = the pattern has none. */
  readonly #last: string | undefined
  /** Length of the shortest text that matches. */
  readonly #lengthMin: number
  /** The longest text without `*` that every match contains. */
  readonly longestPart: string

  constructor(pattern: string) {
    const parts = pattern.split(/\*+/)
    this.#lengthMin = parts.reduce((sum, { length }) => sum + length, 0)
    this.longestPart = parts.reduce((a, b) => (b.length > a.length ? b : a))
    const [first = '', ...middle] = parts
    this.#first = first
    this.#last = middle.pop()
    this.#middle = middle
  }

  matches(text: string): boolean {
    const last = this.#last
    if (last === undefined) return text === this.#first
    if (text.length < this.#lengthMin) return false
    if (!text.startsWith(this.#first) || !text.endsWith(last)) return false
    const end = text.length - last.length
    let at = this.#first.length
    for (const part of this.#middle) {
      const found = text.indexOf(part, at)
      if (found === -1 || found + part.length > end) return false
      at = found + part.length
    }
    return true
  }
}
