import fc from 'fast-check'
import { RRType } from '../../src/dns/iana/index.ts'
import { layoutOf } from '../../src/dns/rdata/layouts.ts'
import { arbitraryName, arbitraryOctets } from './arbitrary.ts'

type Octets = fc.Arbitrary<Uint8Array>

/** The types whose rdata has a structure that we know. */
export const knownTypes: readonly number[] = [...new Array(0x10000).keys()].filter(
  (type) => layoutOf(type) !== undefined,
)

/** The parts one behind the other. */
function concat(...parts: readonly Octets[]): Octets {
  return fc.tuple(...parts).map((octets) => new Uint8Array(Buffer.concat(octets)))
}

function uint(octets: 1 | 2 | 4, max = 256 ** octets - 1): Octets {
  return fc.nat({ max: Math.min(max, 0x7fffffff) }).map((value) => {
    const buffer = Buffer.alloc(octets)
    buffer.writeUIntBE(value, 0, octets)
    return new Uint8Array(buffer)
  })
}

const u8 = uint(1)
const u16 = uint(2)
// Both halves drawn on their own, so that the highest bit is drawn too.
const u32 = concat(u16, u16)
const name = arbitraryName

function counted(octets: Octets): Octets {
  return octets.map((value) => new Uint8Array([value.length, ...value]))
}

const string = counted(fc.oneof(arbitraryOctets(20), arbitraryOctets(255)))
const some = arbitraryOctets(80, 1)
const strings = fc
  .array(string, { minLength: 1, maxLength: 4 })
  .map((parts) => new Uint8Array(Buffer.concat(parts)))

const tag = counted(
  fc.stringMatching(/^[a-zA-Z0-9]{1,20}$/).map((text) => new Uint8Array(Buffer.from(text))),
)

const typeBitmap: Octets = fc
  .uniqueArray(fc.nat({ max: 65535 }), { maxLength: 12 })
  .map((types) => {
    const windows = new Map<number, Uint8Array>()
    for (const type of types.sort((a, b) => a - b)) {
      const window = windows.get(type >> 8) ?? new Uint8Array(32)
      window[(type & 255) >> 3]! |= 0x80 >> (type & 7)
      windows.set(type >> 8, window)
    }
    const octets: number[] = []
    for (const [number, bitmap] of windows) {
      const length = bitmap.findLastIndex((octet) => octet !== 0) + 1
      octets.push(number, length, ...bitmap.subarray(0, length))
    }
    return new Uint8Array(octets)
  })

const precision = fc
  .tuple(fc.integer({ min: 1, max: 9 }), fc.nat({ max: 9 }))
  .map(([mantissa, exponent]) => new Uint8Array([(mantissa << 4) | exponent]))

function angle(degreesMax: number): Octets {
  const max = degreesMax * 3_600_000
  return fc.integer({ min: -max, max }).map((arcMs) => {
    const buffer = Buffer.alloc(4)
    buffer.writeUInt32BE(2 ** 31 + arcMs)
    return new Uint8Array(buffer)
  })
}

const protocolIds = fc
  .array(counted(arbitraryOctets(8, 1)), { minLength: 1, maxLength: 3 })
  .map((ids) => new Uint8Array(Buffer.concat(ids)))

function repeated(octets: number): Octets {
  return fc
    .array(arbitraryOctets(octets, octets), { minLength: 1, maxLength: 3 })
    .map((items) => new Uint8Array(Buffer.concat(items)))
}

/** Parameters that hold together: `mandatory` lists only what is there, no-default-alpn only beside alpn. */
const svcParams: Octets = fc
  .record(
    {
      1: protocolIds,
      2: fc.constant(new Uint8Array(0)),
      3: u16,
      4: repeated(4),
      5: some,
      6: repeated(16),
      7: fc.constantFrom('/dns-query{?dns}', '/é"\\{?a,dns}').map((text) => Buffer.from(text)),
      8: fc.constant(new Uint8Array(0)),
      667: arbitraryOctets(40),
      65534: arbitraryOctets(10),
    },
    { requiredKeys: [] },
  )
  .chain((drawn) => {
    const params = new Map(Object.entries(drawn).map(([key, value]) => [Number(key), value]))
    if (!params.has(1)) params.delete(2)
    return fc.subarray([...params.keys()]).map((listed) => {
      const mandatory = listed.sort((a, b) => a - b).flatMap((key) => [key >> 8, key & 255])
      if (mandatory.length > 0) params.set(0, new Uint8Array(mandatory))
      const octets: number[] = []
      for (const key of [...params.keys()].sort((a, b) => a - b)) {
        const value = params.get(key)!
        octets.push(key >> 8, key & 255, value.length >> 8, value.length & 255, ...value)
      }
      return new Uint8Array(octets)
    })
  })

