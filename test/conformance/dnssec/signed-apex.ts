import { createHash } from 'node:crypto'
import { exchangeTcp } from '../../../src/client/exchange.ts'
import {
  coveredType,
  expirationOf,
  inceptionOf,
  originalTtlOf,
  tagOf,
  verifySet,
} from '../../../src/dns/dnssec/rrsig.ts'
import { printType, RRType } from '../../../src/dns/iana/types.ts'
import {
  readMessage,
  type WireMessage,
  type WireRecord,
  wireName,
  wireQuery,
} from '../../support/wire.ts'

/** The records of one type and name in a section, with their signatures. */
export interface Rrset {
  readonly owner: string
  readonly type: number
  readonly rdata: readonly Uint8Array[]
  readonly rrsigs: readonly Uint8Array[]
}

/** A DNSKEY record (RFC 4034 section 2). */
export interface Dnskey {
  readonly rdata: Uint8Array
  readonly flags: number
  readonly algorithm: number
  readonly tag: number
}

const NAMES_IN_RDATA: readonly number[] = [RRType.NS, RRType.SOA, RRType.MX, RRType.CNAME]
const SOA_NUMBERS_OCTETS = 20

/** Asks over TCP, with DO. @throws Error without a reply. */
export async function ask(port: number, name: string, type: number): Promise<WireMessage> {
  const query = wireQuery({ name, type, flags: 0, edns: { flags: 0x8000 } })
  const server = { host: '127.0.0.1', port }
  const reply = await exchangeTcp(query, { server, timeoutMs: 15_000 }, () => true)
  if (!(reply instanceof Uint8Array))
    throw new Error(`${name} ${printType(type)}: ${reply.failure}`)
  return readMessage(reply)
}

/** Returns the RRsets of a section, without RRSIG RRsets of their own. */
export function rrsetsOf(section: readonly WireRecord[]): Rrset[] {
  const data = section.filter(({ type }) => type !== RRType.RRSIG)
  const keys = [...new Set(data.map(({ name, type }) => `${name} ${type}`))]
  return keys.map((key) => {
    const records = data.filter(({ name, type }) => `${name} ${type}` === key)
    const { name: owner, type } = records[0]!
    const rrsigs = section.filter((record) => {
      return (
        record.type === RRType.RRSIG && record.name === owner && coveredType(record.rdata) === type
      )
    })
    return { owner, type, rdata: records.map(plainRdata), rrsigs: rrsigs.map(({ rdata }) => rdata) }
  })
}

/** Rdata without compressed names. */
function plainRdata({ type, rdata, names }: WireRecord): Uint8Array {
  if (!NAMES_IN_RDATA.includes(type)) return rdata
  const head = type === RRType.MX ? rdata.subarray(0, 2) : new Uint8Array(0)
  const tail = type === RRType.SOA ? rdata.subarray(-SOA_NUMBERS_OCTETS) : new Uint8Array(0)
  return Buffer.concat([head, ...names.map(wireName), tail])
}

export function readDnskey(rdata: Uint8Array): Dnskey {
  return { rdata, flags: rdata[0]! * 256 + rdata[1]!, algorithm: rdata[3]!, tag: tagOfKey(rdata) }
}

/** RFC 4034 appendix B. */
function tagOfKey(rdata: Uint8Array): number {
  let sum = 0
  for (const [i, octet] of rdata.entries()) sum += i % 2 === 0 ? octet * 256 : octet
  return (sum + (sum >> 16)) & 0xffff
}

/** True if the DS rdata is that of the key (RFC 4034 section 5.1.4). */
export function isDsOf(ds: Uint8Array, zone: string, { rdata, algorithm, tag }: Dnskey): boolean {
  const hash = { 2: 'sha256', 4: 'sha384' }[ds[3]!]
  if (hash === undefined || ds[0]! * 256 + ds[1]! !== tag || ds[2] !== algorithm) return false
  const digest = createHash(hash).update(wireName(zone)).update(rdata).digest()
  return digest.equals(ds.subarray(4))
}

/** Returns what is wrong with the signatures of an RRset; all must be valid. */
export function faultsOfSignatures(set: Rrset, keys: readonly Dnskey[]): string[] {
  const what = `${set.owner} ${printType(set.type)}`
  if (set.rrsigs.length === 0) return [`${what} has no RRSIG`]
  const nowSeconds = Date.now() / 1000
  return set.rrsigs.flatMap((rrsig) => {
    if (inceptionOf(rrsig) > nowSeconds) return [`${what}: RRSIG is not valid yet`]
    if (expirationOf(rrsig) < nowSeconds) return [`${what}: RRSIG has expired`]
    return isSignedBy(set, rrsig, keys) ? [] : [`${what}: no key matches the RRSIG`]
  })
}

/** True if one of the keys has made the signature. */
export function isSignedBy(set: Rrset, rrsig: Uint8Array, keys: readonly Dnskey[]): boolean {
  const signed = { ...set, owner: wireName(set.owner), ttlSeconds: originalTtlOf(rrsig) }
  return keys.some(({ tag, rdata }) => tag === tagOf(rrsig) && verifySet(signed, rrsig, rdata))
}

/** The types in the bitmap at `at` of NSEC or NSEC3 rdata, as mnemonics. */
export function typesAt(rdata: Uint8Array, at: number): string[] {
  const types: string[] = []
  for (let window = at; window < rdata.length; window += 2 + rdata[window + 1]!) {
    for (let bit = 0; bit < rdata[window + 1]! * 8; bit++) {
      const isSet = (rdata[window + 2 + (bit >> 3)]! & (0x80 >> (bit & 7))) !== 0
      if (isSet) types.push(printType(rdata[window]! * 256 + bit))
    }
  }
  return types
}
