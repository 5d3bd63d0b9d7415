/**
 * Prints into octets, for lines that are written per query. Each function writes ASCII to `out`
 * from `at` on and returns the offset behind it. The text equals that of the `print…` function with
 * the same name.
 *
 * Text is written in words of four octets, with one store each. Up to SPILL_OCTETS behind the end
 * are overwritten too, so the buffer needs space for them.
 */
import type { AddressFamily } from './address.ts'

const DOT = 0x2e
const COLON = 0x3a
const BACKSLASH = 0x5c
const HEX = Uint8Array.from(Buffer.from('0123456789abcdef', 'latin1'))

/** Maximum of octets behind the end of the text that may be overwritten. */
export const SPILL_OCTETS = 3

/** Maximum of octets of a number, of an address, and of a name in presentation form. */
export const NUMBER_OCTETS_MAX = 10
export const ADDRESS_OCTETS_MAX = 45
export const NAME_TEXT_OCTETS_MAX = 4 * 255

/** For each number from 0 to 999: its digits, their count, and its digits with leading zeros. */
export const DIGITS = Int32Array.from({ length: 1000 }, (_, i) => wordOf(String(i)))
export const DIGIT_COUNT = Uint8Array.from({ length: 1000 }, (_, i) => String(i).length)
export const THREE_DIGITS = Int32Array.from({ length: 1000 }, (_, i) =>
  wordOf(String(i).padStart(3, '0')),
)
/** For each octet of an IPv4 address: its digits and a dot. */
export const DOTTED = Int32Array.from({ length: 256 }, (_, i) => wordOf(`${i}.`))

function wordOf(text: string): number {
  return wordsOf(Buffer.from(text, 'latin1'))[0]!
}

/** Returns `text` as words for `putWords`; zeros pad the last word. */
export function wordsOf(text: Uint8Array): Int32Array {
  const words = new Int32Array((text.length + 3) >> 2)
  for (let i = 0; i < text.length; i++) words[i >> 2]! |= text[i]! << ((i & 3) * 8)
  return words
}

/** How an octet of a label is printed: unchanged, after a backslash, or as a backslash and three digits. */
const PLAIN = 0
const QUOTED = 1
const NUMBERED = 2
const LABEL_OCTET = Uint8Array.from({ length: 256 }, (_, octet) => {
  if (octet <= 0x20 || octet >= 0x7f) return NUMBERED
  return '."\\;()@$'.includes(String.fromCharCode(octet)) ? QUOTED : PLAIN
})

/** Copies `octets` octets of text from `words`, from index `from` on. @hot */
export function putWords(
  out: DataView,
  at: number,
  words: Int32Array,
  from: number,
  octets: number,
): number {
  for (let i = 0; i < octets; i += 4) out.setInt32(at + i, words[from + (i >> 2)]!, true)
  return at + octets
}

/** `value`: an integer from 0 to 2^31 - 1. @hot */
export function putNumber(out: DataView, at: number, value: number): number {
  if (value < 1000) return putSmall(out, at, value)
  // Only 32-bit integers: V8 then compiles a division to a multiplication.
  const thousands = (value / 1000) | 0
  // Recurses at most twice: a value below 2^31 has at most ten digits, three per step.
  const to = thousands < 1000 ? putSmall(out, at, thousands) : putNumber(out, at, thousands)
  return putThreeDigits(out, to, (value - thousands * 1000) | 0)
}

/** `value`: 0..999. */
function putSmall(out: DataView, at: number, value: number): number {
  out.setInt32(at, DIGITS[value]!, true)
  return at + DIGIT_COUNT[value]!
}

/** `value`: 0..999; with leading zeros. @hot */
export function putThreeDigits(out: DataView, at: number, value: number): number {
  out.setInt32(at, THREE_DIGITS[value]!, true)
  return at + 3
}

/** Prints as `printName` does. `name`: wire form from offset `start`. @hot */
export function putName(out: DataView, at: number, name: Uint8Array, start = 0): number {
  let to = at
  let from = start
  let length = name[start]!
  if (length === 0) {
    out.setUint8(to, DOT)
    return to + 1
  }
  while (length > 0) {
    const end = from + length
    const special = putLabel(out, to, name, from + 1, length)
    // Labels with special octets are rare; only these are written a second time.
    to = special === PLAIN ? to + length : putSpecial(out, to, name, from + 1, end + 1)
    out.setUint8(to++, DOT)
    from = end + 1
    length = name[from]!
  }
  return to
}

