import * as classes from '../../dns/iana/classes.ts'
import * as types from '../../dns/iana/types.ts'
import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import { Section } from '../../dns/message/section.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import { scratch } from './scratch.ts'
import type { Steerer } from './steerer.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { RRClass } = classes
const { RRType } = types
const { BODY_STATE, FLAG_SIGNED, RRSET_HEAD, RRSET_STEERING_COUNT, RRSET_TTL } = layout

/** Adds RRsets of a zone image to responses: the whole RRset, or the steerer's choice from a steered one. */
export class RRsetAdder {
  readonly #reader: ZoneReader
  readonly #steerer: Steerer | undefined
  readonly #choice = scratch.choice

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
    const head = words[rrset + RRSET_HEAD]!
    const type = head >>> 16
    const count = isSingleton(type) ? 1 : head & 0xffff
    const ttlSeconds = words[rrset + RRSET_TTL]!
    const bytes = this.#reader.bytes
    let at = this.#reader.rdataStart(rrset)
    for (let i = 0; i < count; i++) {
      const octets = (bytes[at]! << 8) | bytes[at + 1]!
      at += 2
      response.add(section, owner, ownerOffset, type, RRClass.IN, ttlSeconds, bytes, at, octets)
      at += octets
    }
    return count
  }

  /**
   * Adds the signatures of the RRset of `type` that the name at `body` owns, with the TTL of the
   * RRset in the response (RFC 4034 section 3). @hot
   */
  addSignatures(
    response: Response,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    body: number,
    type: number,
    ttlSeconds: number,
  ): void {
    const reader = this.#reader
    if ((reader.words[body + BODY_STATE]! & FLAG_SIGNED) === 0) return
    const rrset = reader.findRRset(body, RRType.RRSIG)
    const count = reader.words[rrset + RRSET_HEAD]! & 0xffff
    const bytes = reader.bytes
    let at = reader.rdataStart(rrset)
    for (let i = 0; i < count; i++) {
      const octets = (bytes[at]! << 8) | bytes[at + 1]!
      at += 2
      if (((bytes[at]! << 8) | bytes[at + 1]!) === type) {
        response.add(
          section,
          owner,
          ownerOffset,
          RRType.RRSIG,
          RRClass.IN,
          ttlSeconds,
          bytes,
          at,
          octets,
        )
      }
      at += octets
    }
  }

  /**
   * Adds all signatures that the name at `body` owns, each with the TTL of the RRset that it
   * covers. Skips signatures of NSEC3 records, which queries do not see at the name. Returns the
   * number of records. @hot
   */
  addAllSignatures(
    response: Response,
    owner: Uint8Array,
    ownerOffset: number,
    body: number,
    rrset: number,
  ): number {
    const { words, bytes } = this.#reader
    const first = response.count
    const count = words[rrset + RRSET_HEAD]! & 0xffff
    let at = this.#reader.rdataStart(rrset)
    for (let i = 0; i < count; i++) {
      const octets = (bytes[at]! << 8) | bytes[at + 1]!
      at += 2
      const covered = (bytes[at]! << 8) | bytes[at + 1]!
      if (covered !== RRType.NSEC3) {
        const set = this.#reader.findRRset(body, covered)
        const ttl = words[(set === 0 ? rrset : set) + RRSET_TTL]!
        response.add(
          Section.Answer,
          owner,
          ownerOffset,
          RRType.RRSIG,
          RRClass.IN,
          ttl,
          bytes,
          at,
          octets,
        )
      }
      at += octets
    }
    return response.count - first
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
    steerer.choose(query, response, words, reader.steeringStart(rrset), choice)
    const head = words[rrset + RRSET_HEAD]!
    const type = head >>> 16
    const ttlSeconds = choice.ttlSeconds >= 0 ? choice.ttlSeconds : words[rrset + RRSET_TTL]!
    const count = isSingleton(type) && choice.count > 1 ? 1 : choice.count
    const bytes = reader.bytes
    const start = reader.rdataStart(rrset)
    for (let i = 0; i < count; i++) {
      const at = reader.rdataAt(rrset, start, choice.index[i]!)
      const octets = (bytes[at]! << 8) | bytes[at + 1]!
      response.add(section, owner, ownerOffset, type, RRClass.IN, ttlSeconds, bytes, at + 2, octets)
    }
    return count
  }
}

function isSingleton(type: number): boolean {
  return type === RRType.CNAME || type === RRType.DNAME
}
