import { RRType } from '../../dns/iana/types.ts'
import { lowerName } from '../../dns/name/name.ts'
import { nameOctetsAt } from '../../dns/name/name-at.ts'
import { OctetWriter } from '../../dns/rdata/octets.ts'
import { composeTypes } from '../../dns/rdata/type-bitmap.ts'

const NAME_OCTETS_MAX = 255
const LABEL_OCTETS_MAX = 63

/** What an NSEC record of the link proves: one of these, or that the name lacks the type with this number. */
export const Proof = {
  /** The name does not exist. */
  NoName: 0x1_0000,
  /** The name is a delegation without DS. */
  Insecure: 0x1_0001,
  /** The name exists, and may have any type. */
  Name: 0x1_0002,
  /** The name exists, and has no types. */
  Empty: 0x1_0003,
} as const

/** Types that prove something else than that a name exists, that no name has, or that only an apex has. */
const EXCLUDED: ReadonlySet<number> = new Set([
  RRType.NS,
  RRType.CNAME,
  RRType.SOA,
  RRType.OPT,
  RRType.DS,
  RRType.DNSKEY,
  RRType.NSEC3,
  RRType.NSEC3PARAM,
])
/** Ranges of types, first and last: all that are in use, assigned soon, or private (RFC 6895 section 3.1). */
const RANGES: readonly (readonly [number, number])[] = [
  [RRType.A, 127],
  [RRType.URI, 511],
  [RRType.TA, RRType.DLV],
  [65_280, 65_534],
]
/**
 * Types that a name may have, as its source knows them only by query. A validator may conclude from one NSEC record
 * that a type is missing (RFC 8198), so the list has all types but those for which the record has no room.
 */
const TYPES: readonly number[] = RANGES.flatMap(([first, last]) => {
  const types = Array.from({ length: last - first + 1 }, (_, i) => first + i)
  return types.filter((type) => !EXCLUDED.has(type))
})
const APEX_TYPES: readonly number[] = [...TYPES, RRType.NS, RRType.SOA, RRType.DNSKEY]

/** Type bitmaps of the records (RFC 9824 section 3). Made once: most have several hundred types. */
const BITMAPS = {
  noName: bitmapOf([RRType.RRSIG, RRType.NSEC, RRType.NXNAME]),
  insecure: bitmapOf([RRType.RRSIG, RRType.NSEC, RRType.NS]),
  empty: bitmapOf([RRType.RRSIG, RRType.NSEC]),
  name: bitmapOf(TYPES),
  apex: bitmapOf(APEX_TYPES),
  // Also a CNAME, so that no validator concludes anything from the record.
  nameOrAlias: bitmapOf([...TYPES, RRType.CNAME]),
}

/** Returns the NSEC record of a name. `next`: the name that follows, in lower case; `proof`: see `Proof`. */
export function composeProof(next: Uint8Array, proof: number, isApex: boolean): Uint8Array {
  return Buffer.concat([next, provenTypes(proof, isApex)])
}

function provenTypes(proof: number, isApex: boolean): Uint8Array {
  switch (proof) {
    case Proof.NoName:
      return BITMAPS.noName
    case Proof.Insecure:
      return BITMAPS.insecure
    case Proof.Empty:
      return BITMAPS.empty
    case Proof.Name:
      return isApex ? BITMAPS.apex : BITMAPS.nameOrAlias
    default:
      return withoutType(isApex ? BITMAPS.apex : BITMAPS.name, proof)
  }
}

function bitmapOf(types: readonly number[]): Uint8Array {
  const out = new OctetWriter()
  composeTypes(new Set(types), out)
  return out.octets()
}

/** Returns a copy of a bitmap without a type. Each octet has several types, so the copy is as long. */
function withoutType(bitmap: Uint8Array, type: number): Uint8Array {
  const copy = bitmap.slice()
  for (let at = 0; at < copy.length; at += 2 + copy[at + 1]!) {
    if (copy[at] !== type >> 8) continue
    const octet = (type & 0xff) >> 3
    if (octet < copy[at + 1]!) copy[at + 2 + octet]! &= ~(0x80 >> (type & 7))
  }
  return copy
}

/**
 * Returns the name that directly follows the one at `bytes[at]` (RFC 9824 section 3, RFC 4471), in lower case: `\000`
 * below it, or, if there is no room below it, beside it. `apex`: follows the last name of the zone.
 */
export function nameAfter(bytes: Uint8Array, at: number, apex: Uint8Array): Uint8Array {
  const name = lowerName(bytes.subarray(at, at + nameOctetsAt(bytes, at)))
  if (name.length + 2 <= NAME_OCTETS_MAX) return Buffer.concat([Buffer.from([1, 0]), name])
  return nameBeside(name, apex)
}

/** Returns the name that directly follows `name` and all names below it. */
function nameBeside(name: Uint8Array, apex: Uint8Array): Uint8Array {
  if (name.length <= apex.length) return apex
  const first = name[0]!
  if (name.length < NAME_OCTETS_MAX && first < LABEL_OCTETS_MAX) {
    const label = name.subarray(1, first + 1)
    return Buffer.concat([Buffer.from([first + 1]), label, Buffer.of(0), name.subarray(first + 1)])
  }
  for (let i = first; i > 0; i--) {
    const octet = name[i]!
    if (octet === 0xff) continue
    const next = name.slice(0, i + 1)
    next[0] = i
    // Letters count in lower case.
    next[i] = octet === 0x40 ? 0x5b : octet + 1
    return Buffer.concat([next, name.subarray(first + 1)])
  }
  return nameBeside(name.subarray(first + 1), apex)
}
