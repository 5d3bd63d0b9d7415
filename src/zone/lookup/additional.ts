import { RRType } from '../../dns/iana/types.ts'
import type { Query } from '../../dns/message/query.ts'
import { type Response, Section } from '../../dns/message/response.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import type { ZoneReader } from '../image/reader.ts'
import type { NameFinder } from './name-finder.ts'
import type { RRsetAdder } from './rrset-adder.ts'

/** Maximum of targets whose addresses one response carries. Bounds the cost of a set with thousands of targets. */
const TARGETS_MAX = 32

/**
 * Adds addresses, from all zones of the image, of the names that records of a response point to:
 * glue of referrals, and targets of NS, MX, SRV, SVCB and HTTPS (RFC 1034 section 4.3.2 step 6, RFC
 * 2782, RFC 9460 section 4.1). Adds no address that comes from a wildcard or through a CNAME: the
 * client queries for it.
 */
export class AdditionalSection {
  readonly #reader: ZoneReader
  readonly #finder: NameFinder
  readonly #adder: RRsetAdder
  readonly #target = new NameBuffer()
  /** Unfinished hashes of the targets that were looked up for this response. */
  readonly #seen = new Int32Array(TARGETS_MAX)

  constructor(reader: ZoneReader, finder: NameFinder, adder: RRsetAdder) {
    this.#reader = reader
    this.#finder = finder
    this.#adder = adder
  }

  /** Adds the addresses for the response's records `first`..`end`-1. @hot */
  add(query: Query, response: Response, first: number, end: number): void {
    let seen = 0
    for (let i = first; i < end && seen < TARGETS_MAX; i++) {
      const skip = targetOffset(response.type[i]!)
      if (skip < 0) return
      let bytes = response.rdataBytes[i]!
      let at = response.rdataOffset[i]! + skip
      const rdataEnd = response.rdataOffset[i]! + response.rdataOctets[i]!
      if (!this.#target.set(bytes, at, rdataEnd)) continue
      if (this.#target.labelCount === 0) {
        if (!isServiceMode(response, i)) continue
        // The target `.` of a service is the owner itself (RFC 9460 section 2.5.2).
        bytes = response.ownerBytes[i]!
        at = response.ownerOffset[i]!
        if (!this.#target.set(bytes, at, at + 255)) continue
      }
      const hash = this.#target.suffixHash[0]!
      if (this.#isSeen(hash, seen)) continue
      this.#seen[seen++] = hash
      this.#addAddresses(query, response, bytes, at)
    }
  }

  #isSeen(hash: number, count: number): boolean {
    for (let i = 0; i < count; i++) if (this.#seen[i] === hash) return true
    return false
  }

  #addAddresses(query: Query, response: Response, owner: Uint8Array, ownerOffset: number): void {
    const reader = this.#reader
    const zone = reader.matchZone(this.#target, 0)
    if (zone === 0) return
    const body = this.#finder.findTarget(zone, this.#target, reader.zoneLabel)
    if (body === 0) return
    const a = reader.findRRset(body, RRType.A)
    const aaaa = reader.findRRset(body, RRType.AAAA)
    if (a !== 0) this.#addSet(query, response, owner, ownerOffset, body, a)
    if (aaaa !== 0) this.#addSet(query, response, owner, ownerOffset, body, aaaa)
  }

  #addSet(
    query: Query,
    response: Response,
    owner: Uint8Array,
    ownerOffset: number,
    body: number,
    rrset: number,
  ): void {
    const section = Section.Additional
    const first = response.count
    const added = this.#adder.add(query, response, section, owner, ownerOffset, rrset)
    if (added === 0 || !query.dnssecOk) return
    const ttlSeconds = response.ttlSeconds[first]!
    const type = response.type[first]!
    this.#adder.addSignatures(response, section, owner, ownerOffset, body, type, ttlSeconds)
  }
}

/** Returns the offset, in rdata of a type, of the name that gets additional records; -1 = no such name. */
function targetOffset(type: number): number {
  switch (type) {
    case RRType.NS:
      return 0
    case RRType.MX:
    case RRType.SVCB:
    case RRType.HTTPS:
      return 2
    case RRType.SRV:
      return 6
    default:
      return -1
  }
}

function isServiceMode(response: Response, i: number): boolean {
  const type = response.type[i]
  if (type !== RRType.SVCB && type !== RRType.HTTPS) return false
  const bytes = response.rdataBytes[i]!
  const at = response.rdataOffset[i]!
  return (bytes[at]! | bytes[at + 1]!) !== 0
}
