/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash that is fast on short input and that
 * nobody without the key can predict. 64-bit words are pairs of 32-bit halves, low half first:
 *
 *     state:  v0.lo v0.hi v1.lo v1.hi v2.lo v2.hi v3.lo v3.hi
 */
const state = new Int32Array(8)

/** Octets of a key. */
export const SIPHASH_KEY_OCTETS = 16

/**
 * Writes the 8 octets of SipHash-2-4 of `input[0..octets-1]` under `key` to `out[at]`, in the order
 * of the reference implementation (little-endian). Allocates nothing.
 */
export function sipHash24(
  key: Uint8Array,
  input: Uint8Array,
  octets: number,
  out: Uint8Array,
  at: number,
): void {
  const k0 = word(key, 0)
  const k1 = word(key, 4)
  const k2 = word(key, 8)
  const k3 = word(key, 12)
  // "somepseudorandomlygeneratedbytes", as the authors chose.
  state[0] = k0 ^ 0x70736575
  state[1] = k1 ^ 0x736f6d65
  state[2] = k2 ^ 0x6e646f6d
  state[3] = k3 ^ 0x646f7261
  state[4] = k0 ^ 0x6e657261
  state[5] = k1 ^ 0x6c796765
  state[6] = k2 ^ 0x79746573
  state[7] = k3 ^ 0x74656462
  const whole = octets & ~7
  for (let i = 0; i < whole; i += 8) absorb(word(input, i), word(input, i + 4))
  absorb(tail(input, whole, octets), tail(input, whole + 4, octets) | (octets << 24))
  state[4]! ^= 0xff
  for (let i = 0; i < 4; i++) round()
  putWord(state[0]! ^ state[2]! ^ state[4]! ^ state[6]!, out, at)
  putWord(state[1]! ^ state[3]! ^ state[5]! ^ state[7]!, out, at + 4)
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}

/** Up to four octets at `at`, none of them at `end` or behind it. */
function tail(bytes: Uint8Array, at: number, end: number): number {
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

function absorb(lo: number, hi: number): void {
  state[6]! ^= lo
  state[7]! ^= hi
  round()
  round()
  state[0]! ^= lo
  state[1]! ^= hi
}

function round(): void {
  add(0, 2)
  rotate(2, 13)
  mix(2, 0)
  swap(0)
  add(4, 6)
  rotate(6, 16)
  mix(6, 4)
  add(0, 6)
  rotate(6, 21)
  mix(6, 0)
  add(4, 2)
  rotate(2, 17)
  mix(2, 4)
  swap(4)
}

/** v[a] += v[b], modulo 2^64. */
function add(a: number, b: number): void {
  const lo = (state[a]! >>> 0) + (state[b]! >>> 0)
  state[a] = lo
  state[a + 1] = state[a + 1]! + state[b + 1]! + (lo > 0xffffffff ? 1 : 0)
}

/** v[a] rotated left by 1..31 bits. */
function rotate(a: number, bits: number): void {
  const lo = state[a]!
  const hi = state[a + 1]!
  state[a] = (lo << bits) | (hi >>> (32 - bits))
  state[a + 1] = (hi << bits) | (lo >>> (32 - bits))
}

function mix(a: number, b: number): void {
  state[a]! ^= state[b]!
  state[a + 1]! ^= state[b + 1]!
}

/** v[a] rotated by 32 bits. */
function swap(a: number): void {
  const lo = state[a]!
  state[a] = state[a + 1]!
  state[a + 1] = lo
}
