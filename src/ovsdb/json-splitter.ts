const QUOTE = 0x22
const BRACKET_OPEN = 0x5b
const BACKSLASH = 0x5c
const BRACKET_CLOSE = 0x5d
const BRACE_OPEN = 0x7b
const BRACE_CLOSE = 0x7d
const NO_OCTETS = new Uint8Array()
const SPACES: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20])

/**
 * Splits a stream of octets into the JSON objects that follow each other in it: JSON-RPC over a
 * stream has no other framing (RFC 7047 section 4). It finds boundaries only; the parser checks
 * that the octets between them are JSON.
 */
export class JsonObjectSplitter {
  readonly #octetsMax: number
  readonly #depthMax: number
  /**
   * The start of an object that has not ended, with room for more. A list of chunks would take many
   * times their octets if the server sends small packets.
   */
  #held = NO_OCTETS
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
      const end = chunk.subarray(start, at + 1)
      if (this.#octets + end.length > this.#octetsMax) return this.#tooLong
      take(this.#octets === 0 ? textOf(end) : this.#textWith(end))
      start = -1
    }
    if (start === -1) return ''
    const rest = chunk.subarray(start)
    if (this.#octets + rest.length > this.#octetsMax) return this.#tooLong
    this.#append(rest)
    return ''
  }

  /** Returns the text of the object whose last octets are `end`. */
  #textWith(end: Uint8Array): string {
    this.#append(end)
    const text = textOf(this.#held.subarray(0, this.#octets))
    this.#held = NO_OCTETS
    this.#octets = 0
    return text
  }

  #append(octets: Uint8Array): void {
    const length = this.#octets + octets.length
    if (length > this.#held.length) {
      const longer = new Uint8Array(Math.min(2 * length, this.#octetsMax))
      longer.set(this.#held.subarray(0, this.#octets))
      this.#held = longer
    }
    this.#held.set(octets, this.#octets)
    this.#octets = length
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

function textOf(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString('utf8')
}
