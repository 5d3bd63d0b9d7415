export const SIPHASH_KEY_OCTETS = 16

/** A block of SipHash has two words. */
const BLOCK_WORDS = 2
/** SipHash-2-4: pairs of rounds after the last block. */
const FINAL_PAIRS = 2

/**
 * Computes SipHash-2-4 (Aumasson and Bernstein, 2012) of `octets` octets under `key`, four words,
 * and writes the two words of the result to `out`. All words are little-endian. `input`: these
 * octets, with zeros behind them up to a multiple of eight octets, and at least one zero. SipHash is
 * a keyed hash that is fast on short input; without the key it is unpredictable.
 *
 * A 64-bit number is two variables (`a0` low, `a1` high). After two rounds, all halves that a round
 * exchanges are back in their places, so a turn of the loop is a pair of rounds, and exchanging is
 * a matter of names. @hot
 */
export function sipHash24(
  key: Int32Array,
  input: Int32Array,
  octets: number,
  out: Int32Array,
): void {
  // "somepseudorandomlygeneratedbytes": the initial state that the authors chose.
  let a0 = key[0]! ^ 0x70736575
  let a1 = key[1]! ^ 0x736f6d65
  let b0 = key[2]! ^ 0x6e646f6d
  let b1 = key[3]! ^ 0x646f7261
  let c0 = key[0]! ^ 0x6e657261
  let c1 = key[1]! ^ 0x6c796765
  let d0 = key[2]! ^ 0x79746573
  let d1 = key[3]! ^ 0x74656462
  const blocks = (octets >> 3) + 1
  for (let block = 0; block < blocks + FINAL_PAIRS; block++) {
    let m0 = 0
    let m1 = 0
    if (block < blocks) {
      m0 = input[block * BLOCK_WORDS]!
      m1 = input[block * BLOCK_WORDS + 1]!
      if (block === blocks - 1) m1 |= octets << 24
    } else if (block === blocks) c0 ^= 0xff
    d0 ^= m0
    d1 ^= m1
    for (let half = 0; half < 2; half++) {
      let t = 0
      // a += b; b = b <<< 13 ^ a; a = a <<< 32
      a0 = (a0 + b0) | 0
      a1 = (a1 + b1 + carryOf(a0, b0)) | 0
      t = ((b0 << 13) | (b1 >>> 19)) ^ a0
      b1 = ((b1 << 13) | (b0 >>> 19)) ^ a1
      b0 = t
      // c += d; d = d <<< 16 ^ c
      c0 = (c0 + d0) | 0
      c1 = (c1 + d1 + carryOf(c0, d0)) | 0
      t = ((d0 << 16) | (d1 >>> 16)) ^ c0
      d1 = ((d1 << 16) | (d0 >>> 16)) ^ c1
      d0 = t
      // a += d; d = d <<< 21 ^ a
      t = (a1 + d0) | 0
      a1 = (a0 + d1 + carryOf(t, d0)) | 0
      a0 = t
      t = ((d0 << 21) | (d1 >>> 11)) ^ a0
      d1 = ((d1 << 21) | (d0 >>> 11)) ^ a1
      d0 = t
      // c += b; b = b <<< 17 ^ c; c = c <<< 32
      t = (c0 + b0) | 0
      c0 = (c1 + b1 + carryOf(t, b0)) | 0
      c1 = t
      t = ((b0 << 17) | (b1 >>> 15)) ^ c1
      b1 = ((b1 << 17) | (b0 >>> 15)) ^ c0
      b0 = t
    }
    a0 ^= m0
    a1 ^= m1
  }
  out[0] = a0 ^ b0 ^ c0 ^ d0
  out[1] = a1 ^ b1 ^ c1 ^ d1
}

/** Returns 1 if the 32-bit sum with the addend `part` overflowed. */
function carryOf(sum: number, part: number): number {
  return sum >>> 0 < part >>> 0 ? 1 : 0
}
