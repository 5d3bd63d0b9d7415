import { RRClass, RRType, scanClass, scanType } from '../../dns/iana/index.ts'

/** Longest mnemonic that is looked up by its octets: the 48 bits of six octets fit a number exactly. */
const KEY_OCTETS_MAX = 6
const UNKNOWN = -1

/** Types and classes by the octets of their text, so that a million records need no strings. */
const typeOfKey = new Map<number, number>()

/** Returns the upper-case octets as one number, or UNKNOWN if the field is too long. */
function keyOf(input: Uint8Array, start: number, end: number): number {
  if (end - start > KEY_OCTETS_MAX) return UNKNOWN
  let key = 0
  for (let i = start; i < end; i++) {
    const octet = input[i]!
    key = key * 256 + (octet >= 0x61 && octet <= 0x7a ? octet - 0x20 : octet)
  }
  return key
}

for (const [name, type] of Object.entries(RRType)) {
  const octets = Buffer.from(name)
  if (octets.length <= KEY_OCTETS_MAX) typeOfKey.set(keyOf(octets, 0, octets.length), type)
}

/** Returns the type that the field names, mnemonic or TYPEn; -1 if it names none. */
export function scanTypeField(input: Buffer, start: number, end: number): number {
  const known = typeOfKey.get(keyOf(input, start, end))
  if (known !== undefined) return known
  return scanType(input.toString('latin1', start, end)) ?? UNKNOWN
}

/** Returns the class that the field names, mnemonic or CLASSn; -1 if it names none. */
export function scanClassField(input: Buffer, start: number, end: number): number {
  if (end - start === 2 && (input[start]! | 0x20) === 0x69 && (input[start + 1]! | 0x20) === 0x6e) {
    return RRClass.IN
  }
  // Mnemonics that can't be a class, such as A, AAAA, MX and TXT, need no string.
  const first = input[start]! | 0x20
  if (first !== 0x63 && first !== 0x68 && first !== 0x6e && first !== 0x61) return UNKNOWN
  if (typeOfKey.has(keyOf(input, start, end))) return UNKNOWN
  return scanClass(input.toString('latin1', start, end)) ?? UNKNOWN
}

/** True if a zone can contain records of this type: excludes pseudo types (RFC 6895 section 3.1). */
export function isDataType(type: number): boolean {
  return type !== 0 && type !== RRType.OPT && (type < 128 || type > 255)
}
