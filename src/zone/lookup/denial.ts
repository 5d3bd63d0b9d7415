import * as types from '../../dns/iana/types.ts'
import type { Response } from '../../dns/message/response.ts'
import * as sections from '../../dns/message/section.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import type { ChainSearch } from './chain-search.ts'
import type { RRsetAdder } from './rrset-adder.ts'
import { scratch } from './scratch.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { Section } = sections
const { RRType } = types
const { NODE_KEY, NODE_NAME, RRSET_TTL, RRSET_WORDS, ZONE_APEX, ZONE_APEX_SIZE } = layout

/**
 * Adds to the authority section the records that prove absence in a signed zone, each once and with
 * its signatures: NSEC as RFC 4035 section 3.1.3 requires, NSEC3 as RFC 5155 section 7.2 requires.
 * `label` arguments number the labels of the name passed to `enter`: a name "at label 2" is that
 * name without its first two labels.
 */
export class DenialProofs {
  readonly #reader: ZoneReader
  readonly #adder: RRsetAdder
  readonly #search: ChainSearch
  #name: HashedName = scratch.noName
  #zone = 0
  #zoneLabel = 0

  constructor(reader: ZoneReader, adder: RRsetAdder, search: ChainSearch) {
    this.#reader = reader
    this.#adder = adder
    this.#search = search
  }

  /** Sets the zone and the name of the following proofs. Returns false if the zone has no proofs. @hot */
  enter(zone: number, name: HashedName, zoneLabel: number): boolean {
    this.#zone = zone
    this.#name = name
    this.#zoneLabel = zoneLabel
    return this.#search.enter(zone)
  }

  /**
   * Proves that the name at `label` exists without the queried type, or is a delegation without DS.
   * `answer`: number of the name's record that lacks the type; above 0 if steering chose no records.
   * Returns false if the proof also shows a wildcard at an ancestor, which validators treat as a
   * contradiction. @hot
   */
  addNoData(response: Response, label: number, answer = 0): boolean {
    if (!this.#search.isHashed) this.#addAtOrBefore(response, label, false, answer)
    else if (this.#find(label, false)) this.#addFound(response, answer)
    else {
      // Opt-out: an unsigned delegation, or an empty non-terminal above only unsigned delegations
      // (RFC 5155 section 7.2.4).
      const provable = this.#addClosestEncloser(response, label + 1)
      const isWildcard = this.#find(provable, true)
      return !isWildcard || !this.#hasFound(response)
    }
    return true
  }

  /**
   * Proves that neither the name nor the wildcard of its closest encloser exists. `encloser`: label
   * of the closest encloser. Returns false if no proof exists: with opt-out, the closest encloser
   * with a record may be higher up and have a wildcard. @hot
   */
  addNameError(response: Response, encloser: number): boolean {
    if (this.#search.isHashed) {
      const provable = this.#addClosestEncloser(response, encloser)
      if (this.#find(provable, true)) return false
      this.#addFound(response)
      return true
    }
    this.#addAtOrBefore(response, 0, false)
    this.#addAtOrBefore(response, encloser, true)
    return true
  }

  /** Proves that the name does not exist, so that a wildcard matches it. @hot */
  addWildcardAnswer(response: Response, encloser: number): void {
    if (!this.#search.isHashed) this.#addAtOrBefore(response, 0, false)
    else {
      this.#find(encloser - 1, false)
      this.#addFound(response)
    }
  }

  /**
   * Proves that the name does not exist, and that the wildcard of its closest encloser lacks the
   * type. `encloser`: label of the closest encloser. `answer`: as for `addNoData`, of the wildcard.
   * Returns false in the same case as `addNoData`. @hot
   */
  addWildcardNoData(response: Response, encloser: number, answer = 0): boolean {
    if (this.#search.isHashed) {
      const provable = this.#addClosestEncloser(response, encloser)
      // Opt-out: a wildcard above only unsigned delegations has no record.
      if (!this.#find(provable, true)) return true
      if (provable !== encloser) return !this.#hasFound(response)
      this.#addFound(response, answer)
      return true
    }
    this.#addAtOrBefore(response, 0, false)
    this.#addAtOrBefore(response, encloser, true, answer)
    return true
  }

  /**
   * Adds the NSEC of the name at `label`, or of the `*` below it. If that record does not exist,
   * adds the covering one.
   */
  #addAtOrBefore(response: Response, label: number, wildcard: boolean, answer = 0): void {
    this.#search.findName(this.#name, label, this.#zoneLabel, wildcard)
    this.#addFound(response, answer)
  }

  /**
   * Adds the closest provable encloser at or above `label`, and the record that covers the next
   * closer name (RFC 5155 section 7.2.1). Returns the label of that encloser. Hashes only names
   * that exist, which bounds the time.
   */
  #addClosestEncloser(response: Response, label: number): number {
    let encloser = label
    while (encloser < this.#zoneLabel && !this.#find(encloser, false)) {
      encloser++
    }
    if (encloser === this.#zoneLabel) this.#find(encloser, false)
    this.#addFound(response)
    this.#find(encloser - 1, false)
    this.#addFound(response)
    return encloser
  }

  /**
   * Adds the record found last, unless the response already has it. Of several records of one owner, which differ in
   * the types that they list, a response has one: `answer` replaces the default one.
   */
  #addFound(response: Response, answer = 0): void {
    const reader = this.#reader
    const { node, type } = this.#search
    const body = reader.visibleBody(node)
    const rrset = body === 0 ? 0 : reader.findRRset(body, type)
    if (rrset === 0) return
    const had = this.#indexOf(response, type, rrset)
    if (had !== -1 && answer === 0) return
    const owner = had === -1 ? this.#putOwner(response, node) : response.ownerOffset[had]!
    const { synthesized } = response
    const first = response.count
    const section = Section.Authority
    const ttl = reader.words[rrset + RRSET_TTL]!
    const adder = this.#adder
    adder.addProof(response, section, synthesized, owner, body, rrset, answer)
    adder.addSignatures(response, section, synthesized, owner, body, type, ttl, answer)
    if (had === -1) return
    // Both have equally many signatures.
    for (let i = first; i < response.count; i++) response.move(i, had + i - first)
    response.count = first
  }
  /** True if the response has the record found last. */
  #hasFound(response: Response): boolean {
    const reader = this.#reader
    const body = reader.visibleBody(this.#search.node)
    const rrset = body === 0 ? 0 : reader.findRRset(body, RRType.NSEC3)
    return rrset !== 0 && this.#indexOf(response, RRType.NSEC3, rrset) !== -1
  }

  /** Returns the index of the first record of the RRset at `rrset` in the authority section; -1 = none is there. */
  #indexOf(response: Response, type: number, rrset: number): number {
    const start = this.#reader.rdataStart(rrset)
    const end = (rrset + this.#reader.words[rrset + RRSET_WORDS]!) * 4
    for (let i = 0; i < response.count; i++) {
      const at = response.rdataOffset[i]!
      const isIt = response.type[i] === type && at > start && at <= end
      if (isIt && response.section[i] === Section.Authority) return i
    }
    return -1
  }

  /** Finds the NSEC3 that matches or covers the name at `label`, or the `*` below it. True = it matches. */
  #find(label: number, wildcard: boolean): boolean {
    return this.#search.findHash(this.#name, label, wildcard)
  }

  /** Writes the whole name of a node to the response; returns its offset. */
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