function signature(): Octets {
  return concat(u16, u8, u8, u32, u32, u32, u16, name, some)
}

const serviceBinding = fc.oneof(
  concat(fc.constant(new Uint8Array(2)), name),
  concat(
    uint(2).map((value) => value.with(1, value[1]! | 1)),
    name,
    svcParams,
  ),
)

/** Digests of the lengths that their types ask for, and of types without a rule. */
const delegation = concat(
  u16,
  u8,
  fc.oneof(
    concat(fc.constant(new Uint8Array([1])), arbitraryOctets(20, 20)),
    concat(fc.constant(new Uint8Array([2])), arbitraryOctets(32, 32)),
    concat(fc.constant(new Uint8Array([200])), some),
  ),
)
const zoneDigest = concat(
  u32,
  u8,
  fc.oneof(
    concat(fc.constant(new Uint8Array([1])), arbitraryOctets(48, 48)),
    concat(fc.constant(new Uint8Array([2])), arbitraryOctets(64, 64)),
    concat(fc.constant(new Uint8Array([200])), arbitraryOctets(40, 12)),
  ),
)

const key = concat(u16, u8, u8, some)
const certificate = concat(u8, u8, u8, some)
const preference = concat(u16, name)

/** Octets without zeros at the end. */
const trimmed = (max: number): Octets =>
  arbitraryOctets(max).map((octets) =>
    octets.slice(0, octets.findLastIndex((octet) => octet !== 0) + 1),
  )

const prefixes = fc
  .array(
    fc
      .tuple(fc.boolean(), fc.boolean(), fc.nat({ max: 32 }), trimmed(4))
      .map(([isIPv6, isNegated, bits, address]) => [
        ...[0, isIPv6 ? 2 : 1, isIPv6 ? bits * 4 : bits],
        ...[(isNegated ? 0x80 : 0) | address.length, ...address],
      ]),
    { maxLength: 4 },
  )
  .map((items) => new Uint8Array(items.flat()))

/** By type of gateway. */
const gateways = [
  fc.constant(new Uint8Array(0)),
  arbitraryOctets(4, 4),
  arbitraryOctets(16, 16),
  name,
]
const octet = (value: number): Octets => fc.constant(new Uint8Array([value]))
const ipsecKey = fc.oneof(
  ...gateways.map((gateway, type) => concat(u8, octet(type), u8, gateway, arbitraryOctets(40))),
)
const amtRelay = fc.oneof(
  ...gateways.flatMap((gateway, type) => [
    concat(u8, octet(type), gateway),
    concat(u8, octet(0x80 | type), gateway),
  ]),
)

const hostIdentity = fc
  .tuple(arbitraryOctets(255, 1), u8, arbitraryOctets(300, 1), fc.array(name, { maxLength: 3 }))
  .map(
    ([tag, [algorithm = 0], key, names]) =>
      new Uint8Array([
        ...[tag.length, algorithm, key.length >> 8, key.length & 255],
        ...[...tag, ...key, ...names.flatMap((server) => [...server])],
      ]),
  )

const prefixedAddress = fc
  .tuple(fc.nat({ max: 128 }), arbitraryOctets(16, 16), name)
  .map(([bits, address, prefixName]) => {
    const suffix = address.slice(bits >> 3)
    if (suffix.length > 0) suffix[0] = suffix[0]! & (0xff >> (bits & 7))
    return new Uint8Array([bits, ...suffix, ...(bits === 0 ? [] : prefixName)])
  })

const nxtBitmap = trimmed(16).map((octets) =>
  octets.length < 2 ? new Uint8Array([1]) : octets.with(0, octets[0]! & 0x7f),
)
const locator = concat(u16, arbitraryOctets(8, 8))

