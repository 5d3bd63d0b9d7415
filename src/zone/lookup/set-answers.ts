import * as types from '../../dns/iana/types.ts'
import type { Query } from '../../dns/message/query.ts'
import { RESPONSE_RR_MAX, type Response } from '../../dns/message/response.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import { Choice } from '../image/types.ts'
import type { NameFinder } from './name-finder.ts'
import * as finding from './name-finder.ts'
import type { Steerer } from './steerer.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { Match } = finding
const { RRType } = types
const { BODY_STATE, FLAG_SIGNED, RRSET_HEAD, RRSET_STEERING_COUNT, RRSET_TTL } = layout

/** 1 for types whose rdata is sent unchanged and needs no additional records. */
const isSetType = new Uint8Array(new ArrayBuffer(65_536))
for (const type of [RRType.A, RRType.AAAA, RRType.TXT]) isSetType[type] = 1

/**
 * Finds answers that are one RRset of the qname, of a type that needs nothing else. Fills
 * `Response.setCount` and what belongs to it, with the records that `ZoneAnswerer` would add one by
 * one. Most answers have this form.
 */
export class SetAnswers {
  readonly reader: ZoneReader
  readonly #finder: NameFinder
  readonly #steerer: Steerer | undefined
  readonly #choice = new Choice()
  #rrset = 0

  constructor(reader: ZoneReader, finder: NameFinder, steerer: Steerer | undefined) {
    this.reader = reader
    this.#finder = finder
    this.#steerer = steerer
  }

  /**
   * Answers from the zone whose apex is at `zoneLabel` of the qname. Returns false, with an unchanged
   * response, if the answer has another form. @hot
   */
  answer(query: Query, response: Response, zone: number, zoneLabel: number): boolean {
    return (
      isSetType[query.qtype] === 1 &&
      this.#find(query, zone, zoneLabel) &&
      this.#add(query, response)
    )
  }

  #find(query: Query, zone: number, zoneLabel: number): boolean {
    const { reader } = this
    const finder = this.#finder
    const match = finder.find(zone, query, zoneLabel, query.qtype)
    if (match !== Match.Name && match !== Match.Wildcard) return false
    if (query.dnssecOk) {
      // Signatures and proofs are records of their own.
      const isSigned = (reader.words[finder.body + BODY_STATE]! & FLAG_SIGNED) !== 0
      if (isSigned || match === Match.Wildcard) return false
    }
    this.#rrset = reader.findRRset(finder.body, query.qtype)
    return this.#rrset !== 0
  }

  #add(query: Query, response: Response): boolean {
    const { reader } = this
    const { words, bytes } = reader
    const rrset = this.#rrset
    let count = words[rrset + RRSET_HEAD]! & 0xffff
    let ttlSeconds = words[rrset + RRSET_TTL]!
    const steerer = words[rrset + RRSET_STEERING_COUNT] === 0 ? undefined : this.#steerer
    const choice = this.#choice
    if (steerer !== undefined) {
      choice.count = 0
      choice.ttlSeconds = -1
      steerer.choose(query, response, words, reader.steeringStart(rrset), choice)
      count = choice.count
      if (choice.ttlSeconds >= 0) ttlSeconds = choice.ttlSeconds
    }
    if (count === 0 || count > RESPONSE_RR_MAX) return false
    if (count > response.setOffset.length) response.growSet(count)
    const { setOffset } = response
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
    response.setCount = count
    response.setTtlSeconds = ttlSeconds
    response.setBytes = bytes
    response.setOctets = octets
    response.imputedLabel = this.#finder.label
    response.authoritative = true
    return true
  }
}
