import { RRType } from '../iana/index.ts'
import { ipv4, ipv6 } from './addresses.ts'
import { base64ToEnd, hashedOwner, hexToEnd, salt } from './binary.ts'
import { checkDelegationDigest, checkZoneDigest } from './digests.ts'
import { checkLocation, location } from './loc.ts'
import { compressedName, plainName } from './names.ts'
import { algorithm, seconds, timestamp, typeCode, u8, u16, u32 } from './numbers.ts'
import type { RdataPart } from './part.ts'
import { characterString, characterStrings, propertyTag, textToEnd } from './strings.ts'
import { checkAlias, svcParams } from './svc-params.ts'
import { typeBitmap } from './type-bitmap.ts'

/** How the rdata of one type is made up. */
export interface RdataLayout {
  readonly parts: readonly RdataPart[]
  /**
   * What is wrong with well-formed rdata that text should not say; undefined if nothing. Packets are
   * not held to it, and such rdata prints as unknown.
   */
  readonly check: ((rdata: Uint8Array) => string | undefined) | undefined
}

const layoutOfType = new Map<number, RdataLayout>()

/** The layout of `type`; undefined if its rdata is opaque to us (RFC 3597). */
export function layoutOf(type: number): RdataLayout | undefined {
  return layoutOfType.get(type)
}

/** The types whose rdata we know from the inside. */
export function knownTypes(): number[] {
  return [...layoutOfType.keys()]
}

function define(
  types: readonly number[],
  parts: readonly RdataPart[],
  check?: (rdata: Uint8Array) => string | undefined,
): void {
  for (const type of types) layoutOfType.set(type, { parts, check })
}

// RFC 1035, with RFC 3596 (AAAA), 1183 (RP AFSDB RT), 2163 (PX), 2230 (KX), 2782 (SRV), 3403 (NAPTR),
// 6672 (DNAME): names may arrive compressed in all of them.
define([RRType.A], [ipv4])
define([RRType.AAAA], [ipv6])
define([
  RRType.NS,
  RRType.MD,
  RRType.MF,
  RRType.CNAME,
  RRType.MB,
  RRType.MG,
  RRType.MR,
  RRType.PTR,
  RRType.DNAME,
], [compressedName])
define([RRType.SOA], [
  compressedName,
  compressedName,
  u32('a serial'),
  seconds('a refresh interval'),
  seconds('a retry interval'),
  seconds('an expire time'),
  seconds('a minimum TTL'),
])
define([RRType.MINFO, RRType.RP], [compressedName, compressedName])
define([RRType.MX, RRType.RT, RRType.KX], [u16('a preference'), compressedName])
define([RRType.AFSDB], [u16('a subtype'), compressedName])
define([RRType.PX], [u16('a preference'), compressedName, compressedName])
define([RRType.SRV], [u16('a priority'), u16('a weight'), u16('a port'), compressedName])
define([RRType.NAPTR], [
  u16('an order'),
  u16('a preference'),
  characterString('flags'),
  characterString('a service'),
  characterString('a regular expression'),
  compressedName,
])

// Text: RFC 1035, 7208 (SPF), 8659 (CAA), 7553 (URI)
define([RRType.TXT, RRType.SPF], [characterStrings])
define([RRType.HINFO], [characterString('a CPU'), characterString('an operating system')])
define([RRType.CAA], [u8('flags'), propertyTag, textToEnd('a property value', 0)])
define([RRType.URI], [u16('a priority'), u16('a weight'), textToEnd('a URI', 1)])

// Place: RFC 1876
define([RRType.LOC], [location], checkLocation)

// DNSSEC: RFC 4034, 5155, 7344, 8976, 2535 (KEY SIG), 7477 (CSYNC)
define(
  [RRType.DS, RRType.CDS],
  [u16('a key tag'), algorithm, u8('a digest type'), hexToEnd('a digest')],
  checkDelegationDigest,
)
define([RRType.DNSKEY, RRType.CDNSKEY], [
  u16('flags'),
  u8('a protocol'),
  algorithm,
  base64ToEnd('a public key'),
])
define([RRType.KEY], [u16('flags'), u8('a protocol'), algorithm, base64ToEnd('a public key', 0)])
const signature = (signer: RdataPart): RdataPart[] => [
  typeCode,
  algorithm,
  u8('a number of labels'),
  u32('a TTL'),
  timestamp,
  timestamp,
  u16('a key tag'),
  signer,
  base64ToEnd('a signature'),
]
define([RRType.RRSIG], signature(plainName))
define([RRType.SIG], signature(compressedName))
define([RRType.NSEC], [plainName, typeBitmap])
define([RRType.NSEC3], [
  u8('a hash algorithm'),
  u8('flags'),
  u16('iterations'),
  salt,
  hashedOwner,
  typeBitmap,
])
define([RRType.NSEC3PARAM], [u8('a hash algorithm'), u8('flags'), u16('iterations'), salt])
define([RRType.CSYNC], [u32('a serial'), u16('flags'), typeBitmap])
define(
  [RRType.ZONEMD],
  [u32('a serial'), u8('a scheme'), u8('a hash algorithm'), hexToEnd('a digest')],
  checkZoneDigest,
)

// Keys of others: RFC 6698, 8162, 4255, 7929
define([RRType.TLSA, RRType.SMIMEA], [
  u8('a usage'),
  u8('a selector'),
  u8('a matching type'),
  hexToEnd('certificate data'),
])
define([RRType.SSHFP], [u8('an algorithm'), u8('a fingerprint type'), hexToEnd('a fingerprint')])
define([RRType.OPENPGPKEY], [base64ToEnd('a key')])

// Services: RFC 9460
define([RRType.SVCB, RRType.HTTPS], [u16('a priority'), plainName, svcParams], checkAlias)
