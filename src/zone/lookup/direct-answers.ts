import { Rcode } from '../../dns/iana/rcodes.ts'
import * as types from '../../dns/iana/types.ts'
import { ALIASES_MAX, type DirectAnswer } from '../../dns/message/direct-answer.ts'
import { NAME_ROOM_OCTETS, type Query } from '../../dns/message/query.ts'
import { RESPONSE_RR_MAX, type Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import { equalHashedNames, equalSuffixes, type HashedName } from '../../dns/name/hashed-name.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import * as directory from '../image/signature-directory.ts'
import type { Choice } from '../image/types.ts'
import type { ChainSearch } from './chain-search.ts'
import { DirectProofs } from './direct-proofs.ts'
import * as signing from './direct-signatures.ts'
import type { NameFinder } from './name-finder.ts'
import * as finding from './name-finder.ts'
import { scratch } from './scratch.ts'
import type { Steerer } from './steerer.ts'
import { TargetCache } from './target-cache.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { Match } = finding
const { RRType } = types
const { addSignatures } = signing
const { DEFAULT_ANSWER } = directory
const { RRSET_HEAD, RRSET_STEERING_COUNT, RRSET_TTL, ZONE_APEX_NODE } = layout

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
for (const type of [RRType.A, RRType.AAAA, RRType.TXT, RRType.DNSKEY]) kindOf[type] = Kind.Set
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
  readonly #proofs: DirectProofs
  readonly #choice = scratch.choice
  /** Made for the first CNAME: a server may have many zones without any. */
  #targets: TargetCache | undefined = undefined

  constructor(
    reader: ZoneReader,
    finder: NameFinder,
    search: ChainSearch,
    steerer: Steerer | undefined,
  ) {
    this.reader = reader
    this.#finder = finder
    this.#steerer = steerer
    this.#proofs = new DirectProofs(reader, search)
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
    const isAnswered = this.#find(query, response, zone, zoneLabel, follows, denies)
    if (!isAnswered && query.dnssecOk) response.direct.keepAliases()
    return isAnswered
  }

  #find(
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
        return this.#deny(query, response, zone, zoneLabel, match)
      }
      if (match !== Match.Name && match !== Match.Wildcard) return false
      const { body } = finder
      if (direct.aliasCount === 0) response.imputedLabel = finder.label
      const rrset = reader.findRRset(body, query.qtype)
      const found = rrset !== 0 ? rrset : reader.findRRset(body, RRType.CNAME)
      if (found === 0) {
        if (direct.aliasCount > 0) return false
        return this.#deny(query, response, zone, zoneLabel, match)
      }
      if (match === Match.Wildcard && query.dnssecOk) {
        if (!this.#proveWildcard(query, response, zone, zoneLabel)) return false
      }
      if (rrset !== 0) {
        if (kind === Kind.Set) return this.#addSet(query, response, body, rrset)
        const isSoa = kind === Kind.Soa && zoneLabel === 0
        return isSoa && this.#addSoa(query, response, body, rrset, 0, Section.Answer)
      }
      if (kind !== Kind.Set || !follows || direct.aliasCount === ALIASES_MAX) return false
      const target = this.#addAlias(query, response, body, found)
      if (target === undefined) return false
      label = target.labelCount - (query.labelCount - zoneLabel)
      if (label < 0 || !equalSuffixes(target, label, query, zoneLabel)) return false
      if (target.labelCount - label < reader.deepest && reader.isInZoneBelow(target, label))
        return false
      name = target
    }
  }

  /** Adds the proof that a wildcard answers for the qname. Returns false for the target of a CNAME. */
  #proveWildcard(query: Query, { direct }: Response, zone: number, zoneLabel: number): boolean {
    const proofs = this.#proofs
    if (!proofs.enter(zone, zoneLabel)) return true
    if (direct.aliasCount > 0 || zoneLabel === query.labelCount) return false
    return proofs.addWildcardAnswer(direct, query, this.#finder.label)
  }

  /** Adds a CNAME of the RRset and returns its target; undefined if it leads nowhere, or back. */
  #addAlias(query: Query, response: Response, body: number, rrset: number): HashedName | undefined {
    const { reader } = this
    const { words } = reader
    let ttlSeconds = words[rrset + RRSET_TTL]!
    let offset = reader.rdataStart(rrset)
    let answer: number = DEFAULT_ANSWER
    if (words[rrset + RRSET_STEERING_COUNT] !== 0 && this.#steerer !== undefined) {
      const choice = this.#choose(query, response, rrset, this.#steerer)
      if (choice.count === 0) return undefined
      if (choice.ttlSeconds >= 0) ttlSeconds = choice.ttlSeconds
      offset = reader.rdataAt(rrset, offset, choice.index[0]!)
      answer = choice.answer
    }
    const { direct } = response
    const i = direct.aliasCount
    direct.aliasOffset[i] = offset
    direct.aliasTtlSeconds[i] = ttlSeconds
    direct.aliasCount = i + 1
    direct.bytes = reader.bytes
    direct.aliasSignatures[i] = 0
    if (query.dnssecOk) {
      const { answerSignatures } = direct
      direct.view = reader.view
      direct.aliasSignatures[i] = addSignatures(
        reader,
        answerSignatures,
        body,
        RRType.CNAME,
        answer,
      )
    }
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
    choice.answer = DEFAULT_ANSWER
    steerer.choose(query, response, reader.words, reader.steeringStart(rrset), choice)
    return choice
  }

  #addSet(query: Query, response: Response, body: number, rrset: number): boolean {
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
    if (query.dnssecOk) {
      const { answerSignatures } = direct
      const answer = steerer === undefined ? DEFAULT_ANSWER : choice.answer
      direct.view = reader.view
      direct.setSignatures = addSignatures(reader, answerSignatures, body, query.qtype, answer)
    }
    direct.count = direct.aliasCount + count
    response.authoritative = true
    return true
  }

  /** Adds the SOA of a negative answer, with the TTL of RFC 2308 section 3. */
  #deny(
    query: Query,
    response: Response,
    zone: number,
    zoneLabel: number,
    match: finding.Match,
  ): boolean {
    const { reader } = this
    const apex = reader.visibleBody(reader.words[zone + ZONE_APEX_NODE]!)
    const soa = reader.findRRset(apex, RRType.SOA)
    if (soa === 0 || !this.#addSoa(query, response, apex, soa, zoneLabel, Section.Authority)) {
      return false
    }
    if (query.dnssecOk && !this.#prove(query, response.direct, zone, zoneLabel, match)) return false
    if (match === Match.None) {
      response.imputedLabel = zoneLabel
      response.rcode = Rcode.NXDOMAIN
    } else {
      response.rcode = Rcode.NOERROR
      if (query.dnssecOk) response.isEmptyName = reader.isEmptyBody(this.#finder.body)
    }
    return true
  }

  /** Adds the proof of a negative answer, if the zone has proofs. */
  #prove(
    query: Query,
    direct: DirectAnswer,
    zone: number,
    zoneLabel: number,
    match: finding.Match,
  ): boolean {
    const proofs = this.#proofs
    if (!proofs.enter(zone, zoneLabel)) return true
    const { body, label } = this.#finder
    if (match === Match.None) return proofs.addNameError(direct, query, label, body)
    if (match === Match.Wildcard) return proofs.addWildcardNoData(direct, query, label)
    return proofs.addNoData(direct, query, body)
  }

  #addSoa(
    query: Query,
    response: Response,
    body: number,
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
    direct.soaSignatures = 0
    if (query.dnssecOk) {
      const isAnswer = section === Section.Answer
      const signatures = isAnswer ? direct.answerSignatures : direct.authoritySignatures
      direct.view = view
      direct.soaSignatures = addSignatures(reader, signatures, body, RRType.SOA, DEFAULT_ANSWER)
    }
    direct.count = 1
    response.authoritative = true
    return true
  }
}
