import { copyOctets } from '../../base/octets.ts'

/** Node.js allocates longer arrays outside the heap, which takes several times as long. */
export const HEAP_OCTETS_MAX = 64

/** Collects octets in network order; grows as needed. */
export class OctetWriter {
  #bytes = new Uint8Array(HEAP_OCTETS_MAX)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** The memory of the written octets, until the next write; they are followed by others. */
  get memory(): Uint8Array {
    return this.#bytes
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

  /** Copies the next `count` octets of `input`; returns false if fewer remain. */
  copy(input: OctetReader, count: number): boolean {
    if (count > input.remaining) return false
    this.#reserve(count)
    copyOctets(input.bytes, input.at, this.#bytes, this.#length, count)
    this.#length += count
    input.at += count
    return true
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

  /** Returns the written octets: a view of `source` if they are many and equal to those at `at`, else a copy. */
  octetsOf(source: Uint8Array, at: number): Uint8Array {
    const length = this.#length
    if (length <= HEAP_OCTETS_MAX || at + length > source.length) return this.octets()
    for (let i = 0; i < length; i++) if (this.#bytes[i] !== source[at + i]) return this.octets()
    return source.subarray(at, at + length)
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
  /** A caller that reads several parts of `bytes` sets it. */
  end: number

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
    const start = this.at
    if (octets > this.end - start) {
      this.at = this.end
      return -1
    }
    this.at = start + octets
    let value = 0
    for (let i = start; i < this.at; i++) value = value * 256 + this.bytes[i]!
    return value
  }

  /** Returns the remaining octets as a view. */
  rest(): Uint8Array {
    const start = this.at
    this.at = this.end
    return this.bytes.subarray(start, this.end)
  }
}
