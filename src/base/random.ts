/**
 * Uniform random numbers from a seedable generator: xoroshiro64** (Blackman and Vigna, 2018), two
 * 32-bit integers of state, period 2^64-1. Suitable for load distribution; never for secrets.
 */
export class Random {
  #a = 0
  #b = 0

  /** `seed`: any 32-bit integer; equal seeds give equal sequences. */
  constructor(seed: number) {
    this.restart(seed)
  }

  /** Starts the sequence of another seed. */
  restart(seed: number): void {
    this.#a = (seed ^ 0x9e3779b9) | 0 || 1
    this.#b = Math.imul(seed, 0x85ebca6b) ^ 0xc2b2ae35 || 1
    for (let i = 0; i < 8; i++) this.next32()
  }

  /** The next integer, uniform over 0..2^32-1. */
  next32(): number {
    const a = this.#a
    let b = this.#b
    const result = Math.imul(rotateLeft(Math.imul(a, 0x9e3779bb), 5), 5)
    b ^= a
    this.#a = rotateLeft(a, 26) ^ b ^ (b << 9)
    this.#b = rotateLeft(b, 13)
    return result >>> 0
  }

  /** The next integer, uniform over 0..bound-1. `bound`: 1..2^32. */
  below(bound: number): number {
    return Math.floor((this.next32() / 4294967296) * bound)
  }
}

function rotateLeft(x: number, bits: number): number {
  return (x << bits) | (x >>> (32 - bits))
}
