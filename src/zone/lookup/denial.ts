import * as nsec3 from '../../dns/dnssec/nsec3.ts'
import * as classes from '../../dns/iana/classes.ts'
import * as types from '../../dns/iana/types.ts'
import type { Response } from '../../dns/message/response.ts'
import * as responses from '../../dns/message/response.ts'
import { CanonicalOrder } from '../image/canonical-order.ts'
import type { HashedName } from '../image/hashed-name.ts'
import { NameBuffer } from '../image/hashed-name.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import type { RRsetAdder } from './rrset-adder.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { Section } = responses
const { RRClass } = classes
const { RRType } = types
const {
  CHAIN_COUNT,
  CHAIN_PARAMETER_WORDS,
  CHAIN_REST,
  CHAIN_TYPE,
  NODE_KEY,
  NODE_NAME,
  RRSET_HEAD,
  RRSET_TTL,
  ZONE_APEX,
  ZONE_APEX_SIZE,
} = layout

/** What a hash has to do with the record that was found for it. */
const Relation = { Matched: 0, Covered: 1 } as const
type Relation = (typeof Relation)[keyof typeof Relation]

/**
 * Adds to the authority section the records that prove what a signed zone does not have, each with its signatures and
 * once: NSEC as RFC 4035 section 3.1.3 asks, NSEC3 as RFC 5155 section 7.2 does. `label` arguments number the labels of
 * the name that `enter` was given: a name "at label 2" is that name without its first two labels.
 */
export class DenialProofs {
  readonly #reader: ZoneReader
  readonly #adder: RRsetAdder
  readonly #order = new CanonicalOrder()
  readonly #hasher = new nsec3.Nsec3Hasher()
  #name: HashedName = new NameBuffer()
  #zone = 0
  #zoneLabel = 0
  #chain = 0
  /** Index in the chain of the record found last. */
  #found = 0

  constructor(reader: ZoneReader, adder: RRsetAdder) {
    this.#reader = reader
    this.#adder = adder
  }

  /** Sets what the following proofs are about. False = the zone proves nothing. @hot */
  enter(zone: number, name: HashedName, zoneLabel: number): boolean {
    this.#zone = zone
    this.#name = name
    this.#zoneLabel = zoneLabel
    this.#chain = this.#reader.findChain(zone)
    return this.#chain !== 0
  }

