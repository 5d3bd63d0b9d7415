import { RRType } from '../iana/index.ts'
import { addressPrefixes, checkAddressPrefixes } from './address-prefixes.ts'
import { ipv4, ipv6 } from './addresses.ts'
import { base64ToEnd, hashedOwner, hexToEnd, optionalBase64, salt } from './binary.ts'
import { checkZoneDigest } from './digests.ts'
import { amtRelay, checkAmtRelay, checkIpsecKey, ipsecGateway } from './gateway.ts'
import { eui48, eui64, locator64 } from './groups.ts'
import {
  checkNxt,
  checkPrefixedAddress,
  checkWellKnownServices,
  nsapAddress,
  nxtBitmap,
  prefixedAddress,
  wellKnownServices,
} from './historic.ts'
import { hostIdentity } from './host-identity.ts'
import { checkLocation, location } from './loc.ts'
import { compressedName, plainName } from './names.ts'
import {
  algorithm,
  certificateType,
  seconds,
  syncScheme,
  timestamp,
  typeCode,
  u8,
  u16,
  u32,
  u64,
} from './numbers.ts'
import type { RdataPart } from './part.ts'
import {
  characterString,
  characterStrings,
  optionalString,
  propertyTag,
  textToEnd,
} from './strings.ts'
import { checkAlias, svcParams } from './svc-params.ts'
import { typeBitmap } from './type-bitmap.ts'

/** The structure of the rdata of one type. */
export interface RdataLayout {
  readonly parts: readonly RdataPart[]
  /**
   * Returns why text must not contain this well-formed rdata; undefined if it may. Packets may
   * contain such rdata; it is printed in the form for unknown types.
   */
  readonly check: ((rdata: Uint8Array) => string | undefined) | undefined
}

const layoutOfType = new Map<number, RdataLayout>()

/** Returns the layout of `type`; undefined if its rdata is opaque (RFC 3597). */
export function layoutOf(type: number): RdataLayout | undefined {
  return layoutOfType.get(type)
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

// Text: RFC 1035, 7208 (SPF), 9606 (RESINFO), 8659 (CAA), 7553 (URI), 1183 (X25 ISDN), 1712 (GPOS)
define([
  RRType.TXT,
  RRType.SPF,
  RRType.AVC,
  RRType.CLA,
  RRType.NINFO,
  RRType.RESINFO,
  RRType.WALLET,
], [characterStrings])
define([RRType.UINFO], [characterString('information on a user')])
define([RRType.X25], [characterString('a PSDN address')])
define([RRType.ISDN], [characterString('an ISDN address'), optionalString('a subaddress')])
define([RRType.GPOS], [
  characterString('a longitude'),
  characterString('a latitude'),
  characterString('an altitude'),
])
define([RRType.HINFO], [characterString('a CPU'), characterString('an operating system')])
define([RRType.CAA], [u8('flags'), propertyTag, textToEnd('a property value', 0)])
define([RRType.URI], [u16('a priority'), u16('a weight'), textToEnd('a URI', 1)])

// Place: RFC 1876
define([RRType.LOC], [location], checkLocation)

// DNSSEC: RFC 4034, 5155, 7344, 8976, 2535 (KEY SIG NXT), 4431 (DLV), 7477 (CSYNC), 9859 (DSYNC)
define([RRType.DS, RRType.CDS, RRType.DLV, RRType.TA], [
  u16('a key tag'),
  algorithm,
  u8('a digest type'),
  hexToEnd('a digest'),
])
define([RRType.DNSKEY, RRType.CDNSKEY, RRType.RKEY], [
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
define([RRType.NXT], [compressedName, nxtBitmap], checkNxt)
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
define([RRType.DSYNC], [typeCode, syncScheme, u16('a port'), plainName])
define([RRType.TALINK], [plainName, plainName])
define(
  [RRType.ZONEMD],
  [u32('a serial'), u8('a scheme'), u8('a hash algorithm'), hexToEnd('a digest')],
  checkZoneDigest,
)

// Keys of other protocols: RFC 6698, 8162, 4255, 7929, 4398 (CERT), 4701 (DHCID), 9886 (HHIT BRID),
// 4025 (IPSECKEY), 8005 (HIP)
define([RRType.TLSA, RRType.SMIMEA], [
  u8('a usage'),
  u8('a selector'),
  u8('a matching type'),
  hexToEnd('certificate data'),
])
define([RRType.SSHFP], [u8('an algorithm'), u8('a fingerprint type'), hexToEnd('a fingerprint')])
define([RRType.OPENPGPKEY], [base64ToEnd('a key')])
define([RRType.CERT], [certificateType, u16('a key tag'), algorithm, base64ToEnd('a certificate')])
define([RRType.DHCID], [base64ToEnd('an identifier')])
define([RRType.HHIT, RRType.BRID], [base64ToEnd('data')])
define(
  [RRType.IPSECKEY],
  [u8('a precedence'), ipsecGateway, base64ToEnd('a public key', 0)],
  checkIpsecKey,
)
define([RRType.HIP], [hostIdentity])

// Addresses and identifiers: RFC 1035 (WKS), 1706 (NSAP), 1348 (NSAP-PTR), 2874 (A6), 3123 (APL), 6742 (NID
// L32 L64 LP), 7043 (EUI48 EUI64), 8777 (AMTRELAY); EID and NIMLOC of Nimrod
define([RRType.WKS], [ipv4, wellKnownServices], checkWellKnownServices)
define([RRType.NSAP], [nsapAddress])
define([RRType['NSAP-PTR']], [plainName])
define([RRType.A6], [prefixedAddress], checkPrefixedAddress)
define([RRType.APL], [addressPrefixes], checkAddressPrefixes)
define([RRType.NID, RRType.L64], [u16('a preference'), locator64])
define([RRType.L32], [u16('a preference'), ipv4])
define([RRType.LP], [u16('a preference'), plainName])
define([RRType.EUI48], [eui48])
define([RRType.EUI64], [eui64])
define([RRType.AMTRELAY], [u8('a precedence'), amtRelay], checkAmtRelay)
define([RRType.EID, RRType.NIMLOC], [hexToEnd('a value')])
define([RRType.UID, RRType.GID], [u32('an id')])
define([RRType.IPN], [u64('a node number')])

// Without an RFC, in BIND's form
define([RRType.SINK], [u8('a meaning'), u8('a coding'), u8('a subcoding'), base64ToEnd('data', 0)])
define([RRType.DOA], [
  u32('an enterprise number'),
  u32('a type'),
  u8('a location'),
  characterString('a media type'),
  optionalBase64('data'),
])

// Services: RFC 9460
define([RRType.SVCB, RRType.HTTPS], [u16('a priority'), plainName, svcParams], checkAlias)
