import * as classes from '../../dns/iana/classes.ts'
import * as types from '../../dns/iana/types.ts'
import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import type { Section } from '../../dns/message/section.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import * as directories from '../image/signature-directory.ts'
import { scratch } from './scratch.ts'
import type { Steerer } from './steerer.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { RRClass } = classes
const { RRType } = types
const { BODY_STATE, FLAG_SIGNED, RRSET_HEAD, RRSET_STEERING_COUNT, RRSET_TTL } = layout
const { DEFAULT_ANSWER, defaultTtlOf, findSignedType, proofOf, signatureOf } = directories
const { signaturesPerAnswer, signedTypeAt, signedTypeCount, typeOf } = directories

/**
 * Adds RRsets of a zone image to responses: the whole RRset, or the steerer's choice from a steered one. Finds
 * signatures by the directory of the name. Names of presigned zones have no directory: all their signatures are read.
 */
export class RRsetAdder {
  readonly #reader: ZoneReader
  readonly #steerer: Steerer | undefined
  readonly #choice = scratch.choice
  /** Number of the answer that was added last. */
  #answer: number = DEFAULT_ANSWER

  constructor(reader: ZoneReader, steerer: Steerer | undefined) {
    this.#reader = reader
    this.#steerer = steerer
  }

  /**
   * Adds the RRset at `rrset` with the owner at `owner[ownerOffset]`; returns the number of records
   * added, 0 if the steerer chose none. Adds one record of a CNAME or DNAME RRset, even if the set
   * holds more. @hot
   */
  add(
    query: Query,
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    rrset: number,
  ): number {
    const words = this.#reader.words
    const steered = words[rrset + RRSET_STEERING_COUNT] !== 0
    if (steered && this.#steerer !== undefined) {
      return this.#addChosen(query, response, section, owner, ownerOffset, rrset, this.#steerer)
    }
    this.#answer = DEFAULT_ANSWER
    const head = words[rrset + RRSET_HEAD]!
    const type = head >>> 16
    const count = isSingleton(type) ? 1 : head & 0xffff
    const ttl = words[rrset + RRSET_TTL]!
    let at = this.#reader.rdataStart(rrset)
    for (let i = 0; i < count; i++) {
      at = this.#put(response, section, owner, ownerOffset, type, ttl, at)
    }
    return count
  }

  /**
   * As `add`; for queries with DO, also adds the signatures, which do not count as records unless the set is that of
   * the name's signatures. `body`: of the owner. @hot
   */
  addSigned(
    query: Query,
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    body: number,
    rrset: number,
  ): number {
    const first = response.count
    const type = this.#reader.words[rrset + RRSET_HEAD]! >>> 16
    if (type === RRType.RRSIG) {
      return this.#addAllSignatures(response, section, owner, ownerOffset, body, rrset)
    }
    const added =
      type === RRType.NSEC
        ? this.addProof(response, section, owner, ownerOffset, body, rrset, 0)
        : this.add(query, response, section, owner, ownerOffset, rrset)
    if (query.dnssecOk && added > 0 && response.count > first) {
      const ttl = response.ttlSeconds[first]!
      this.addSignatures(response, section, owner, ownerOffset, body, type, ttl, this.#answer)
    }
    return added
  }

  /**
   * Adds the signatures of an answer of the RRset of `type` that the name at `body` owns, with the
   * TTL of the RRset in the response (RFC 4034 section 3). @hot
   */
  addSignatures(
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    body: number,
    type: number,
    ttlSeconds: number,
    answer: number = DEFAULT_ANSWER,
  ): void {
    const reader = this.#reader
    const { words, bytes } = reader
    if ((words[body + BODY_STATE]! & FLAG_SIGNED) === 0) return
    const rrset = reader.findRRset(body, RRType.RRSIG)
    if (words[rrset + RRSET_STEERING_COUNT] !== 0) {
      const block = findSignedType(words, reader.steeringStart(rrset), type)
      if (block === 0) return
      this.#addBlock(response, section, owner, ownerOffset, rrset, block, ttlSeconds, answer)
      return
    }
    const count = words[rrset + RRSET_HEAD]! & 0xffff
    let at = reader.rdataStart(rrset)
    for (let i = 0; i < count; i++) {
      const isWanted = ((bytes[at + 2]! << 8) | bytes[at + 3]!) === type
      if (isWanted) this.#put(response, section, owner, ownerOffset, RRType.RRSIG, ttlSeconds, at)
      at += 2 + ((bytes[at]! << 8) | bytes[at + 1]!)
    }
  }

  /**
   * Adds all signatures that the name at `body` owns, each with the TTL of the RRset that it
   * covers. Of a set with several answers, adds those of the default one. Skips signatures of NSEC3
   * records, which queries do not see at the name. Returns the number of records. @hot
   */
  #addAllSignatures(
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    body: number,
    rrset: number,
  ): number {
    const reader = this.#reader
    const { words, bytes } = reader
    const first = response.count
    if (words[rrset + RRSET_STEERING_COUNT] !== 0) {
      const directory = reader.steeringStart(rrset)
      for (let i = 0; i < signedTypeCount(words, directory); i++) {
        const block = signedTypeAt(words, directory, i)
        if (typeOf(words, block) === RRType.NSEC3) continue
        const ttl = defaultTtlOf(words, block)
        this.#addBlock(response, section, owner, ownerOffset, rrset, block, ttl, DEFAULT_ANSWER)
      }
      return response.count - first
    }
    const count = words[rrset + RRSET_HEAD]! & 0xffff
    let at = reader.rdataStart(rrset)
    for (let i = 0; i < count; i++) {
      const covered = (bytes[at + 2]! << 8) | bytes[at + 3]!
      if (covered !== RRType.NSEC3) {
        const set = reader.findRRset(body, covered)
        const ttl = words[(set === 0 ? rrset : set) + RRSET_TTL]!
        this.#put(response, section, owner, ownerOffset, RRType.RRSIG, ttl, at)
      }
      at += 2 + ((bytes[at]! << 8) | bytes[at + 1]!)
    }
    return response.count - first
  }

