import { assert } from '../../base/assert.ts'

/** Octets of a SHA-1 digest. */
export const SHA1_OCTETS = 20
const BLOCK_OCTETS = 64
/** Maximum of octets that `Sha1.digest` can hash: a name and a salt, with a margin. */
const SHA1_INPUT_OCTETS_MAX = 512
/** The bit that ends the message, and the message's length. */
const TAIL_OCTETS = 9
const INPUT_OCTETS = sha1Blocks(SHA1_INPUT_OCTETS_MAX) * BLOCK_OCTETS

/** Returns the number of blocks of a message of `octets` octets; each block takes the same time. */
export function sha1Blocks(octets: number): number {
  return Math.ceil((octets + TAIL_OCTETS) / BLOCK_OCTETS)
}

/**
 * SHA-1 (FIPS 180-4) of short messages. NSEC3 hashes are computed on the hot path, and `node:crypto` allocates
 * several objects for each digest.
 */
export class Sha1 {
  /** The message: the caller fills octets 0..n-1. */
  readonly input: Uint8Array = new Uint8Array(INPUT_OCTETS)
  /** The digest as five words. */
  readonly state: Int32Array = new Int32Array(5)
  readonly #schedule = new Int32Array(80)

  /** Hashes the first `octets` octets of `input`; overwrites the octets behind them. @hot */
  digest(octets: number): void {
    assert(octets <= SHA1_INPUT_OCTETS_MAX, 'the message fits')
    const { input, state } = this
    const end = ((octets + TAIL_OCTETS + BLOCK_OCTETS - 1) >> 6) << 6
    input[octets] = 0x80
    for (let i = octets + 1; i < end - 2; i++) input[i] = 0
    input[end - 2] = octets >> 5
    input[end - 1] = (octets << 3) & 0xff
    state[0] = 0x67452301
    state[1] = 0xefcdab89
    state[2] = 0x98badcfe
    state[3] = 0x10325476
    state[4] = 0xc3d2e1f0
    for (let at = 0; at < end; at += BLOCK_OCTETS) this.#addBlock(at)
  }

  /** Writes the digest to `out`, big-endian. @hot */
  write(out: Uint8Array, offset: number): void {
    for (let i = 0; i < 5; i++) {
      const word = this.state[i]!
      out[offset + i * 4] = word >>> 24
      out[offset + i * 4 + 1] = word >>> 16
      out[offset + i * 4 + 2] = word >>> 8
      out[offset + i * 4 + 3] = word
    }
  }

  #addBlock(start: number): void {
    const w = this.#schedule
    const { input, state } = this
    for (let i = 0, at = start; i < 16; i++, at += 4) {
      w[i] = (input[at]! << 24) | (input[at + 1]! << 16) | (input[at + 2]! << 8) | input[at + 3]!
    }
    for (let i = 16; i < 80; i++) {
      const word = w[i - 3]! ^ w[i - 8]! ^ w[i - 14]! ^ w[i - 16]!
      w[i] = (word << 1) | (word >>> 31)
    }
    let a = state[0]!
    let b = state[1]!
    let c = state[2]!
    let d = state[3]!
    let e = state[4]!
    for (let i = 0; i < 80; i++) {
      let mixed: number
      if (i < 20) mixed = (((b & c) | (~b & d)) + 0x5a827999) | 0
      else if (i < 40) mixed = ((b ^ c ^ d) + 0x6ed9eba1) | 0
      else if (i < 60) mixed = (((b & c) | (b & d) | (c & d)) - 0x70e44324) | 0
      else mixed = ((b ^ c ^ d) - 0x359d3e2a) | 0
      // Each sum is cut to 32 bits at once: V8 computes larger sums with floating-point numbers.
      const next = ((((((a << 5) | (a >>> 27)) + mixed) | 0) + e) | 0) + w[i]!
      e = d
      d = c
      c = (b << 30) | (b >>> 2)
      b = a
      a = next | 0
    }
    state[0]! += a
    state[1]! += b
    state[2]! += c
    state[3]! += d
    state[4]! += e
  }
}