  /**
   * The name at `label` exists, without the type asked for; or is a delegation without DS. False = the proof also shows
   * that a wildcard exists higher up, which validators take for a contradiction. @hot
   */
  addNoData(response: Response, label: number): boolean {
    if (!this.#isHashed()) this.#addAtOrBefore(response, label, false)
    else if (this.#find(label, false) === Relation.Matched) this.#addFound(response)
    else {
      // Opt-out: an unsigned delegation, or a name that only such have made (RFC 5155 section 7.2.4).
      const provable = this.#addClosestEncloser(response, label + 1)
      const isWildcard = this.#find(provable, true) === Relation.Matched
      return !isWildcard || !this.#hasFound(response)
    }
    return true
  }

  /**
   * The name does not exist, nor does the wildcard of its closest encloser, which is at `encloser`. False = no proof
   * exists: with opt-out, the closest encloser that has a record may be higher up, and have a wildcard. @hot
   */
  addNameError(response: Response, encloser: number): boolean {
    if (this.#isHashed()) {
      const provable = this.#addClosestEncloser(response, encloser)
      if (this.#find(provable, true) === Relation.Matched) return false
      this.#addFound(response)
      return true
    }
    this.#addAtOrBefore(response, 0, false)
    this.#addAtOrBefore(response, encloser, true)
    return true
  }

  /** The name does not exist, so that a wildcard stands for it. @hot */
  addWildcardAnswer(response: Response, encloser: number): void {
    if (!this.#isHashed()) this.#addAtOrBefore(response, 0, false)
    else {
      this.#find(encloser - 1, false)
      this.#addFound(response)
    }
  }

  /**
   * The name does not exist, and the wildcard of its closest encloser, which is at `encloser`, does not have the type.
   * Returns false in the same case as `addNoData`. @hot
   */
  addWildcardNoData(response: Response, encloser: number): boolean {
    if (this.#isHashed()) {
      const provable = this.#addClosestEncloser(response, encloser)
      // Opt-out: a wildcard that only unsigned delegations have made has no record.
      if (this.#find(provable, true) !== Relation.Matched) return true
      if (provable !== encloser) return !this.#hasFound(response)
      this.#addFound(response)
      return true
    }
    this.#addAtOrBefore(response, 0, false)
    this.#addAtOrBefore(response, encloser, true)
    return true
  }

  #isHashed(): boolean {
    return this.#reader.words[this.#chain + CHAIN_TYPE] === RRType.NSEC3
  }

  /** Adds the NSEC of the name at `label`, or of the `*` below it. If no such record exists, the one that covers it. */
  #addAtOrBefore(response: Response, label: number, wildcard: boolean): void {
    this.#order.setName(this.#name, label, this.#zoneLabel, wildcard)
    this.#search()
    this.#addFound(response)
  }

  /**
   * The closest provable encloser at or above `label`, and what covers the next closer name (RFC 5155 section 7.2.1).
   * Returns the label of that encloser. Only names that exist are hashed, so the time is bounded.
   */
  #addClosestEncloser(response: Response, label: number): number {
    let encloser = label
    while (encloser < this.#zoneLabel && this.#find(encloser, false) !== Relation.Matched) {
      encloser++
    }
    if (encloser === this.#zoneLabel) this.#find(encloser, false)
    this.#addFound(response)
    this.#find(encloser - 1, false)
    this.#addFound(response)
    return encloser
  }

  /** Finds the NSEC3 that matches or covers the name at `label`, or the `*` below it. */
  #find(label: number, wildcard: boolean): Relation {
    const { bytes } = this.#reader
    const { qname, qnameOctets, labelOffset } = this.#name
    const parameters = (this.#chain + CHAIN_REST) * 4
    this.#hasher.hash(qname, labelOffset[label]!, qnameOctets, wildcard, bytes, parameters)
    this.#order.setLabel(this.#hasher.label)
    return this.#search()
  }

  /** Finds the last node of the chain that is not after the name in `#order`. Before the first node comes the last. */
  #search(): Relation {
    const { words, bytes } = this.#reader
    const start = this.#nodesStart()
    let low = 0
    let high = words[this.#chain + CHAIN_COUNT]!
    while (low < high) {
      const middle = (low + high) >>> 1
      const order = this.#order.compare(words, bytes, words[start + middle]!)
      if (order === 0) {
        this.#found = middle
        return Relation.Matched
      }
      if (order > 0) low = middle + 1
      else high = middle
    }
    this.#found = (low === 0 ? words[this.#chain + CHAIN_COUNT]! : low) - 1
    return Relation.Covered
  }

  #nodesStart(): number {
    return this.#chain + CHAIN_REST + this.#reader.words[this.#chain + CHAIN_PARAMETER_WORDS]!
  }

  /** Adds the record found last, if the response does not have it. */
  #addFound(response: Response): void {
    const reader = this.#reader
    const node = reader.words[this.#nodesStart() + this.#found]!
    const body = reader.visibleBody(node)
    const type = reader.words[this.#chain + CHAIN_TYPE]!
    const rrset = body === 0 ? 0 : reader.findRRset(body, type)
    if (rrset === 0) return
    const { words, bytes } = reader
    let at = reader.rdataStart(rrset)
    if (has(response, type, at + 2)) return
    const owner = this.#putOwner(response, node)
    const ttl = words[rrset + RRSET_TTL]!
    const { synthesized } = response
    const section = Section.Authority
    // A second record is a fault of the zone, but the signature is over both.
    const count = words[rrset + RRSET_HEAD]! & 0xffff
    for (let i = 0; i < count; i++) {
      const octets = (bytes[at]! << 8) | bytes[at + 1]!
      response.add(section, synthesized, owner, type, RRClass.IN, ttl, bytes, at + 2, octets)
      at += octets + 2
    }
    this.#adder.addSignatures(response, section, synthesized, owner, body, type, ttl)
  }

  /** Whether the response has the record found last. */
  #hasFound(response: Response): boolean {
    const reader = this.#reader
    const body = reader.visibleBody(reader.words[this.#nodesStart() + this.#found]!)
    const rrset = body === 0 ? 0 : reader.findRRset(body, RRType.NSEC3)
    return rrset !== 0 && has(response, RRType.NSEC3, reader.rdataStart(rrset) + 2)
  }

  /** Writes the whole name of a node to the response; returns where it is. */
  #putOwner(response: Response, node: number): number {
    const { words, bytes } = this.#reader
    const { synthesized } = response
    const offset = response.synthesizedOctets
    const octets = words[node + NODE_KEY]! & 0xffff
    const apexOctets = words[this.#zone + ZONE_APEX_SIZE]! & 0xffff
    const name = (node + NODE_NAME) * 4
    const apex = (this.#zone + ZONE_APEX) * 4
    for (let i = 0; i < octets; i++) synthesized[offset + i] = bytes[name + i]!
    for (let i = 0; i < apexOctets; i++) synthesized[offset + octets + i] = bytes[apex + i]!
    response.synthesizedOctets = offset + octets + apexOctets
    return offset
  }
}

/** Whether the response has a record of that type with its rdata at that place of the image. */
function has(response: Response, type: number, rdataOffset: number): boolean {
  for (let i = 0; i < response.count; i++) {
    const isIt = response.type[i] === type && response.rdataOffset[i] === rdataOffset
    if (isIt && response.section[i] === Section.Authority) return true
  }
  return false
}