  /**
   * Adds an NSEC or NSEC3 RRset: if it has several answers (see signature-directory.ts), the one with that number.
   * Returns the number of records.
   */
  addProof(
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    body: number,
    rrset: number,
    answer: number,
  ): number {
    const { words } = this.#reader
    const head = words[rrset + RRSET_HEAD]!
    const type = head >>> 16
    const ttl = words[rrset + RRSET_TTL]!
    let count = head & 0xffff
    let at = this.#reader.rdataStart(rrset)
    this.#answer = answer
    if (count > 1 && this.#blockOf(body, type) !== 0) {
      at = this.#reader.rdataAt(rrset, at, answer < count ? answer : 0)
      count = 1
    }
    // A second record in a presigned zone is an error of the zone, but the signature covers both.
    for (let i = 0; i < count; i++) {
      at = this.#put(response, section, owner, ownerOffset, type, ttl, at)
    }
    return count
  }

  /**
   * Returns the number of the NSEC or NSEC3 answer that proves that the answer added last, of a set of `type` at the
   * name at `body`, has no records.
   */
  proofOfLast(body: number, type: number): number {
    const block = this.#blockOf(body, type)
    return block === 0 ? 0 : proofOf(this.#reader.words, block, this.#answer)
  }

  /** Returns the block of a type in the directory of a name; 0 = it has none. */
  #blockOf(body: number, type: number): number {
    const reader = this.#reader
    const { words } = reader
    if ((words[body + BODY_STATE]! & FLAG_SIGNED) === 0) return 0
    const rrset = reader.findRRset(body, RRType.RRSIG)
    if (words[rrset + RRSET_STEERING_COUNT] === 0) return 0
    return findSignedType(words, reader.steeringStart(rrset), type)
  }

  /** Adds the signatures of an answer in a block of the directory of the RRSIG RRset at `rrset`. */
  #addBlock(
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    rrset: number,
    block: number,
    ttlSeconds: number,
    answer: number,
  ): void {
    const reader = this.#reader
    const { words } = reader
    const first = signatureOf(words, block, answer)
    if (first < 0) return
    const count = signaturesPerAnswer(words, block)
    let at = reader.rdataAt(rrset, reader.rdataStart(rrset), first)
    for (let i = 0; i < count; i++) {
      at = this.#put(response, section, owner, ownerOffset, RRType.RRSIG, ttlSeconds, at)
    }
  }

  #addChosen(
    query: Query,
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    rrset: number,
    steerer: Steerer,
  ): number {
    const reader = this.#reader
    const words = reader.words
    const choice = this.#choice
    choice.count = 0
    choice.ttlSeconds = -1
    choice.answer = DEFAULT_ANSWER
    steerer.choose(query, response, words, reader.steeringStart(rrset), choice)
    this.#answer = choice.answer
    const type = words[rrset + RRSET_HEAD]! >>> 16
    const ttl = choice.ttlSeconds >= 0 ? choice.ttlSeconds : words[rrset + RRSET_TTL]!
    const count = isSingleton(type) && choice.count > 1 ? 1 : choice.count
    const start = reader.rdataStart(rrset)
    for (let i = 0; i < count; i++) {
      const at = reader.rdataAt(rrset, start, choice.index[i]!)
      this.#put(response, section, owner, ownerOffset, type, ttl, at)
    }
    return count
  }

  /** Adds a record with the packed rdata at octet `at`. Returns where the next rdata starts. */
  #put(
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    type: number,
    ttlSeconds: number,
    at: number,
  ): number {
    const { bytes } = this.#reader
    const octets = (bytes[at]! << 8) | bytes[at + 1]!
    const start = at + 2
    response.add(section, owner, ownerOffset, type, RRClass.IN, ttlSeconds, bytes, start, octets)
    return start + octets
  }
}

function isSingleton(type: number): boolean {
  return type === RRType.CNAME || type === RRType.DNAME
}
