import { RRType } from '../dns/iana/index.ts'
import type { Query } from '../dns/message/query.ts'
import type { Response } from '../dns/message/response.ts'
import { Section } from '../dns/message/section.ts'
import { equalNamesAt } from '../dns/name/name-at.ts'
import { ResponseKind, responseKind } from '../plugin/status.ts'
import type { Transaction } from '../plugin/transaction.ts'

/** Minimum of octets of SOA rdata. */
const SOA_OCTETS_MIN = 22
/** Octets of RRSIG rdata before the signer's name (RFC 4034 section 3.1). */
const RRSIG_OCTETS_MIN = 18
const RRSIG_EXPIRATION = 8
const RRSIG_INCEPTION = 12

/** Longest chain of CNAMEs; resolvers follow 11 to 16. */
const CHAIN_MAX = 64

/** What an answer section has for a question. */
const Outcome = {
  /** Data of the name, or of the name that its CNAMEs lead to. */
  Found: 0,
  /** The CNAMEs lead to one name, or there are none. That name has no data of the type here. */
  Missing: 1,
  /** The CNAMEs are a loop, or a name has two. */
  Broken: 2,
} as const
type Outcome = (typeof Outcome)[keyof typeof Outcome]

/**
 * Classifies a reply as `responseKind` does, but by the end of its chain of CNAMEs. A chain without
 * data of the type at its end is NODATA. `Error`: the reply is not cached, because it contradicts
 * itself, or because it is negative without a SOA (RFC 2308 section 5). The records of the response
 * must have been expanded; the cache has no queries for ANY.
 */
export function cacheableKind(tx: Transaction, status: number): ResponseKind {
  const { query, response } = tx
  const kind = responseKind(tx, status)
  switch (kind) {
    case ResponseKind.NameError:
      return outcomeOf(query, response) === Outcome.Missing ? kind : ResponseKind.Error
    case ResponseKind.Answer:
      if (!hasAnswer(response)) return response.count > 0 ? kind : ResponseKind.Error
      return kindOfAnswer(query, response)
    default:
      return kind
  }
}

function kindOfAnswer(query: Query, response: Response): ResponseKind {
  const outcome = outcomeOf(query, response)
  if (outcome === Outcome.Found) return ResponseKind.Answer
  return outcome === Outcome.Missing && hasSoa(response) ? ResponseKind.NoData : ResponseKind.Error
}

function hasAnswer({ section, count }: Response): boolean {
  for (let i = 0; i < count; i++) if (section[i] === Section.Answer) return true
  return false
}

function hasSoa(response: Response): boolean {
  for (let i = 0; i < response.count; i++) if (isSoa(response, i)) return true
  return false
}

function isSoa({ section, type }: Response, i: number): boolean {
  return section[i] === Section.Authority && type[i] === RRType.SOA
}

/** Follows the CNAMEs from the qname on (RFC 1034 section 3.6.2). */
function outcomeOf(query: Query, response: Response): Outcome {
  const { qtype } = query
  let name = query.qname
  let nameAt = 0
  // A longer chain is a loop, or as good as one. The bound also limits the work for a reply with many CNAMEs.
  for (let steps = 0; steps <= CHAIN_MAX; steps++) {
    const alias = findAt(response, RRType.CNAME, name, nameAt)
    if (isAmbiguous(response, alias)) return Outcome.Broken
    if (qtype === RRType.CNAME || alias === -1) {
      return findAt(response, qtype, name, nameAt) === -1 ? Outcome.Missing : Outcome.Found
    }
    name = response.rdataBytes[alias]!
    nameAt = response.rdataOffset[alias]!
  }
  return Outcome.Broken
}

/** Returns the first answer record of a name and type; -1 = none. */
function findAt(response: Response, type: number, name: Uint8Array, at: number): number {
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== Section.Answer || response.type[i] !== type) continue
    if (equalNamesAt(response.ownerBytes[i]!, response.ownerOffset[i]!, name, at)) return i
  }
  return -1
}

/** True if the owner of CNAME `alias` has another one with another target (RFC 2181 section 10.1). */
function isAmbiguous(response: Response, alias: number): boolean {
  if (alias === -1) return false
  const { ownerBytes, ownerOffset, rdataBytes, rdataOffset } = response
  const name = ownerBytes[alias]!
  const nameAt = ownerOffset[alias]!
  for (let i = alias + 1; i < response.count; i++) {
    if (response.section[i] !== Section.Answer || response.type[i] !== RRType.CNAME) continue
    if (!equalNamesAt(ownerBytes[i]!, ownerOffset[i]!, name, nameAt)) continue
    const target = rdataBytes[alias]!
    if (!equalNamesAt(rdataBytes[i]!, rdataOffset[i]!, target, rdataOffset[alias]!)) return true
  }
  return false
}

/** The lowest TTL of the records, and the last number of a SOA in the authority section (RFC 2308 section 5). */
export function leastTtl(response: Response): number {
  let least = response.count === 0 ? 0 : 0xffff_ffff
  for (let i = 0; i < response.count; i++) {
    least = Math.min(least, response.ttlSeconds[i]!)
    const octets = response.rdataOctets[i]!
    if (!isSoa(response, i) || octets < SOA_OCTETS_MIN) continue
    const end = response.rdataOffset[i]! + octets
    least = Math.min(least, readUint32(response.rdataBytes[i]!, end - 4))
  }
  return least
}

/**
 * For how many seconds all signatures of the reply are valid (RFC 4035 section 5.3.3); 0 or less =
 * one is not valid. Signatures are data for a client that does not validate.
 */
export function signedSeconds({ dnssecOk }: Query, response: Response, nowMs: number): number {
  let least = Number.POSITIVE_INFINITY
  if (!dnssecOk) return least
  const now = Math.floor(nowMs / 1000)
  for (let i = 0; i < response.count; i++) {
    if (response.type[i] !== RRType.RRSIG || response.rdataOctets[i]! < RRSIG_OCTETS_MIN) continue
    const rdata = response.rdataBytes[i]!
    const at = response.rdataOffset[i]!
    // Serial numbers (RFC 4034 section 3.1.5).
    const sinceStart = (now - readUint32(rdata, at + RRSIG_INCEPTION)) | 0
    const untilEnd = (readUint32(rdata, at + RRSIG_EXPIRATION) - now) | 0
    least = Math.min(least, sinceStart < 0 ? 0 : untilEnd)
  }
  return least
}

function readUint32(bytes: Uint8Array, at: number): number {
  const number =
    (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
  return number >>> 0
}
