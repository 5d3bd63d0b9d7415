import { RRType } from '../../dns/iana/types.ts'
import { lowerName } from '../../dns/name/name.ts'
import { nameOctetsAt } from '../../dns/name/name-at.ts'

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
} as const

/**
 * Types that a name may have, as its source knows them only by query. A validator may conclude from one NSEC record
 * that a type is missing (RFC 8198), so the list has all types of records that are in use. It has no CNAME, DNAME, NS
 * and DS: with these, the record would prove something else.
 */
const TYPES: readonly number[] = [
  RRType.A,
  RRType.PTR,
  RRType.HINFO,
  RRType.MX,
  RRType.TXT,
  RRType.RP,
  RRType.AFSDB,
  RRType.AAAA,
  RRType.LOC,
  RRType.SRV,
  RRType.NAPTR,
  RRType.KX,
  RRType.CERT,
  RRType.APL,
  RRType.SSHFP,
  RRType.IPSECKEY,
  RRType.RRSIG,
  RRType.NSEC,
  RRType.DHCID,
  RRType.TLSA,
  RRType.SMIMEA,
  RRType.HIP,
  RRType.CDS,
  RRType.CDNSKEY,
  RRType.OPENPGPKEY,
  RRType.CSYNC,
  RRType.ZONEMD,
  RRType.SVCB,
  RRType.HTTPS,
  RRType.DSYNC,
  RRType.HHIT,
  RRType.BRID,
  RRType.SPF,
  RRType.NID,
  RRType.L32,
  RRType.L64,
  RRType.LP,
  RRType.EUI48,
  RRType.EUI64,
  RRType.URI,
  RRType.CAA,
  RRType.AVC,
  RRType.DOA,
  RRType.AMTRELAY,
  RRType.RESINFO,
  RRType.WALLET,
  RRType.CLA,
  RRType.IPN,
]
const APEX_TYPES: readonly number[] = [...TYPES, RRType.NS, RRType.SOA, RRType.DNSKEY]
const PROVED: readonly number[] = [RRType.RRSIG, RRType.NSEC]

/** Returns the types of an NSEC record of compact denial (RFC 9824 section 3). `proof`: see `Proof`. */
export function provenTypes(proof: number, isApex: boolean): readonly number[] {
  if (proof === Proof.NoName) return [...PROVED, RRType.NXNAME]
  if (proof === Proof.Insecure) return [...PROVED, RRType.NS]
  const types = isApex ? APEX_TYPES : TYPES
  // Also a CNAME, so that no validator concludes anything from the record.
  if (proof === Proof.Name) return isApex ? types : [...types, RRType.CNAME]
  return types.filter((type) => type !== proof)
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
