import { OctetWriter } from '../rdata/octets.ts'
import { composeTypes } from '../rdata/type-bitmap.ts'
import { NSEC3_SHA1 } from './nsec3.ts'

/** Flag of an NSEC3 record that may cover unsigned delegations (RFC 5155 section 3.1.2.1). */
const OPT_OUT = 1
const DIGITS = '0123456789abcdefghijklmnopqrstuv'
/** Bits of a digit of base32hex. */
const DIGIT_BITS = 5

/** Returns NSEC rdata (RFC 4034 section 4). `next`: lower-case wire form. */
export function composeNsec(next: Uint8Array, types: Iterable<number>): Uint8Array {
  const out = new OctetWriter()
  out.put(next)
  composeTypes(new Set(types), out)
  return out.octets()
}

/** True for NSEC rdata of compact denial that proves that the owner does not exist (RFC 9824 section 3.1). */
export function hasNxname(bytes: Uint8Array, at: number, octets: number): boolean {
  // The types are in one window, whose last bit is that of NXNAME.
  const end = at + octets
  return octets > 19 && bytes[end - 19] === 0 && bytes[end - 18] === 17 && bytes[end - 1] === 0x80
}

/**
 * Returns NSEC3 rdata with 0 iterations and no salt (RFC 5155 section 3, RFC 9276). `nextLabel`: the owner label of the
 * next record, 32 digits of base32hex after their length.
 */
export function composeNsec3(
  nextLabel: Uint8Array,
  types: Iterable<number>,
  { isOptOut }: { readonly isOptOut: boolean },
): Uint8Array {
  const out = new OctetWriter()
  putParameters(out, isOptOut ? OPT_OUT : 0)
  const hash = decodeBase32Hex(nextLabel.subarray(1))
  out.u8(hash.length)
  out.put(hash)
  composeTypes(new Set(types), out)
  return out.octets()
}

/** Returns NSEC3PARAM rdata with 0 iterations and no salt (RFC 5155 section 4). */
export function composeNsec3Param(): Uint8Array {
  const out = new OctetWriter()
  putParameters(out, 0)
  return out.octets()
}

function putParameters(out: OctetWriter, flags: number): void {
  out.u8(NSEC3_SHA1)
  out.u8(flags)
  out.u16(0)
  out.u8(0)
}

function decodeBase32Hex(digits: Uint8Array): Uint8Array {
  const octets = new Uint8Array((digits.length * DIGIT_BITS) >> 3)
  let bits = 0
  let count = 0
  let at = 0
  for (const digit of digits) {
    bits = ((bits << DIGIT_BITS) | DIGITS.indexOf(String.fromCharCode(digit).toLowerCase())) & 0xfff
    count += DIGIT_BITS
    if (count < 8) continue
    count -= 8
    octets[at++] = bits >> count
  }
  return octets
}
