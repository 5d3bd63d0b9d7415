import * as types from '../../dns/iana/types.ts'
import type { DirectAnswer } from '../../dns/message/direct-answer.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import * as lower from '../../dns/name/lower.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import type { ChainSearch } from './chain-search.ts'
import * as signing from './direct-signatures.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { LOWER } = lower
const { RRType } = types
const { addSignatures, isListed } = signing
const { NODE_KEY, NODE_NAME, RRSET_HEAD, RRSET_TTL } = layout

const ASTERISK = 0x2a
/** The answer of an NSEC or NSEC3 RRset that lists all types. */
const FIRST_ANSWER = 0

/**
 * Adds proofs of absence to direct answers, as `DenialProofs` does to others. `name` is the qname, and `encloser` is
 * the label of its closest encloser. Methods return false if the proof is rare: with opt-out, or of a chain with
 * errors.
 */
export class DirectProofs {
  readonly #reader: ZoneReader
  readonly #search: ChainSearch
  #zoneLabel = 0

  constructor(reader: ZoneReader, search: ChainSearch) {
    this.#reader = reader
    this.#search = search
  }

  /** Sets the zone of the following proofs. Returns false if it has no proofs. @hot */
  enter(zone: number, zoneLabel: number): boolean {
    this.#zoneLabel = zoneLabel
    return this.#search.enter(zone)
  }

  /** Proves that the name at `body` lacks the queried type. @hot */
  addNoData(direct: DirectAnswer, name: HashedName, body: number): boolean {
    const search = this.#search
    if (search.isHashed) return search.findHash(name, 0, false) && this.#addFound(direct)
    const nsec = this.#reader.findRRset(body, RRType.NSEC)
    if (nsec !== 0) return this.#addSuffix(direct, 0, body, nsec)
    return this.#addName(direct, name, 0, false)
  }

  /** Proves that neither the name nor a wildcard exists. `body`: of the closest encloser; 0 = unknown. @hot */
  addNameError(direct: DirectAnswer, name: HashedName, encloser: number, body: number): boolean {
    const search = this.#search
    if (search.isHashed) {
      if (!this.#addCloserHashes(direct, name, encloser)) return false
      return !search.findHash(name, encloser, true) && this.#addFound(direct)
    }
    if (!this.#addName(direct, name, 0, false)) return false
    const nsec = body === 0 ? 0 : this.#reader.findRRset(body, RRType.NSEC)
    if (nsec !== 0 && this.#coversWildcard(nsec, name, encloser)) {
      return this.#addSuffix(direct, encloser, body, nsec)
    }
    return this.#addName(direct, name, encloser, true)
  }

  /** Proves that the name does not exist, so that a wildcard matches it. @hot */
  addWildcardAnswer(direct: DirectAnswer, name: HashedName, encloser: number): boolean {
    if (!this.#search.isHashed) return this.#addName(direct, name, 0, false)
    return !this.#search.findHash(name, encloser - 1, false) && this.#addFound(direct)
  }

  /** Proves that the name does not exist, and that the wildcard that matches it lacks the queried type. @hot */
  addWildcardNoData(direct: DirectAnswer, name: HashedName, encloser: number): boolean {
    if (this.#search.isHashed) {
      if (!this.#addCloserHashes(direct, name, encloser)) return false
      return this.#search.findHash(name, encloser, true) && this.#addFound(direct)
    }
    return this.#addName(direct, name, 0, false) && this.#addName(direct, name, encloser, true)
  }

  /** Adds the NSEC of the name at `label`, or of the `*` below it; else the one that covers it. */
  #addName(direct: DirectAnswer, name: HashedName, label: number, wildcard: boolean): boolean {
    this.#search.findName(name, label, this.#zoneLabel, wildcard)
    return this.#addFound(direct)
  }

  /** Adds the NSEC3 of the closest encloser, and the one that covers the next closer name. */
  #addCloserHashes(direct: DirectAnswer, name: HashedName, encloser: number): boolean {
    const search = this.#search
    if (!search.findHash(name, encloser, false) || !this.#addFound(direct)) return false
    return !search.findHash(name, encloser - 1, false) && this.#addFound(direct)
  }

  /**
   * True if the NSEC of the closest encloser shows that the encloser has no wildcard: its next name is not below the
   * encloser, or it is after the wildcard. False = not known.
   */
  #coversWildcard(nsec: number, name: HashedName, encloser: number): boolean {
    const reader = this.#reader
    const { bytes } = reader
    const start = reader.rdataStart(nsec) + 2
    let end = start
    let labels = 0
    while (bytes[end] !== 0) {
      labels++
      end += bytes[end]! + 1
    }
    const below = labels - (name.labelCount - encloser)
    if (below <= 0) return true
    let child = start
    for (let i = 1; i < below; i++) child += bytes[child]! + 1
    let at = child + bytes[child]! + 1
    let i = name.labelOffset[encloser]!
    if (end - at !== name.qnameOctets - 1 - i) return true
    for (; at < end; at++, i++) if (LOWER[bytes[at]!] !== name.qname[i]) return true
    const first = bytes[child + 1]!
    return first > ASTERISK || (first === ASTERISK && bytes[child]! > 1)
  }

  /** Adds the record found last. */
  #addFound(direct: DirectAnswer): boolean {
    const reader = this.#reader
    const { node, type } = this.#search
    const body = reader.visibleBody(node)
    const rrset = body === 0 ? 0 : reader.findRRset(body, type)
    if (rrset === 0) return false
    const i = direct.proofCount
    direct.proofOwner[i] = (node + NODE_NAME) * 4
    direct.proofOwnerOctets[i] = reader.words[node + NODE_KEY]! & 0xffff
    return this.#add(direct, body, rrset)
  }

  /** Adds the RRset of a name that is the qname from `label` on. */
  #addSuffix(direct: DirectAnswer, label: number, body: number, rrset: number): boolean {
    const i = direct.proofCount
    direct.proofOwner[i] = 0
    direct.proofOwnerOctets[i] = label
    return this.#add(direct, body, rrset)
  }

  /** Adds a record, unless the answer has it. */
  #add(direct: DirectAnswer, body: number, rrset: number): boolean {
    const reader = this.#reader
    const { words } = reader
    const { type } = this.#search
    // The first of several answers is the usual one. In other sets, a second record is an error of the zone.
    const isSingle = (words[rrset + RRSET_HEAD]! & 0xffff) === 1
    if (!isSingle && !isListed(reader, body, type)) return false
    const { proofCount, proofOffset, authoritySignatures } = direct
    const offset = reader.rdataStart(rrset)
    for (let i = 0; i < proofCount; i++) if (proofOffset[i] === offset) return true
    proofOffset[proofCount] = offset
    direct.proofTtlSeconds[proofCount] = words[rrset + RRSET_TTL]!
    const signatures = addSignatures(reader, authoritySignatures, body, type, FIRST_ANSWER)
    direct.proofSignatures[proofCount] = signatures
    direct.proofCount = proofCount + 1
    direct.proofType = type
    direct.proofLabel = this.#zoneLabel
    return true
  }
}
