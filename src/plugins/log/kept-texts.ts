import * as memory from './memory.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { textView } = memory

/*
 * Texts with few different values among queries: one that was written before is copied. Each kind has SLOTS places,
 * which begin at the number of the kind. Up to seven octets behind a text are overwritten.
 */
const SLOTS = 64
/** ` "A IN `: by the entry's QUESTION. */
export const QUESTIONS = 0
/** ` false 512" NOERROR qr,aa,rd `: by the printed part of MANNER, and the client's size limit. */
export const MANNERS = SLOTS
/** ` 0.00003799s`: by nanoseconds and seconds. Eight queries of a batch have the same time. */
export const TIMES = 2 * SLOTS
/** The first two for a string of JSON. */
export const ESCAPED_QUESTIONS = 3 * SLOTS
export const ESCAPED_MANNERS = 4 * SLOTS
/** The same values as fields of JSON; the protocol is a part of the first, the opcode of the second. */
export const JSON_QUESTIONS = 5 * SLOTS
export const JSON_MANNERS = 6 * SLOTS
export const JSON_TIMES = 7 * SLOTS
export const JSON_OPCODES = 8 * SLOTS
const KINDS = 9

/** Units of eight octets per text. No text of these kinds has more than 90 octets. */
const KEPT_WORDS = 12
const KEY_FACTOR = 0x9e3779b1
const KEY_SHIFT = 26
const keptKey = new Int32Array(new ArrayBuffer(4 * KINDS * SLOTS))
const keptOther = new Int32Array(new ArrayBuffer(4 * KINDS * SLOTS))
/** 0 = the place is empty. */
const keptOctets = new Uint8Array(new ArrayBuffer(KINDS * SLOTS))
/** Octets, not numbers. Printable characters never form a NaN, whose bits may change in a copy. */
const keptWords = new Float64Array(new ArrayBuffer(8 * KINDS * SLOTS * KEPT_WORDS))

function slotOf(kind: number, key: number, other: number): number {
  return kind + (Math.imul(key ^ (other << 7), KEY_FACTOR) >>> KEY_SHIFT)
}

/** Writes the text of `kind` with these keys. Returns its end; -1 = it is not kept. @hot */
export function putKept(at: number, kind: number, key: number, other: number): number {
  const slot = slotOf(kind, key, other)
  if (keptKey[slot] !== key || keptOther[slot] !== other || keptOctets[slot] === 0) return -1
  const octets = keptOctets[slot]!
  const first = slot * KEPT_WORDS
  for (let i = 0; i < octets; i += 8) {
    textView.setFloat64(at + i, keptWords[first + (i >> 3)]!, true)
  }
  return at + octets
}

/** Keeps the text that was written from `at` to before `end`, and returns its end. */
export function keep(at: number, end: number, kind: number, key: number, other: number): number {
  const slot = slotOf(kind, key, other)
  keptOctets[slot] = end - at
  for (let i = at; i < end; i += 8) {
    keptWords[slot * KEPT_WORDS + ((i - at) >> 3)] = textView.getFloat64(i, true)
  }
  keptKey[slot] = key
  keptOther[slot] = other
  return end
}
