import type { AddressFamily, Cidr } from './address.ts'

/** Every address, of both families. */
export const ALL_ADDRESSES: readonly Cidr[] = [
  { family: 1, bytes: new Uint8Array(4), bits: 0 },
  { family: 2, bytes: new Uint8Array(16), bits: 0 },
]

/**
 * A fixed set of networks. Looks up raw addresses by binary search and allocates nothing. IPv4 and
 * IPv6 are separate: an IPv4-mapped address is in no IPv4 network.
 */
export class AddressSet {
  readonly #ipv4: Ranges
  readonly #ipv6: Ranges

  constructor(networks: readonly Cidr[]) {
    this.#ipv4 = new Ranges(networks, 1, 4)
    this.#ipv6 = new Ranges(networks, 2, 16)
  }

  /** `bytes[offset]` starts an address of 4 (family 1) or 16 octets (family 2), network order. */
  has(bytes: Uint8Array, offset: number, family: number): boolean {
    return family === 1 ? this.#ipv4.has(bytes, offset) : this.#ipv6.has(bytes, offset)
  }
}

/**
 * Disjoint ranges of addresses of `octets` octets each, ascending:
 *
 *     starts: a0 a1 a2 …      ends: b0 b1 b2 …      a0 <= b0 < a1 <= b1 < …
 */
class Ranges {
  readonly #octets: number
  readonly #count: number
  readonly #starts: Uint8Array
  readonly #ends: Uint8Array

  constructor(networks: readonly Cidr[], family: AddressFamily, octets: number) {
    const ranges = networks
      .filter((network) => network.family === family)
      .map((network) => ({ start: network.bytes, end: lastAddress(network) }))
      .sort((a, b) => Buffer.compare(a.start, b.start))
    const merged: { start: Uint8Array; end: Uint8Array }[] = []
    for (const range of ranges) {
      const last = merged.at(-1)
      if (last === undefined || Buffer.compare(range.start, last.end) > 0) merged.push(range)
      else if (Buffer.compare(range.end, last.end) > 0) last.end = range.end
    }
    this.#octets = octets
    this.#count = merged.length
    this.#starts = new Uint8Array(merged.length * octets)
    this.#ends = new Uint8Array(merged.length * octets)
    merged.forEach(({ start, end }, i) => {
      this.#starts.set(start, i * octets)
      this.#ends.set(end, i * octets)
    })
  }

  has(bytes: Uint8Array, offset: number): boolean {
    let low = 0
    let high = this.#count
    // Finds the first range that starts above the address: the range before it may contain the address.
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(this.#starts, middle, bytes, offset) <= 0) low = middle + 1
      else high = middle
    }
    return low > 0 && this.#compare(this.#ends, low - 1, bytes, offset) >= 0
  }

  #compare(bounds: Uint8Array, index: number, bytes: Uint8Array, offset: number): number {
    const start = index * this.#octets
    for (let i = 0; i < this.#octets; i++) {
      const difference = bounds[start + i]! - bytes[offset + i]!
      if (difference !== 0) return difference
    }
    return 0
  }
}

function lastAddress(network: Cidr): Uint8Array {
  return network.bytes.map((octet, i) => {
    const fixed = Math.min(8, Math.max(0, network.bits - i * 8))
    return octet | (0xff >> fixed)
  })
}
