import { assert } from '../../base/assert.ts'
import * as classes from '../../dns/iana/classes.ts'
import { Rcode } from '../../dns/iana/rcodes.ts'
import * as types from '../../dns/iana/types.ts'
import { ALIASES_MAX } from '../../dns/message/direct-answer.ts'
import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import * as sections from '../../dns/message/section.ts'
import { equalHashedNames, type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import { equalNamesAt } from '../../dns/name/name-at.ts'
import type { ZoneDirectory } from '../../dns/name/zone-directory.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import { AdditionalSection } from './additional.ts'
import { ChainSearch } from './chain-search.ts'
import { DenialProofs } from './denial.ts'
import { DirectAnswers } from './direct-answers.ts'
import { Match, NameFinder } from './name-finder.ts'
import { RRsetAdder } from './rrset-adder.ts'
import { scratch } from './scratch.ts'
import type { Steerer } from './steerer.ts'
import { noteVersion } from './zone-version.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { Section } = sections
const { RRClass } = classes
const { RRType } = types
const { BODY_COUNT_SHIFT, BODY_RRSETS, BODY_STATE, RRSET_HEAD, RRSET_TTL, ZONE_APEX_NODE } = layout

/*
 *   qname ─▶ zone with the longest apex ─▶ NameFinder
 *     ▲                                      ├─ Cut ──────▶ referral: NS, glue
 *     │                                      ├─ None ─────▶ NXDOMAIN, SOA
 *     │                                      ├─ Name, Wildcard
 *     │                                      │    ├─ qtype is there ──▶ RRset, additional
 *     │                                      │    ├─ CNAME ─┐
 *     │                                      │    └─ neither ─▶ NODATA: SOA
 *     └──── target, at most CHAIN_MAX times ◀─┴─ Dname ◀──────┘
 */

/** Results of `ZoneAnswerer.answer`. */
export const AnswerStatus = {
  /** The response is complete, rcode included (NOERROR, NXDOMAIN or YXDOMAIN). */
  Answered: 0,
  /** No zone of the image contains the qname; the response is unchanged. */
  NotInZone: 1,
  /**
   * A chain left all zones, or leads to a zone of a `ZoneDirectory`: the response holds the chain
   * so far, and `chaseTarget` is the next name.
   */
  ChaseOutside: 2,
  /** A chain loops or is too long: the response holds the records found so far, as NOERROR. */
  ChainTooLong: 3,
} as const
export type AnswerStatus = (typeof AnswerStatus)[keyof typeof AnswerStatus]

export interface AnswerOptions {
  /** Adds the apex NS RRset to the authority section of positive answers, as CoreDNS does. */
  readonly apexNsInAuthority?: boolean
}

/** Maximum of CNAMEs to follow for one question, inside and across zones. */
const CHAIN_MAX = ALIASES_MAX

/** Minimum of octets of SOA rdata: two names and five numbers (RFC 1035 section 3.3.13). */
const SOA_OCTETS_MIN = 22

/** Results of one step of a chain. */
const Step = { Done: 0, Outside: 1, Follow: 2 } as const
type Step = (typeof Step)[keyof typeof Step]

/**
 * Answers queries of class IN from a zone image, as RFC 1034 section 4.3.2 and its updates define:
 * wildcards (RFC 4592), DNAME (RFC 6672), negative answers (RFC 2308, and 6604 at the end of a
 * chain). ANY gets one RRset, the CNAME or else the one of the lowest type (RFC 8482 section 4.1).
 * NS and DNAME of a wildcard neither delegate nor redirect the names that match it, but are plain
 * data of them; RFC 4592 section 4.2 and RFC 6672 section 3.3 leave this open. For queries with DO
 * it adds the signatures of all RRsets, the DS of referrals and the proofs of absence, as far as
 * the zone has them (RFC 4035 section 3.1).
 *
 * Each handler and thread has its own object; those of a thread share buffers (`scratch`). The
 * records of a response remain valid when the next response is made: they point to the query, to
 * the response and to the arena, never into these.
 */
export class ZoneAnswerer {
  readonly reader: ZoneReader
  /** Makes answers in the direct form; undefined = no answer has that form. */
  readonly direct: DirectAnswers | undefined
  /** After ChaseOutside: the target, lower-case wire form; valid until the next `answer`. */
  readonly chaseTarget: Uint8Array = scratch.chaseTarget
  chaseTargetOctets = 0
  /** CNAMEs followed by the last `answer`. */
  chainSteps = 0
  /** After ChaseOutside: number of the response's records that form the chain. The apex NS RRset follows them. */
  chainEnd = 0
  readonly #finder: NameFinder
  readonly #adder: RRsetAdder
  readonly #additional: AdditionalSection
  readonly #denial: DenialProofs
  readonly #apexNsInAuthority: boolean
  readonly #targets = scratch.targets
  readonly #substitute = scratch.substitute

  // The name of the current step, and the place of its records' owner.
  #name: HashedName = scratch.noName
  #owner: Uint8Array = scratch.noName.qname
  #ownerOffset = 0
  #zone = 0
  #zoneLabel = 0
  // The zone of the qname, where a chain starts.
  #firstZone = 0
  #firstZoneLabel = 0
  /** True if absence must be proved: the query has DO and the zone is signed. */
  #proves = false
  /** Index, in the response, of the CNAME that leads on from the current step. */
  #alias = 0

  /** Without a steerer, answers contain whole steered RRsets. */
  constructor(reader: ZoneReader, steerer?: Steerer, options: AnswerOptions = {}) {
    this.reader = reader
    this.#finder = new NameFinder(reader)
    this.#adder = new RRsetAdder(reader, steerer)
    this.#additional = new AdditionalSection(reader, this.#finder, this.#adder)
    const search = new ChainSearch(reader)
    this.#denial = new DenialProofs(reader, this.#adder, search)
    this.#apexNsInAuthority = options.apexNsInAuthority ?? false
    this.direct = this.#apexNsInAuthority
      ? undefined
      : new DirectAnswers(reader, this.#finder, search, steerer)
  }

  /**
   * Fills `response`, which the caller has reset. If `direct` has added CNAMEs to it, continues
   * after them. `chainDepth`: number of CNAMEs that earlier queries followed before this one. Does
   * not follow a chain into a zone for which `server` or `others` have a longer apex (RFC 1034
   * section 4.3.2 step 2). @hot
   */
  answer(
    query: Query,
    response: Response,
    chainDepth = 0,
    server?: ZoneDirectory,
    others?: ZoneDirectory,
  ): AnswerStatus {
    this.reader.refresh()
    this.chainSteps = 0
    this.#name = query
    this.#owner = query.qname
    this.#ownerOffset = 0
    if (!this.#enterZone(query)) return AnswerStatus.NotInZone
    this.#firstZone = this.#zone
    this.#firstZoneLabel = this.#zoneLabel
    response.authoritative = true
    if (query.zoneVersionRequested) {
      noteVersion(this.reader, this.#zone, query.labelCount - this.#zoneLabel, response)
    }
    for (;;) {
      const step =
        response.direct.aliasCount > 0
          ? this.#continueDirect(query, response)
          : this.#step(query, response)
      if (step === Step.Done) return AnswerStatus.Answered
      const isTooLong = chainDepth + this.chainSteps >= CHAIN_MAX
      if (isTooLong || !this.#follow(query, response)) {
        this.#addApexNs(query, response)
        return AnswerStatus.ChainTooLong
      }
      const isInside = this.#enterZone(query)
      if (!isInside || this.#isDeeperIn(server, query) || this.#isDeeperIn(others, query)) {
        return this.#chaseOutside(query, response)
      }
    }
  }

  /** True if `zones` has a zone for the current name that is below the image's zone. */
  #isDeeperIn(zones: ZoneDirectory | undefined, query: Query): boolean {
    const name = this.#name
    if (zones === undefined || zones.deepest <= name.labelCount - this.#zoneLabel) return false
    // The DS of a zone is data of its parent (RFC 4035 section 3.1.4.1).
    const fromLabel = query.qtype === RRType.DS && name.labelCount > 0 ? 1 : 0
    const apexOctets = name.qnameOctets - name.labelOffset[this.#zoneLabel]!
    return zones.apexOctets(name, fromLabel) > apexOctets
  }

  /** Finds the zone that answers for the name. */
  #enterZone({ qtype, dnssecOk }: Query): boolean {
    const reader = this.reader
    const name = this.#name
    this.#zone = reader.matchZone(name, 0)
    this.#zoneLabel = reader.zoneLabel
    if (this.#zone === 0) return false
    if (qtype === RRType.DS && this.#zoneLabel === 0 && name.labelCount > 0) this.#enterParent()
    this.#proves = dnssecOk && this.#denial.enter(this.#zone, name, this.#zoneLabel)
    return true
  }

  /**
   * Moves to the parent zone for the DS of an apex, if the image has the parent and it delegates
   * (RFC 4035 section 3.1.4.1).
   */
  #enterParent(): void {
    const reader = this.reader
    const parent = reader.matchZone(this.#name, 1)
    if (parent === 0) return
    const label = reader.zoneLabel
    if (this.#finder.find(parent, this.#name, label, RRType.DS) !== Match.Name) return
    this.#zone = parent
    this.#zoneLabel = label
  }

  /** Continues after the CNAMEs that `DirectAnswers` has added. The last one is not followed yet. */
  #continueDirect(query: Query, response: Response): Step {
    const { direct } = response
    const { aliasCount, targets } = direct
    this.#alias = response.expand(query)
    this.chainSteps = aliasCount - 1
    for (let i = 0; i < this.chainSteps; i++) {
      const { qname, qnameOctets } = targets[i]!
      this.#targetOf(i).set(qname, 0, qnameOctets)
    }
    return Step.Follow
  }

  #step(query: Query, response: Response): Step {
    const match = this.#finder.find(this.#zone, this.#name, this.#zoneLabel, query.qtype)
    // The rest of a chain is the same for every client that queries the first name.
    if (this.chainSteps === 0) {
      response.imputedLabel = match === Match.None ? this.#zoneLabel : this.#finder.label
    }
    switch (match) {
      case Match.Name:
      case Match.Wildcard:
        return this.#answerFromBody(query, response, match === Match.Wildcard)
      case Match.None:
        response.rcode = Rcode.NXDOMAIN
        this.#deny(query, response, Match.None)
        return Step.Done
      case Match.Cut:
        this.#refer(query, response)
        return Step.Done
      default:
        return this.#redirect(query, response)
    }
  }

  #answerFromBody(query: Query, response: Response, isWildcard: boolean): Step {
    const { body, label } = this.#finder
    const { qtype } = query
    const first = response.count
    let rrset = this.#wantedRRset(body, qtype)
    let found = rrset !== 0 ? rrset : this.reader.findRRset(body, RRType.CNAME)
    let added = found === 0 ? 0 : this.#addAnswer(query, response, body, found)
    while (added === 0 && found !== 0 && qtype === RRType.ANY) {
      // Steering chose no records of this type.
      rrset = this.#anyRRset(body, this.#typeOf(found))
      if (rrset === 0) break
      found = rrset
      added = this.#addAnswer(query, response, body, found)
    }
    if (added === 0) {
      this.#deny(query, response, isWildcard ? Match.Wildcard : Match.Name, found)
      return Step.Done
    }
    if (this.#proves && isWildcard) this.#denial.addWildcardAnswer(response, label)
    this.#alias = first
    if (found !== rrset) return Step.Follow
    this.#addApexNs(query, response, rrset)
    this.#additional.add(query, response, first, first + added)
    return Step.Done
  }

  /**
   * Adds a negative answer: SOA and proof. `match`: how the name was found. `chosen`: RRset that steering chose no
   * records of; 0 = none.
   */
  #deny(query: Query, response: Response, match: Match, chosen = 0): void {
    const first = response.count
    this.#addSoa(query, response)
    const { body, label } = this.#finder
    response.isEmptyName = match !== Match.None && this.reader.isEmptyBody(body)
    if (!this.#proves || response.count === first) return
    const denial = this.#denial
    const proof = chosen === 0 ? 0 : this.#adder.proofOfLast(body, this.#typeOf(chosen))
    let isProved = true
    if (match === Match.None) isProved = denial.addNameError(response, label)
    else if (match === Match.Wildcard) isProved = denial.addWildcardNoData(response, label, proof)
    else isProved = denial.addNoData(response, 0, proof)
    // The name is below a name that opt-out leaves unsigned, as the answer about its DS shows.
    // Validators accept an unsigned answer there. Unbound rejects an incomplete proof; BIND rejects
    // a SOA of the zone without its signature.
    const isDsNoData = match !== Match.None && query.qtype === RRType.DS
    if (!isProved && !isDsNoData) response.count = first
  }

  #addAnswer(query: Query, response: Response, body: number, rrset: number): number {
    const owner = this.#owner
    const at = this.#ownerOffset
    return this.#adder.addSigned(query, response, Section.Answer, owner, at, body, rrset)
  }

  #typeOf(rrset: number): number {
    return this.reader.words[rrset + RRSET_HEAD]! >>> 16
  }

  /**
   * Returns the RRset of a body that answers `qtype`; 0 = none. Queries do not see NSEC3 records
   * (RFC 5155 section 7.2.8).
   */
  #wantedRRset(body: number, qtype: number): number {
    if (qtype === RRType.ANY)
      return this.reader.findRRset(body, RRType.CNAME) || this.#anyRRset(body)
    return qtype === RRType.NSEC3 ? 0 : this.reader.findRRset(body, qtype)
  }

  /** Returns the RRset of the lowest type above `above` for a query for ANY; 0 = none is left. */
  #anyRRset(body: number, above = 0): number {
    const words = this.reader.words
    const end = body + BODY_RRSETS + (words[body + BODY_STATE]! >>> BODY_COUNT_SHIFT)
    for (let i = body + BODY_RRSETS; i < end; i++) {
      const type = this.#typeOf(words[i]!)
      if (type > above && !isForDnssec(type)) return words[i]!
    }
    return above === RRType.NSEC ? 0 : this.reader.findRRset(body, RRType.NSEC)
  }

  /** Adds a referral. After a CNAME the response remains authoritative for the CNAME (RFC 1034 section 6.2.7). */
  #refer(query: Query, response: Response): void {
    if (this.chainSteps === 0) response.authoritative = false
    const ns = this.reader.findRRset(this.#finder.body, RRType.NS)
    const at = this.#ownerOffset + this.#name.labelOffset[this.#finder.label]!
    const { body, label } = this.#finder
    const first = response.count
    this.#adder.add(query, response, Section.Authority, this.#owner, at, ns)
    const end = response.count
    if (query.dnssecOk) {
      const ds = this.reader.findRRset(body, RRType.DS)
      if (ds !== 0)
        this.#adder.addSigned(query, response, Section.Authority, this.#owner, at, body, ds)
      else if (this.#proves) this.#denial.addNoData(response, label)
    }
    this.#additional.add(query, response, first, end)
  }

  /** Adds a DNAME and the CNAME that it makes, or sets YXDOMAIN (RFC 6672 section 3.2). */
  #redirect(query: Query, response: Response): Step {
    const label = this.#finder.label
    const dname = this.reader.findRRset(this.#finder.body, RRType.DNAME)
    const at = this.#ownerOffset + this.#name.labelOffset[label]!
    const i = response.count
    const { body } = this.#finder
    const added = this.#adder.addSigned(
      query,
      response,
      Section.Answer,
      this.#owner,
      at,
      body,
      dname,
    )
    if (added === 0) {
      this.#addSoa(query, response)
      return Step.Done
    }
    const rdata = response.rdataBytes[i]!
    const start = response.rdataOffset[i]!
    const target = this.#substitute
    if (!target.setSubstituted(this.#name, label, rdata, start, start + response.rdataOctets[i]!)) {
      response.rcode = Rcode.YXDOMAIN
      return Step.Done
    }
    this.#alias = response.count
    this.#addSynthesized(response, target, response.ttlSeconds[i]!)
    const wanted = query.qtype === RRType.CNAME || query.qtype === RRType.ANY
    if (!wanted) return Step.Follow
    this.#addApexNs(query, response)
    return Step.Done
  }

  #addSynthesized(response: Response, target: NameBuffer, ttlSeconds: number): void {
    const bytes = response.synthesized
    const at = response.synthesizedOctets
    const octets = target.qnameOctets
    assert(at + octets <= bytes.length, 'a chain has room for its synthesized names')
    for (let i = 0; i < octets; i++) bytes[at + i] = target.qname[i]!
    response.synthesizedOctets = at + octets
    response.add(
      Section.Answer,
      this.#owner,
      this.#ownerOffset,
      RRType.CNAME,
      RRClass.IN,
      ttlSeconds,
      bytes,
      at,
      octets,
    )
  }

  /**
   * Moves to the target of the current step's CNAME; returns false if the chain already visited it. A CNAME that names
   * itself is SERVFAIL, as in BIND and CoreDNS.
   */
  #follow(query: Query, response: Response): boolean {
    const i = this.#alias
    const rdata = response.rdataBytes[i]!
    const start = response.rdataOffset[i]!
    const target = this.#targetOf(this.chainSteps)
    if (!target.set(rdata, start, start + response.rdataOctets[i]!)) return false
    if (this.#isVisited(target, query)) {
      const isOwn = equalNamesAt(response.ownerBytes[i]!, response.ownerOffset[i]!, rdata, start)
      if (isOwn) response.rcode = Rcode.SERVFAIL
      return false
    }
    this.chainSteps++
    this.#name = target
    this.#owner = rdata
    this.#ownerOffset = start
    return true
  }

  #isVisited(target: HashedName, query: Query): boolean {
    if (equalHashedNames(target, query)) return true
    for (let k = 0; k < this.chainSteps; k++) {
      if (equalHashedNames(target, this.#targets[k]!)) return true
    }
    return false
  }

  /** Most zones have no long chains: the buffers are made when a chain first needs them. */
  #targetOf(step: number): NameBuffer {
    if (step === this.#targets.length) this.#targets.push(new NameBuffer())
    return this.#targets[step]!
  }

  #chaseOutside(query: Query, response: Response): AnswerStatus {
    this.chainEnd = response.count
    this.#addApexNs(query, response)
    const name = this.#name
    for (let i = 0; i < name.qnameOctets; i++) this.chaseTarget[i] = name.qname[i]!
    this.chaseTargetOctets = name.qnameOctets
    return AnswerStatus.ChaseOutside
  }

  #apexBody(zone: number): number {
    const reader = this.reader
    return reader.visibleBody(reader.words[zone + ZONE_APEX_NODE]!)
  }

  /** Adds the NS RRset of the qname's zone, unless it is the answer: `answered`. */
  #addApexNs(query: Query, response: Response, answered = 0): void {
    if (!this.#apexNsInAuthority) return
    const body = this.#apexBody(this.#firstZone)
    const ns = this.reader.findRRset(body, RRType.NS)
    if (ns === 0 || ns === answered) return
    const at = query.labelOffset[this.#firstZoneLabel]!
    this.#adder.addSigned(query, response, Section.Authority, query.qname, at, body, ns)
  }

  /**
   * Adds the SOA of the qname's zone. For a negative answer whose CNAMEs end in another zone, after
   * `answer` and any later one.
   */
  addZoneSoa(query: Query, response: Response): void {
    this.reader.refresh()
    this.#name = query
    this.#owner = query.qname
    this.#ownerOffset = 0
    if (this.#enterZone(query)) this.#addSoa(query, response)
  }

  /** Adds the zone's SOA with the TTL for negative caching (RFC 2308 section 3). */
  #addSoa(query: Query, response: Response): void {
    const reader = this.reader
    const body = this.#apexBody(this.#zone)
    const soa = reader.findRRset(body, RRType.SOA)
    if (soa === 0) return
    const bytes = reader.bytes
    const at = reader.rdataStart(soa)
    const octets = (bytes[at]! << 8) | bytes[at + 1]!
    if (octets < SOA_OCTETS_MIN) return
    const end = at + 2 + octets
    const minimum =
      bytes[end - 4]! * 0x1000000 +
      ((bytes[end - 3]! << 16) | (bytes[end - 2]! << 8) | bytes[end - 1]!)
    const ttl = Math.min(minimum, reader.words[soa + RRSET_TTL]!)
    const section = Section.Authority
    const owner = this.#owner
    const ownerAt = this.#ownerOffset + this.#name.labelOffset[this.#zoneLabel]!
    response.add(section, owner, ownerAt, RRType.SOA, RRClass.IN, ttl, bytes, at + 2, octets)
    if (!query.dnssecOk) return
    this.#adder.addSignatures(response, section, owner, ownerAt, body, RRType.SOA, ttl)
  }
}

/** True for types that describe the other records of their owner, so that ANY does not return them. */
function isForDnssec(type: number): boolean {
  return type === RRType.RRSIG || type === RRType.NSEC || type === RRType.NSEC3
}
