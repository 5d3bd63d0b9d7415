/** Splits a stream of text into lines. Drops lines that are too long, and counts them. */
export class BoundedLines {
  readonly #lengthMax: number
  readonly #onLine: (line: string) => void
  #rest = ''
  #isDropping = false
  dropped = 0

  constructor(lengthMax: number, onLine: (line: string) => void) {
    this.#lengthMax = lengthMax
    this.#onLine = onLine
  }

  /** True if the stream ended with a whole line. */
  get isWhole(): boolean {
    return this.#rest === '' && !this.#isDropping
  }

  add(text: string): void {
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      this.#end(this.#rest + text.slice(start, end))
      this.#rest = ''
      start = end + 1
    }
    this.#rest += text.slice(start)
    if (this.#rest.length <= this.#lengthMax) return
    this.#rest = ''
    this.#isDropping = true
  }

  #end(line: string): void {
    if (this.#isDropping || line.length > this.#lengthMax) this.dropped++
    else this.#onLine(line)
    this.#isDropping = false
  }
}
