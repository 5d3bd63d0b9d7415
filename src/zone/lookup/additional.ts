import { RRType } from '../../dns/iana/types.ts'
import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import type { ZoneReader } from '../image/reader.ts'
import type { NameFinder } from './name-finder.ts'
import type { RRsetAdder } from './rrset-adder.ts'
import { scratch, TARGETS_MAX } from './scratch.ts'

const NAME_OCTETS_MAX = 255

/**
 * Adds addresses, from all zones of the image, of the names that records of a response point to:
 * glue of referrals, and targets of NS, MX, SRV, SVCB and HTTPS (RFC 1034 section 4.3.2 step 6, RFC
 * 2782, RFC 9460 section 4.1). For SVCB and HTTPS in AliasMode, also adds the records of the same
 * type at the target, and what these lead to. Adds no record that comes from a wildcard or through
 * a CNAME: the client queries for it.
 */
export class AdditionalSection {
  readonly #reader: ZoneReader
  readonly #finder: NameFinder
  readonly #adder: RRsetAdder
  readonly #target = scratch.additional
  readonly #seen = scratch.seen
  #seenCount = 0
  /** Of the records that the targets are for. */
  #owner = 0

  constructor(reader: ZoneReader, finder: NameFinder, adder: RRsetAdder) {
    this.#reader = reader
    this.#finder = finder
    this.#adder = adder
  }

  /** Adds the records for the response's records `first`..`end`-1, of one owner and type. @hot */
  add(query: Query, response: Response, first: number, end: number): void {
    const type = response.type[first]!
    const skip = targetOffset(type)
    if (skip < 0 || first === end) return
    this.#seenCount = 0
    if (isService(type)) {
      this.#setTarget(response.ownerBytes[first]!, response.ownerOffset[first]!, NAME_OCTETS_MAX)
      this.#owner = this.#target.suffixHash[0]!
    }
    const added = response.count
    for (let i = first; i < end; i++) this.#addFor(query, response, i, skip)
    if (!isService(type)) return
    // The services of targets have targets too.
    for (let i = added; i < response.count; i++) {
      if (response.type[i] === type) this.#addFor(query, response, i, skip)
    }
  }

  #setTarget(bytes: Uint8Array, offset: number, octetsMax: number): boolean {
    return this.#target.set(bytes, offset, offset + octetsMax)
  }

  /** Adds the records for record `i`, whose rdata has a name after `skip` octets. */
  #addFor(query: Query, response: Response, i: number, skip: number): void {
    let bytes = response.rdataBytes[i]!
    let at = response.rdataOffset[i]! + skip
    if (!this.#setTarget(bytes, at, response.rdataOctets[i]! - skip)) return
    const isAlias = isAliasMode(response, i)
    if (this.#target.labelCount === 0) {
      if (!isService(response.type[i]!) || isAlias) return
      // The target `.` of a service is the owner itself (RFC 9460 section 2.5.2).
      bytes = response.ownerBytes[i]!
      at = response.ownerOffset[i]!
      if (!this.#setTarget(bytes, at, NAME_OCTETS_MAX)) return
    }
    const hash = this.#target.suffixHash[0]!
    if (this.#seenCount === TARGETS_MAX || this.#isSeen(hash)) return
    this.#seen[this.#seenCount++] = hash
    const service = isAlias && hash !== this.#owner ? response.type[i]! : 0
    this.#addTarget(query, response, bytes, at, service)
  }

  #isSeen(hash: number): boolean {
    for (let i = 0; i < this.#seenCount; i++) if (this.#seen[i] === hash) return true
    return false
  }

  /** Adds the addresses of the target, and before them its records of type `service`; 0 = none. */
  #addTarget(
    query: Query,
    response: Response,
    owner: Uint8Array,
    ownerOffset: number,
    service: number,
  ): void {
    const reader = this.#reader
    const zone = reader.matchZone(this.#target, 0)
    if (zone === 0) return
    const body = this.#finder.findTarget(zone, this.#target, reader.zoneLabel)
    if (body === 0) return
    const services = service === 0 ? 0 : reader.findRRset(body, service)
    const adder = this.#adder
    const section = Section.Additional
    if (services !== 0) {
      adder.addSigned(query, response, section, owner, ownerOffset, body, services)
    }
    const a = reader.findRRset(body, RRType.A)
    const aaaa = reader.findRRset(body, RRType.AAAA)
    if (a !== 0) adder.addSigned(query, response, section, owner, ownerOffset, body, a)
    if (aaaa !== 0) adder.addSigned(query, response, section, owner, ownerOffset, body, aaaa)
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

function isService(type: number): boolean {
  return type === RRType.SVCB || type === RRType.HTTPS
}

/** True for a service whose priority is 0: another name has its records (RFC 9460 section 2.4.2). */
function isAliasMode(response: Response, i: number): boolean {
  if (!isService(response.type[i]!)) return false
  const bytes = response.rdataBytes[i]!
  const at = response.rdataOffset[i]!
  return (bytes[at]! | bytes[at + 1]!) === 0
}
