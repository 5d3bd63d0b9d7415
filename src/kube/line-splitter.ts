const NEWLINE = 0x0a

/** Splits a stream of octets into lines. Data after the last newline is not a line. */
export class LineSplitter {
  readonly #octetsMax: number
  #parts: Uint8Array[] = []
  #octets = 0

  /** `octetsMax`: longest line. */
  constructor(octetsMax: number) {
    this.#octetsMax = octetsMax
  }

  /**
   * The lines that `chunk` completes; undefined = a line is too long, and the stream can't be used
   * any more.
   */
  push(chunk: Uint8Array): string[] | undefined {
    const lines: string[] = []
    let start = 0
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start)
      const part = chunk.subarray(start, end === -1 ? chunk.length : end)
      if (part.length > 0) this.#parts.push(part)
      this.#octets += part.length
      if (this.#octets > this.#octetsMax) return undefined
      if (end === -1) return lines
      if (this.#octets > 0) lines.push(Buffer.concat(this.#parts, this.#octets).toString('utf8'))
      this.#parts = []
      this.#octets = 0
      start = end + 1
    }
  }
}
