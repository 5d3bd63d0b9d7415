/** Collects octets in network order; grows as needed. */
export class OctetWriter {
  // Node.js allocates longer arrays outside the heap, which takes several times as long.
  #bytes = new Uint8Array(64)
  #length = 0

  get length(): number {
    return this.#length
  }

  u8(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  u16(value: number): void {
    this.u8(value >>> 8)
    this.u8(value)
  }

  u32(value: number): void {
    this.u16(value >>> 16)
    this.u16(value)
  }

  put(octets: Uint8Array): void {
    this.#reserve(octets.length)
    this.#bytes.set(octets, this.#length)
    this.#length += octets.length
  }

  /** Overwrites two octets written before. */
  patchU16(offset: number, value: number): void {
    this.#bytes[offset] = value >>> 8
    this.#bytes[offset + 1] = value
  }

  /** Removes everything from `length` on. */
  cutTo(length: number): void {
    this.#length = Math.min(length, this.#length)
  }

  /** Returns a copy of the written octets. */
  octets(): Uint8Array {
    return this.#bytes.slice(0, this.#length)
  }

  #reserve(count: number): void {
    const needed = this.#length + count
    if (needed <= this.#bytes.length) return
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
    grown.set(this.#bytes)
    this.#bytes = grown
  }
}

/** Reads `bytes` from `at` up to, but not including, `end`. */
export class OctetReader {
  readonly bytes: Uint8Array
  at: number
  readonly end: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  get remaining(): number {
    return this.end - this.at
  }

  /** Returns the next `count` octets as a view. Returns undefined if fewer remain, and moves to the end. */
  take(count: number): Uint8Array | undefined {
    if (count > this.remaining) {
      // A later, shorter read must not succeed after a failed one.
      this.at = this.end
      return undefined
    }
    this.at += count
    return this.bytes.subarray(this.at - count, this.at)
  }

  /** Returns the next `octets` (1, 2 or 4) as an unsigned integer; -1 if `take` fails. */
  uint(octets: 1 | 2 | 4): number {
    const taken = this.take(octets)
    if (taken === undefined) return -1
    let value = 0
    for (const octet of taken) value = value * 256 + octet
    return value
  }

  /** Returns the remaining octets as a view. */
  rest(): Uint8Array {
    const start = this.at
    this.at = this.end
    return this.bytes.subarray(start, this.end)
  }
}