/**
 * Copies a label of `octets` octets, four at a time. Returns PLAIN if all of them are printed
 * unchanged. @hot
 */
function putLabel(
  out: DataView,
  at: number,
  name: Uint8Array,
  start: number,
  octets: number,
): number {
  let special = PLAIN
  let i = 0
  for (; i + 4 <= octets; i += 4) {
    const from = start + i
    const a = name[from]!
    const b = name[from + 1]!
    const c = name[from + 2]!
    const d = name[from + 3]!
    special |= LABEL_OCTET[a]! | LABEL_OCTET[b]! | LABEL_OCTET[c]! | LABEL_OCTET[d]!
    out.setInt32(at + i, a | (b << 8) | (c << 16) | (d << 24), true)
  }
  for (; i < octets; i++) {
    const octet = name[start + i]!
    special |= LABEL_OCTET[octet]!
    out.setUint8(at + i, octet)
  }
  return special
}

/**
 * Returns a mask of those of four octets that need an escape check: all except lower-case letters,
 * digits, `-`, `_` and the backtick. @hot
 */
export function specialOf(word: number): number {
  const low = word & 0x7f7f7f7f
  // The highest bit of each octet, here and below, is set if the octet is at least `_` and not
  // above `z`.
  const letter = (low + 0x21212121) & ~(low + 0x05050505)
  const digit = (low + 0x50505050) & ~(low + 0x46464646)
  const hyphen = ~((low ^ 0x2d2d2d2d) + 0x7f7f7f7f)
  return ~((letter | digit | hyphen) & ~word) & 0x80808080
}

/** Prints the octets of `name` from `start` to before `end`, which belong to one label, one by one. */
export function putSpecial(
  out: DataView,
  at: number,
  name: Uint8Array,
  start: number,
  end: number,
): number {
  let to = at
  for (let i = start; i < end; i++) {
    const octet = name[i]!
    const how = LABEL_OCTET[octet]!
    if (how !== PLAIN) out.setUint8(to++, BACKSLASH)
    if (how === NUMBERED) to = putThreeDigits(out, to, octet)
    else out.setUint8(to++, octet)
  }
  return to
}

/** Prints as `printAddress` does. `bytes`: the address from `offset` on. @hot */
export function putAddress(
  out: DataView,
  at: number,
  bytes: Uint8Array,
  family: AddressFamily,
  offset = 0,
): number {
  return family === 1 ? putIPv4(out, at, bytes, offset) : putIPv6(out, at, bytes, offset)
}

function putIPv4(out: DataView, at: number, bytes: Uint8Array, offset: number): number {
  let to = at
  for (let i = offset; i < offset + 4; i++) {
    const octet = bytes[i]!
    out.setInt32(to, DOTTED[octet]!, true)
    to += DIGIT_COUNT[octet]! + 1
  }
  // Drops the last dot.
  return to - 1
}

/** RFC 5952 section 4. */
function putIPv6(out: DataView, at: number, bytes: Uint8Array, offset: number): number {
  let start = 0
  let longest = 0
  let zeros = 0
  for (let group = 0; group < 8; group++) {
    zeros = groupOf(bytes, offset + group * 2) === 0 ? zeros + 1 : 0
    if (zeros <= longest) continue
    longest = zeros
    start = group - zeros + 1
  }
  const isMapped = start === 0 && longest === 5 && groupOf(bytes, offset + 10) === 0xffff
  const groups = isMapped ? 6 : 8
  const end = longest < 2 ? -1 : start + longest
  let to = at
  for (let group = 0; group < groups; group++) {
    if (end !== -1 && group >= start && group < end) {
      if (group === start) out.setUint8(to++, COLON)
      continue
    }
    if (group > 0) out.setUint8(to++, COLON)
    to = putHex(out, to, groupOf(bytes, offset + group * 2))
  }
  if (end === 8) out.setUint8(to++, COLON)
  if (!isMapped) return to
  out.setUint8(to++, COLON)
  return putIPv4(out, to, bytes, offset + 12)
}

function groupOf(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!
}

function putHex(out: DataView, at: number, value: number): number {
  let to = at
  for (
    let shift = value > 0xfff ? 12 : value > 0xff ? 8 : value > 0xf ? 4 : 0;
    shift >= 0;
    shift -= 4
  ) {
    out.setUint8(to++, HEX[(value >> shift) & 0xf]!)
  }
  return to
}
