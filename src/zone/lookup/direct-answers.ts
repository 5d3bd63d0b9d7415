import { Rcode } from '../../dns/iana/rcodes.ts'
import * as types from '../../dns/iana/types.ts'
import { ALIASES_MAX } from '../../dns/message/direct-answer.ts'
import { NAME_ROOM_OCTETS, type Query } from '../../dns/message/query.ts'
import { RESPONSE_RR_MAX, type Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { equalHashedNames, equalSuffixes, type HashedName } from '../../dns/name/hashed-name.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import type { Choice } from '../image/types.ts'
import type { NameFinder } from './name-finder.ts'
import * as finding from './name-finder.ts'
import { scratch } from './scratch.ts'
import type { Steerer } from './steerer.ts'
import { TargetCache } from './target-cache.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { Match } = finding
const { RRType } = types
const { BODY_STATE, FLAG_SIGNED, RRSET_HEAD, RRSET_STEERING_COUNT, RRSET_TTL, ZONE_APEX_NODE } =
  layout

/** What a query for a type may get as a direct answer. */
const Kind = {
  None: 0,
  /** A negative answer. */
  Denial: 1,
  /** The SOA as well. */
  Soa: 2,
  /** Records whose rdata is sent unchanged and that need no additional records; CNAMEs lead to them. */
  Set: 3,
} as const

/** The first type that is not one of records (RFC 6895 section 3.1): ANY, transfers and others. */
const META_TYPES = 128

const kindOf = new Uint8Array(new ArrayBuffer(65_536)).fill(Kind.Denial)
kindOf.fill(Kind.None, META_TYPES, 256)
// DNSSEC's own types have other rules.
for (const type of [0, RRType.DS, RRType.RRSIG, RRType.NSEC, RRType.NSEC3]) kindOf[type] = Kind.None
for (const type of [RRType.A, RRType.AAAA, RRType.TXT]) kindOf[type] = Kind.Set
kindOf[RRType.SOA] = Kind.Soa

/** Serial and the four timers after the names of a SOA. */
const SOA_TAIL_OCTETS = 20

/**
 * Finds answers of the direct form (`DirectAnswer`), with the records that `ZoneAnswerer` would add
 * one by one. Without it, a plain A takes 2.2 times the user CPU, a GEO answer over four CNAMEs 1.7
 * times, and a denial 1.3 to 1.5 times (`bench/shapes.mjs`).
 */
export class DirectAnswers {
  readonly reader: ZoneReader
  readonly #finder: NameFinder
  readonly #steerer: Steerer | undefined
  readonly #choice = scratch.choice
  /** Made for the first CNAME: a server may have many zones without any. */
  #targets: TargetCache | undefined = undefined

  constructor(reader: ZoneReader, finder: NameFinder, steerer: Steerer | undefined) {
    this.reader = reader
    this.#finder = finder
    this.#steerer = steerer
  }

  /**
   * Answers from the zone whose apex is at `zoneLabel` of the qname. `follows`: no other image has a zone
   * below it, so that CNAMEs to names in it may be followed; `denies`: names that do not exist have no other
   * source. Returns false if the answer has another form. The response is then unchanged, except that
   * `direct` may have the first CNAMEs, and `imputedLabel` is set: `ZoneAnswerer` continues after
   * them, because each draw counts once. @hot
   */
  answer(
    query: Query,
    response: Response,
    zone: number,
    zoneLabel: number,
    follows: boolean,
    denies: boolean,
  ): boolean {
    const kind = kindOf[query.qtype]!
    if (kind === Kind.None) return false
    const { reader } = this
    const finder = this.#finder
    const { direct } = response
    let name: HashedName = query
    let label = zoneLabel
    for (;;) {
      const match = finder.find(zone, name, label, query.qtype)
      if (match === Match.None) {
        if (direct.aliasCount > 0 || !denies) return false
        return this.#deny(query, response, zone, zoneLabel, Rcode.NXDOMAIN)
      }
      if (match !== Match.Name && match !== Match.Wildcard) return false
      const { body } = finder
      // Signatures and proofs are records of their own.
      if (query.dnssecOk && (match === Match.Wildcard || this.#isSigned(body))) return false
      if (direct.aliasCount === 0) response.imputedLabel = finder.label
      const rrset = reader.findRRset(body, query.qtype)
      if (rrset !== 0) {
        if (kind === Kind.Set) return this.#addSet(query, response, rrset)
        const isSoa = kind === Kind.Soa && zoneLabel === 0
        return isSoa && this.#addSoa(query, response, rrset, 0, Section.Answer)
      }
      const cname = reader.findRRset(body, RRType.CNAME)
      if (cname === 0) {
        if (direct.aliasCount > 0) return false
        return this.#deny(query, response, zone, zoneLabel, Rcode.NOERROR)
      }
      if (kind !== Kind.Set || !follows || direct.aliasCount === ALIASES_MAX) return false
      const target = this.#addAlias(query, response, cname)
      if (target === undefined) return false
      label = target.labelCount - (query.labelCount - zoneLabel)
      if (label < 0 || !equalSuffixes(target, label, query, zoneLabel)) return false
      if (target.labelCount - label < reader.deepest && reader.isInZoneBelow(target, label))
        return false
      name = target
    }
  }

  #isSigned(body: number): boolean {
    return (this.reader.words[body + BODY_STATE]! & FLAG_SIGNED) !== 0
  }

  /** Adds a CNAME of the RRset and returns its target; undefined if it leads nowhere, or back. */
  #addAlias(query: Query, response: Response, rrset: number): HashedName | undefined {
    const { reader } = this
    const { words } = reader
    let ttlSeconds = words[rrset + RRSET_TTL]!
    let offset = reader.rdataStart(rrset)
    if (words[rrset + RRSET_STEERING_COUNT] !== 0 && this.#steerer !== undefined) {
      const choice = this.#choose(query, response, rrset, this.#steerer)
      if (choice.count === 0) return undefined
      if (choice.ttlSeconds >= 0) ttlSeconds = choice.ttlSeconds
      offset = reader.rdataAt(rrset, offset, choice.index[0]!)
    }
    const { direct } = response
    const i = direct.aliasCount
    direct.aliasOffset[i] = offset
    direct.aliasTtlSeconds[i] = ttlSeconds
    direct.aliasCount = i + 1
    direct.bytes = reader.bytes
    this.#targets ??= new TargetCache()
    const target = this.#targets.find(reader, offset + 2, i)
    if (target === undefined) return undefined
    direct.targets[i] = target
    if (equalHashedNames(target, query)) return undefined
    for (let k = 0; k < i; k++) if (equalHashedNames(target, direct.targets[k]!)) return undefined
    return target
  }

  #choose(query: Query, response: Response, rrset: number, steerer: Steerer): Choice {
    const { reader } = this
    const choice = this.#choice
    choice.count = 0
    choice.ttlSeconds = -1
    steerer.choose(query, response, reader.words, reader.steeringStart(rrset), choice)
    return choice
  }

  #addSet(query: Query, response: Response, rrset: number): boolean {
    const { reader } = this
    const { words, bytes } = reader
    // The root needs no pointer to it.
    if (response.direct.lastName(query).labelCount === 0) return false
    let count = words[rrset + RRSET_HEAD]! & 0xffff
    let ttlSeconds = words[rrset + RRSET_TTL]!
    const steerer = words[rrset + RRSET_STEERING_COUNT] === 0 ? undefined : this.#steerer
    const choice = this.#choice
    if (steerer !== undefined) {
      this.#choose(query, response, rrset, steerer)
      count = choice.count
      if (choice.ttlSeconds >= 0) ttlSeconds = choice.ttlSeconds
    }
    if (count === 0 || count > RESPONSE_RR_MAX) return false
    const { direct } = response
    if (count > direct.setOffset.length) direct.growSet(count)
    const { setOffset } = direct
    const first = reader.rdataStart(rrset)
    let at = first
    let octets = 0
    for (let i = 0; i < count; i++) {
      if (steerer !== undefined) at = reader.rdataAt(rrset, first, choice.index[i]!)
      setOffset[i] = at
      const length = (bytes[at]! << 8) | bytes[at + 1]!
      octets += length
      at += 2 + length
    }
    direct.setCount = count
    direct.setTtlSeconds = ttlSeconds
    direct.setOctets = octets
    direct.bytes = bytes
    direct.count = direct.aliasCount + count
    response.authoritative = true
    return true
  }

  /** Adds the SOA of a negative answer, with the TTL of RFC 2308 section 3. */
  #deny(query: Query, response: Response, zone: number, zoneLabel: number, rcode: number): boolean {
    const { reader } = this
    const apex = reader.visibleBody(reader.words[zone + ZONE_APEX_NODE]!)
    if (query.dnssecOk && (this.#isSigned(apex) || reader.findChain(zone) !== 0)) return false
    const soa = reader.findRRset(apex, RRType.SOA)
    if (soa === 0 || !this.#addSoa(query, response, soa, zoneLabel, Section.Authority)) return false
    if (rcode === Rcode.NXDOMAIN) response.imputedLabel = zoneLabel
    response.rcode = rcode
    return true
  }

  #addSoa(
    query: Query,
    response: Response,
    rrset: number,
    zoneLabel: number,
    section: Section,
  ): boolean {
    const { reader } = this
    const { bytes, view } = reader
    const { direct } = response
    const offset = reader.rdataStart(rrset)
    // The name of the root has no pointer.
    if (zoneLabel === query.labelCount || offset + 3 * NAME_ROOM_OCTETS > bytes.length) return false
    const octets = (bytes[offset]! << 8) | bytes[offset + 1]!
    const { soaServer, soaMailbox } = direct
    if (direct.soaBytes !== bytes || direct.soaParsed !== offset) {
      direct.soaParsed = 0
      direct.soaBytes = bytes
      if (!soaServer.setFrom(view, offset + 2)) return false
      if (!soaMailbox.setFrom(view, offset + 2 + soaServer.qnameOctets)) return false
      if (soaServer.qnameOctets + soaMailbox.qnameOctets + SOA_TAIL_OCTETS !== octets) return false
      direct.soaParsed = offset
    }
    const ttlSeconds = reader.words[rrset + RRSET_TTL]!
    const minimum = view.getUint32(offset + 2 + octets - 4)
    direct.bytes = bytes
    direct.soaOffset = offset
    direct.soaTtlSeconds = section === Section.Answer ? ttlSeconds : Math.min(minimum, ttlSeconds)
    direct.soaSection = section
    direct.soaLabel = zoneLabel
    direct.count = 1
    response.authoritative = true
    return true
  }
}
