const QUOTE = 0x22
const BRACKET_OPEN = 0x5b
const BACKSLASH = 0x5c
const BRACKET_CLOSE = 0x5d
const BRACE_OPEN = 0x7b
const BRACE_CLOSE = 0x7d
const SPACES: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20])

/**
 * Splits a stream of octets into the JSON objects that follow each other in it: JSON-RPC over a
 * stream has no other framing (RFC 7047 section 4). It finds boundaries only; the parser checks
 * that the octets between them are JSON.
 */
export class JsonObjectSplitter {
  readonly #octetsMax: number
  readonly #depthMax: number
  /** The start of an object that has not ended. */
  #parts: Uint8Array[] = []
  #octets = 0
  #depth = 0
  #isInString = false
  #isEscaped = false

  /** `octetsMax`: longest object. `depthMax`: nested objects and arrays. */
  constructor(octetsMax: number, depthMax: number) {
    this.#octetsMax = octetsMax
    this.#depthMax = depthMax
  }

  /**
   * Calls `take` with the text of each object that `chunk` completes. Returns '' or a fault; after a
   * fault, the stream cannot be used any more.
   */
  push(chunk: Uint8Array, take: (text: string) => void): string {
    let start = this.#depth === 0 ? -1 : 0
    for (let at = 0; at < chunk.length; at++) {
      const octet = chunk[at]!
      if (this.#depth === 0) {
        if (SPACES.has(octet)) continue
        if (octet !== BRACE_OPEN) return 'received data that is not a JSON object'
        start = at
      }
      this.#scan(octet)
      if (this.#depth > this.#depthMax) return `received JSON nested deeper than ${this.#depthMax}`
      if (this.#depth > 0) continue
      this.#parts.push(chunk.subarray(start, at + 1))
      this.#octets += at + 1 - start
      if (this.#octets > this.#octetsMax) return this.#tooLong
      take(Buffer.concat(this.#parts, this.#octets).toString('utf8'))
      this.#parts = []
      this.#octets = 0
      start = -1
    }
    if (start === -1) return ''
    this.#parts.push(chunk.subarray(start))
    this.#octets += chunk.length - start
    return this.#octets > this.#octetsMax ? this.#tooLong : ''
  }

  get #tooLong(): string {
    return `received a message longer than ${this.#octetsMax} octets`
  }

  #scan(octet: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (octet === BACKSLASH) this.#isEscaped = true
      else if (octet === QUOTE) this.#isInString = false
    } else if (octet === QUOTE) this.#isInString = true
    else if (octet === BRACE_OPEN || octet === BRACKET_OPEN) this.#depth++
    else if (octet === BRACE_CLOSE || octet === BRACKET_CLOSE) this.#depth--
  }
}
