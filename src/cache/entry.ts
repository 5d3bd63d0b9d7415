import { copyOctets } from '../base/octets.ts'
import type { Query } from '../dns/message/query.ts'
import type { Response } from '../dns/message/response.ts'
import type { Section } from '../dns/message/section.ts'
import { mixHash } from '../dns/name/hash.ts'
import { LOWER } from '../dns/name/lower.ts'
import { nameOctetsAt } from '../dns/name/name-at.ts'
import type { Transaction } from '../plugin/transaction.ts'

/*
 * An entry, numbers little-endian; its length is a multiple of 8:
 *
 *     0 octets │ 4 hash │ 8 stored, ms (64 bits, float) │ 16 lifetime, s │ 20 rcode, flags, octets of the key │
 *     24 records, scope │ 28 signatures valid, s │ 32 key │ record │ record │ …
 *
 *     key:    qname, type (2), form (1), and for form Scoped: family, bits, prefix
 *     record: section, type, class, TTL, octets of owner and rdata, owner, rdata; 0 octets of owner = the qname
 */
export const EntryField = {
  Octets: 0,
  Hash: 4,
  StoredMs: 8,
  LifetimeSeconds: 16,
  Rcode: 20,
  Flags: 21,
  KeyOctets: 22,
  Records: 24,
  ScopeBits: 26,
  SignedSeconds: 28,
} as const
export const ENTRY_HEADER_OCTETS = 32
const RECORD_HEADER_OCTETS = 13

export const EntryFlag = { Authentic: 1, RecursionAvailable: 2 } as const

/** What a key is for; DO, CD and the variant are added to it. */
export const Form = {
  /** Queries without a client subnet. */
  Plain: 0,
  /** Queries with one, if the answer is the same for all subnets. */
  AnySubnet: 1,
  /** Queries from one prefix. */
  Scoped: 2,
  /** Not an answer: the lengths of the prefixes that have answers. */
  Lengths: 3,
} as const
export type Form = (typeof Form)[keyof typeof Form]
const FORM_DNSSEC_OK = 4
const FORM_CHECKING_DISABLED = 8

/** Answers with the same question and different keys: those of different stores in one memory. */
export const Variant = {
  Only: 0,
  /** The answers of clients that get a new answer later than others. */
  Late: 16,
} as const
export type Variant = (typeof Variant)[keyof typeof Variant]

const FLAG_CD = 0x0010

const NAME_OCTETS_MAX = 255
const KEY_OCTETS_MAX = NAME_OCTETS_MAX + 3 + 2 + 16

/** The key of an entry. Reused. */
export class EntryKey {
  readonly bytes = new Uint8Array(new ArrayBuffer(KEY_OCTETS_MAX + 4))
  octets = 0
  hash = 0
  readonly #variant: Variant

  constructor(variant: Variant) {
    this.#variant = variant
  }

  /** The key of a query in a form; `bits`: of the client subnet, for `Scoped`. @hot */
  set(query: Query, form: Form, bits: number): void {
    const { bytes } = this
    const { qname, qnameOctets, qtype } = query
    copyOctets(qname, 0, bytes, 0, qnameOctets)
    let at = qnameOctets
    bytes[at++] = qtype >> 8
    bytes[at++] = qtype
    const whole =
      form |
      this.#variant |
      (query.dnssecOk ? FORM_DNSSEC_OK : 0) |
      ((query.flags & FLAG_CD) !== 0 ? FORM_CHECKING_DISABLED : 0)
    bytes[at++] = whole
    let hash = query.suffixHash[0]! ^ Math.imul((qtype << 4) | whole, 0x9e3779b1)
    if (form === Form.Scoped) {
      bytes[at++] = query.ecsFamily
      bytes[at++] = bits
      for (let i = 0; i * 8 < bits; i++) {
        const rest = bits - i * 8
        const octet = query.ecsAddress[i]! & (rest >= 8 ? 0xff : 0xff << (8 - rest))
        bytes[at++] = octet
        hash = Math.imul(hash ^ octet, 0x01000193)
      }
      hash ^= bits << 8
    }
    this.octets = at
    this.hash = mixHash(hash) | 0
  }
}

/**
 * Writes the records of a response as an entry to `entry`, which has the key already. Returns its octets; 0
 * = there is no room.
 */
export function writeRecords(
  entry: Uint8Array,
  start: number,
  query: Query,
  response: Response,
): number {
  const view = new DataView(entry.buffer, entry.byteOffset)
  let at = start
  for (let i = 0; i < response.count; i++) {
    const owner = response.ownerBytes[i]!
    const ownerAt = response.ownerOffset[i]!
    const ownerOctets = isQname(query, owner, ownerAt) ? 0 : nameOctetsAt(owner, ownerAt)
    const rdataOctets = response.rdataOctets[i]!
    if (at + RECORD_HEADER_OCTETS + ownerOctets + rdataOctets > entry.length) return 0
    view.setUint8(at, response.section[i]!)
    view.setUint16(at + 1, response.type[i]!, true)
    view.setUint16(at + 3, response.rrclass[i]!, true)
    view.setUint32(at + 5, response.ttlSeconds[i]!, true)
    view.setUint16(at + 9, ownerOctets, true)
    view.setUint16(at + 11, rdataOctets, true)
    at += RECORD_HEADER_OCTETS
    copyOctets(owner, ownerAt, entry, at, ownerOctets)
    at += ownerOctets
    copyOctets(response.rdataBytes[i]!, response.rdataOffset[i]!, entry, at, rdataOctets)
    at += rdataOctets
  }
  return at
}

/**
 * Adds the records of `entry` to the response. A stored TTL counts as at most `ttlMax`, and is sent
 * `ageSeconds` lower, but not below `ttlMin`. @hot
 */
export function readRecords(
  tx: Transaction,
  entry: Uint8Array,
  ageSeconds: number,
  ttlMin: number,
  ttlMax: number,
): void {
  const { query, response } = tx
  const records = entry[EntryField.Records]! | (entry[EntryField.Records + 1]! << 8)
  let at =
    ENTRY_HEADER_OCTETS + (entry[EntryField.KeyOctets]! | (entry[EntryField.KeyOctets + 1]! << 8))
  for (let i = 0; i < records; i++) {
    const section = entry[at]! as Section
    const type = entry[at + 1]! | (entry[at + 2]! << 8)
    const rrclass = entry[at + 3]! | (entry[at + 4]! << 8)
    const ttl =
      entry[at + 5]! | (entry[at + 6]! << 8) | (entry[at + 7]! << 16) | (entry[at + 8]! << 24)
    const ownerOctets = entry[at + 9]! | (entry[at + 10]! << 8)
    const rdataOctets = entry[at + 11]! | (entry[at + 12]! << 8)
    const ownerAt = at + RECORD_HEADER_OCTETS
    const rdataAt = ownerAt + ownerOctets
    const isQuestion = ownerOctets === 0
    const left = Math.max(ttlMin, Math.min(ttlMax, ttl >>> 0) - ageSeconds)
    response.add(
      section,
      isQuestion ? query.qname : entry,
      isQuestion ? 0 : ownerAt,
      type,
      rrclass,
      left,
      entry,
      rdataAt,
      rdataOctets,
    )
    at = rdataAt + rdataOctets
  }
}

function isQname({ qname, qnameOctets }: Query, owner: Uint8Array, at: number): boolean {
  if (owner === qname && at === 0) return true
  for (let i = 0; i < qnameOctets; i++) if (LOWER[owner[at + i]!] !== qname[i]) return false
  return true
}
