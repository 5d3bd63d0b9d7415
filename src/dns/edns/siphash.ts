/** Octets of a key. */
export const SIPHASH_KEY_OCTETS = 16

/**
 * Writes the 8 octets of SipHash-2-4 (Aumasson and Bernstein, 2012) of `input[0..octets-1]` under
 * `key` to `out[at]`, in the order of the reference implementation (little-endian). SipHash is a
 * keyed hash that is fast on short input; without the key it is unpredictable.
 *
 * A 64-bit word is two 32-bit variables (`a0` low, `a1` high), and the code contains the round only
 * once. This way it does not allocate and runs in registers.
 */
export function sipHash24(
  key: Uint8Array,
  input: Uint8Array,
  octets: number,
  out: Uint8Array,
  at: number,
): void {
  // "somepseudorandomlygeneratedbytes": the initial state that the authors chose.
  let a0 = word(key, 0) ^ 0x70736575
  let a1 = word(key, 4) ^ 0x736f6d65
  let b0 = word(key, 8) ^ 0x6e646f6d
  let b1 = word(key, 12) ^ 0x646f7261
  let c0 = word(key, 0) ^ 0x6e657261
  let c1 = word(key, 4) ^ 0x6c796765
  let d0 = word(key, 8) ^ 0x79746573
  let d1 = word(key, 12) ^ 0x74656462
  const last = octets >> 3
  // Reads whole words, then a word with the remaining octets and the length, then a word of 0 for
  // the finalization.
  for (let block = 0; block <= last + 1; block++) {
    const m0 = wordBefore(input, block * 8, octets)
    const m1 = wordBefore(input, block * 8 + 4, octets) | (block === last ? octets << 24 : 0)
    d0 ^= m0
    d1 ^= m1
    if (block > last) c0 ^= 0xff
    for (let round = block > last ? 4 : 2; round > 0; round--) {
      let t = 0
      // a += b; b = b <<< 13 ^ a; a = a <<< 32
      t = (a0 + b0) | 0
      a1 = (a1 + b1 + carryOf(t, b0)) | 0
      a0 = t
      t = ((b0 << 13) | (b1 >>> 19)) ^ a0
      b1 = ((b1 << 13) | (b0 >>> 19)) ^ a1
      b0 = t
      t = a0
      a0 = a1
      a1 = t
      // c += d; d = d <<< 16 ^ c
      t = (c0 + d0) | 0
      c1 = (c1 + d1 + carryOf(t, d0)) | 0
      c0 = t
      t = ((d0 << 16) | (d1 >>> 16)) ^ c0
      d1 = ((d1 << 16) | (d0 >>> 16)) ^ c1
      d0 = t
      // a += d; d = d <<< 21 ^ a
      t = (a0 + d0) | 0
      a1 = (a1 + d1 + carryOf(t, d0)) | 0
      a0 = t
      t = ((d0 << 21) | (d1 >>> 11)) ^ a0
      d1 = ((d1 << 21) | (d0 >>> 11)) ^ a1
      d0 = t
      // c += b; b = b <<< 17 ^ c; c = c <<< 32
      t = (c0 + b0) | 0
      c1 = (c1 + b1 + carryOf(t, b0)) | 0
      c0 = t
      t = ((b0 << 17) | (b1 >>> 15)) ^ c0
      b1 = ((b1 << 17) | (b0 >>> 15)) ^ c1
      b0 = t
      t = c0
      c0 = c1
      c1 = t
    }
    a0 ^= m0
    a1 ^= m1
  }
  putWord(a0 ^ b0 ^ c0 ^ d0, out, at)
  putWord(a1 ^ b1 ^ c1 ^ d1, out, at + 4)
}

/**
 * Returns 1 if the 32-bit sum with the addend `part` overflowed. Compares as signed integers, because V8 compares
 * numbers above 2^31 as doubles.
 */
function carryOf(sum: number, part: number): number {
  return (sum ^ 0x8000_0000) < (part ^ 0x8000_0000) ? 1 : 0
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}

/** Reads a word as `word` does, with octets from `end` on as 0. */
function wordBefore(bytes: Uint8Array, at: number, end: number): number {
  let value = 0
  for (let i = 0; i < 4 && at + i < end; i++) value |= bytes[at + i]! << (8 * i)
  return value
}

function putWord(value: number, out: Uint8Array, at: number): void {
  out[at] = value & 0xff
  out[at + 1] = (value >>> 8) & 0xff
  out[at + 2] = (value >>> 16) & 0xff
  out[at + 3] = value >>> 24
}
