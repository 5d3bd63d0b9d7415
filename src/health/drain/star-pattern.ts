/**
 * A text pattern: `*` matches any run of characters, also an empty one. A match takes time
 * proportional to the product of both lengths at most, because each part is searched once.
 */
export class StarPattern {
  readonly #parts: readonly string[]

  constructor(pattern: string) {
    this.#parts = pattern.split('*')
  }

  /** The longest text without `*` that every match contains. */
  get longestPart(): string {
    return this.#parts.reduce((longest, part) => (part.length > longest.length ? part : longest))
  }

  matches(text: string): boolean {
    const [first = '', ...rest] = this.#parts
    const last = rest.pop()
    if (last === undefined) return text === first
    if (text.length < first.length + last.length) return false
    if (!text.startsWith(first) || !text.endsWith(last)) return false
    const end = text.length - last.length
    let at = first.length
    for (const part of rest) {
      const found = text.indexOf(part, at)
      if (found === -1 || found + part.length > end) return false
      at = found + part.length
    }
    return true
  }
}