/** Uncompressed wire rdata that text can say, for every type that has a text form, by type. */
export const arbitraryRdata: ReadonlyMap<number, Octets> = new Map([
  [RRType.A, arbitraryOctets(4, 4)],
  [RRType.AAAA, arbitraryOctets(16, 16)],
  [RRType.NS, name],
  [RRType.MD, name],
  [RRType.MF, name],
  [RRType.CNAME, name],
  [RRType.MB, name],
  [RRType.MG, name],
  [RRType.MR, name],
  [RRType.PTR, name],
  [RRType.DNAME, name],
  [RRType.SOA, concat(name, name, u32, u32, u32, u32, u32)],
  [RRType.MINFO, concat(name, name)],
  [RRType.RP, concat(name, name)],
  [RRType.MX, preference],
  [RRType.RT, preference],
  [RRType.KX, preference],
  [RRType.AFSDB, preference],
  [RRType.PX, concat(u16, name, name)],
  [RRType.SRV, concat(u16, u16, u16, name)],
  [RRType.NAPTR, concat(u16, u16, string, string, string, name)],
  [RRType.TXT, strings],
  [RRType.SPF, strings],
  [RRType.HINFO, concat(string, string)],
  [RRType.CAA, concat(u8, tag, arbitraryOctets(300))],
  [RRType.URI, concat(u16, u16, some)],
  [RRType.LOC, concat(uint(1, 0), precision, precision, precision, angle(90), angle(180), u32)],
  [RRType.DS, delegation],
  [RRType.CDS, delegation],
  [RRType.DNSKEY, key],
  [RRType.CDNSKEY, key],
  [RRType.KEY, fc.oneof(key, concat(u16, u8, u8))],
  [RRType.RRSIG, signature()],
  [RRType.SIG, signature()],
  [RRType.NSEC, concat(name, typeBitmap)],
  [RRType.NSEC3, concat(u8, u8, u16, counted(arbitraryOctets(9)), counted(some), typeBitmap)],
  [RRType.NSEC3PARAM, concat(u8, u8, u16, counted(arbitraryOctets(255)))],
  [RRType.CSYNC, concat(u32, u16, typeBitmap)],
  [RRType.ZONEMD, zoneDigest],
  [RRType.TLSA, certificate],
  [RRType.SMIMEA, certificate],
  [RRType.SSHFP, concat(u8, u8, some)],
  [RRType.OPENPGPKEY, some],
  [RRType.SVCB, serviceBinding],
  [RRType.HTTPS, serviceBinding],
  [RRType.WKS, concat(arbitraryOctets(4, 4), u8, trimmed(40))],
  [RRType.X25, string],
  [RRType.ISDN, fc.oneof(string, concat(string, string))],
  [RRType.GPOS, concat(string, string, string)],
  [RRType.NSAP, some],
  [RRType['NSAP-PTR'], name],
  [RRType.NXT, concat(name, nxtBitmap)],
  [RRType.EID, some],
  [RRType.NIMLOC, some],
  [RRType.CERT, concat(u16, u16, u8, some)],
  [RRType.A6, prefixedAddress],
  [RRType.SINK, concat(u8, u8, u8, arbitraryOctets(40))],
  [RRType.APL, prefixes],
  [RRType.IPSECKEY, ipsecKey],
  [RRType.DHCID, some],
  [RRType.HIP, hostIdentity],
  [RRType.NINFO, strings],
  [RRType.RKEY, key],
  [RRType.TALINK, concat(name, name)],
  [RRType.DSYNC, concat(u16, u8, u16, name)],
  [RRType.HHIT, some],
  [RRType.BRID, some],
  [RRType.UINFO, string],
  [RRType.UID, u32],
  [RRType.GID, u32],
  [RRType.NID, locator],
  [RRType.L32, concat(u16, arbitraryOctets(4, 4))],
  [RRType.L64, locator],
  [RRType.LP, preference],
  [RRType.EUI48, arbitraryOctets(6, 6)],
  [RRType.EUI64, arbitraryOctets(8, 8)],
  [RRType.AVC, strings],
  [RRType.DOA, concat(u32, u32, u8, string, arbitraryOctets(40))],
  [RRType.AMTRELAY, amtRelay],
  [RRType.RESINFO, strings],
  [RRType.WALLET, strings],
  [RRType.CLA, strings],
  [RRType.IPN, concat(u32, u32)],
  [RRType.TA, delegation],
  [RRType.DLV, delegation],
])
