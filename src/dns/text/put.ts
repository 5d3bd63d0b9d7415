/**
 * Printing into octets, for lines that are written per query: each function writes ASCII to `out` from
 * `at` on and returns the offset behind it. The text is that of the `print…` function of the same name.
 */
import type { AddressFamily } from './address.ts'

const DIGIT_0 = 0x30
const DOT = 0x2e
const COLON = 0x3a
const BACKSLASH = 0x5c
const HEX = Uint8Array.from(Buffer.from('0123456789abcdef', 'latin1'))

/** Most octets of a number, of an address, and of a name in presentation form. */
export const NUMBER_OCTETS_MAX = 10
export const ADDRESS_OCTETS_MAX = 45
export const NAME_TEXT_OCTETS_MAX = 4 * 255

/** How an octet of a label is printed: as it is, behind a backslash, or as a backslash and three digits. */
const PLAIN = 0
const QUOTED = 1
const NUMBERED = 2
const LABEL_OCTET = Uint8Array.from({ length: 256 }, (_, octet) => {
  if (octet <= 0x20 || octet >= 0x7f) return NUMBERED
  return '."\\;()@$'.includes(String.fromCharCode(octet)) ? QUOTED : PLAIN
})

/** Copies `text`. @hot */
export function putOctets(out: Uint8Array, at: number, text: Uint8Array): number {
  for (let i = 0; i < text.length; i++) out[at + i] = text[i]!
  return at + text.length
}

/** `value`: an integer from 0 to 2^31 - 1. @hot */
export function putNumber(out: Uint8Array, at: number, value: number): number {
  let digits = 1
  for (let rest = (value / 10) | 0; rest > 0; rest = (rest / 10) | 0) digits++
  return putDigits(out, at, value, digits)
}

/** The last `digits` decimal digits of such an integer, zeros in front included. @hot */
export function putDigits(out: Uint8Array, at: number, value: number, digits: number): number {
  // 32-bit integers all the way: a division is a multiplication then.
  let rest = value | 0
  for (let i = at + digits - 1; i >= at; i--) {
    const tens = (rest / 10) | 0
    out[i] = DIGIT_0 + ((rest - tens * 10) | 0)
    rest = tens
  }
  return at + digits
}

/** As `printName`. `name`: wire form from offset 0. @hot */
export function putName(out: Uint8Array, at: number, name: Uint8Array): number {
  let to = at
  let from = 0
  let length = name[0]!
  if (length === 0) {
    out[to] = DOT
    return to + 1
  }
  while (length > 0) {
    const end = from + length
    for (let i = from + 1; i <= end; i++) {
      const octet = name[i]!
      const how = LABEL_OCTET[octet]!
      if (how !== PLAIN) out[to++] = BACKSLASH
      if (how === NUMBERED) to = putDigits(out, to, octet, 3)
      else out[to++] = octet
    }
    out[to++] = DOT
    from = end + 1
    length = name[from]!
  }
  return to
}

/** As `printAddress`. @hot */
export function putAddress(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  family: AddressFamily,
): number {
  return family === 1 ? putIPv4(out, at, bytes, 0) : putIPv6(out, at, bytes)
}

function putIPv4(out: Uint8Array, at: number, bytes: Uint8Array, offset: number): number {
  let to = at
  for (let i = offset; i < offset + 4; i++) {
    if (i > offset) out[to++] = DOT
    to = putNumber(out, to, bytes[i]!)
  }
  return to
}

/** RFC 5952 section 4. */
function putIPv6(out: Uint8Array, at: number, bytes: Uint8Array): number {
  let start = 0
  let longest = 0
  let zeros = 0
  for (let group = 0; group < 8; group++) {
    zeros = groupOf(bytes, group) === 0 ? zeros + 1 : 0
    if (zeros <= longest) continue
    longest = zeros
    start = group - zeros + 1
  }
  const isMapped = start === 0 && longest === 5 && groupOf(bytes, 5) === 0xffff
  const groups = isMapped ? 6 : 8
  const end = longest < 2 ? -1 : start + longest
  let to = at
  for (let group = 0; group < groups; group++) {
    if (end !== -1 && group >= start && group < end) {
      if (group === start) out[to++] = COLON
      continue
    }
    if (group > 0) out[to++] = COLON
    to = putHex(out, to, groupOf(bytes, group))
  }
  if (end === 8) out[to++] = COLON
  if (!isMapped) return to
  out[to++] = COLON
  return putIPv4(out, to, bytes, 12)
}

function groupOf(bytes: Uint8Array, group: number): number {
  return (bytes[group * 2]! << 8) | bytes[group * 2 + 1]!
}

function putHex(out: Uint8Array, at: number, value: number): number {
  let to = at
  for (
    let shift = value > 0xfff ? 12 : value > 0xff ? 8 : value > 0xf ? 4 : 0;
    shift >= 0;
    shift -= 4
  ) {
    out[to++] = HEX[(value >> shift) & 0xf]!
  }
  return to
}
