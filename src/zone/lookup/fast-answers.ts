import * as packets from '../../base/packet-memory.ts'
import * as options from '../../dns/iana/options.ts'
import * as types from '../../dns/iana/types.ts'
import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import * as plain from '../../dns/message/simple-query.ts'
import { mixHash } from '../../dns/name/hash.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import { Choice } from '../image/types.ts'
import type { Steerer } from './steerer.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetOctets, packetView } = packets
const { simpleNameWords, simpleQuery, simpleSuffixHash } = plain
const { OptionCode } = options
const { RRType } = types
const {
  BODY_COUNT_SHIFT,
  BODY_RRSETS,
  BODY_STATE,
  FLAG_SIGNED,
  NODE_KEY,
  NODE_NAME,
  RRSET_HEAD,
  RRSET_STEERING_COUNT,
  RRSET_TTL,
  SLOT_WORDS,
  TABLE_SLOTS,
  ZONE_DELEGATES,
  ZONE_FACTOR,
  ZONE_ID,
} = layout

/** Owner (a pointer to the question, RFC 1035 section 4.1.4), type, class, TTL and rdata length. */
const RECORD_FIXED_OCTETS = 12
const OWNER_OCTETS = 2
/** The pointer to the question at octet 12. */
const QNAME_POINTER = 0xc00c
const CLASS_IN = 1
/** Octets of an OPT without options; octets of a client subnet without its address. */
const OPT_OCTETS = 11
const ECS_FIXED_OCTETS = 8

/** Bits of the third and fourth octets of the header. */
const RESPONSE_AUTHORITATIVE = 0x84
const TRUNCATED = 0x02
const RECURSION_DESIRED = 0x01
const CHECKING_DISABLED = 0x10
const DNSSEC_OK = 0x80

/** 1 for types whose rdata is sent unchanged and needs no additional records. */
const isFastPathType = new Uint8Array(new ArrayBuffer(65_536))
for (const type of [RRType.A, RRType.AAAA, RRType.TXT]) isFastPathType[type] = 1

/**
 * Answers the simple query read last, if its zone has the name itself and an RRset of the queried
 * type. Writes the reply over the query's packet, straight from the image. The reply equals, octet
 * for octet, what `ZoneAnswerer` and `compose` make in several steps. Each thread has one object.
 */
export class FastAnswers {
  readonly reader: ZoneReader
  readonly #steerer: Steerer | undefined
  readonly #choice = new Choice()
  #rrset = 0
  /** Octets of the last reply if its names were not compressed. */
  uncompressedOctets = 0

  constructor(reader: ZoneReader, steerer: Steerer | undefined) {
    this.reader = reader
    this.#steerer = steerer
  }

  /** True if the answer depends on the client. */
  get isSteered(): boolean {
    return (
      this.#steerer !== undefined && this.reader.words[this.#rrset + RRSET_STEERING_COUNT] !== 0
    )
  }

  /**
   * Finds the RRset, in the zone with its apex at octet `nameOctets` of the name. Returns false if
   * the full path must answer. @hot
   */
  find(zone: number, nameOctets: number): boolean {
    const type = simpleQuery.qtype
    const { reader } = this
    // A cut or a DNAME may hide a name below it. The full path answers for apexes and the root.
    if (isFastPathType[type] === 0 || nameOctets === 0) return false
    if (reader.words[zone + ZONE_DELEGATES] !== 0) return false
    const body = this.#findBody(reader.words[zone + ZONE_ID]!, nameOctets)
    if (body === 0) return false
    const { words } = reader
    const state = words[body + BODY_STATE]!
    // The full path adds signatures.
    if (simpleQuery.dnssecOk && (state & FLAG_SIGNED) !== 0) return false
    const end = body + BODY_RRSETS + (state >>> BODY_COUNT_SHIFT)
    for (let i = body + BODY_RRSETS; i < end; i++) {
      const rrset = words[i]!
      if (words[rrset + RRSET_HEAD]! >>> 16 === type) {
        this.#rrset = rrset
        return true
      }
    }
    return false
  }

  /** Finds the body as `ZoneReader.findBody` does, but compares the name word by word. @hot */
  #findBody(id: number, octets: number): number {
    const { reader } = this
    const { words, indexMask } = reader
    const hash = mixHash(simpleSuffixHash[0]! ^ Math.imul(id, ZONE_FACTOR))
    const key = ((id << 16) | octets) >>> 0
    const table = reader.index + TABLE_SLOTS
    for (let slot = hash & indexMask; ; slot = (slot + 1) & indexMask) {
      const node = words[table + slot * SLOT_WORDS + 1]!
      if (node === 0) return 0
      if (words[table + slot * SLOT_WORDS] !== hash || node >= words.length) continue
      if (words[node + NODE_KEY] === key && equalsName(words, node + NODE_NAME, octets)) {
        return reader.visibleBody(node)
      }
    }
  }

  /**
   * Chooses among the records, and turns the packet into the reply. `room`: maximum of octets.
   * Returns the length of the reply; 0 if it does not fit, if nothing was chosen, or if `onlyOne`
   * and several records were chosen. @hot
   */
  compose(query: Query, response: Response, room: number, onlyOne: boolean): number {
    const { reader } = this
    const { words } = reader
    const rrset = this.#rrset
    const head = words[rrset + RRSET_HEAD]!
    let count = head & 0xffff
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
    if (count === 0 || (onlyOne && count > 1)) return leave(steerer)
    const isChosen = steerer !== undefined
    const records = this.#countOctets(rrset, count, isChosen)
    const questionEnd = simpleQuery.end
    const ecsOctets =
      simpleQuery.ecsFamily === 0 ? 0 : ECS_FIXED_OCTETS + ((simpleQuery.ecsSourceBits + 7) >> 3)
    const optOctets = simpleQuery.hasEdns ? OPT_OCTETS + ecsOctets : 0
    const octets = questionEnd - simpleQuery.at + records + optOctets
    if (octets > room) return leave(steerer)
    this.uncompressedOctets = octets + count * (simpleQuery.qnameOctets - OWNER_OCTETS)
    const opt = this.#composeRecords(rrset, count, isChosen, head >>> 16, ttlSeconds, questionEnd)
    if (optOctets > 0) composeOpt(query, response, ecsOctets, opt)
    composeHeader(simpleQuery.at, count)
    return octets
  }

  /** Truncates the reply composed last: no records, TC set. Returns its length, at most that of the query. @hot */
  composeTruncated(query: Query, response: Response): number {
    const { at, end, hasEdns, ecsFamily } = simpleQuery
    const ecsOctets =
      ecsFamily === 0 ? 0 : ECS_FIXED_OCTETS + ((simpleQuery.ecsSourceBits + 7) >> 3)
    if (hasEdns) composeOpt(query, response, ecsOctets, end)
    composeHeader(at, 0)
    packetOctets[at + 2] = packetOctets[at + 2]! | TRUNCATED
    return end - at + (hasEdns ? OPT_OCTETS + ecsOctets : 0)
  }

  /** Returns the octets of all records of the answer. @hot */
  #countOctets(rrset: number, count: number, isChosen: boolean): number {
    const { reader } = this
    const { bytes } = reader
    const first = reader.rdataStart(rrset)
    let from = first
    let octets = count * RECORD_FIXED_OCTETS
    for (let i = 0; i < count; i++) {
      if (isChosen) from = reader.rdataAt(rrset, first, this.#choice.index[i]!)
      const rdataOctets = (bytes[from]! << 8) | bytes[from + 1]!
      octets += rdataOctets
      from += 2 + rdataOctets
    }
    return octets
  }

  /** Writes the records at `start` of the packet memory; returns the offset of their end. @hot */
  #composeRecords(
    rrset: number,
    count: number,
    isChosen: boolean,
    type: number,
    ttlSeconds: number,
    start: number,
  ): number {
    const { reader } = this
    const { bytes } = reader
    const first = reader.rdataStart(rrset)
    let from = first
    let at = start
    for (let i = 0; i < count; i++) {
      if (isChosen) from = reader.rdataAt(rrset, first, this.#choice.index[i]!)
      const octets = (bytes[from]! << 8) | bytes[from + 1]!
      packetView.setInt32(at, (QNAME_POINTER << 16) | type)
      packetView.setInt32(at + 4, (CLASS_IN << 16) | (ttlSeconds >>> 16))
      packetView.setInt32(at + 8, (ttlSeconds << 16) | octets)
      at += RECORD_FIXED_OCTETS
      from += 2
      const end = at + octets
      for (; at + 4 <= end; at += 4, from += 4) {
        const low = bytes[from]! | (bytes[from + 1]! << 8)
        packetView.setInt32(at, low | (bytes[from + 2]! << 16) | (bytes[from + 3]! << 24), true)
      }
      for (; at < end; at++, from++) packetOctets[at] = bytes[from]!
    }
    return at
  }
}

/** Leaves the query to the full path; returns 0 octets. @hot */
function leave(steerer: Steerer | undefined): number {
  if (steerer !== undefined) steerer.takeBack()
  return 0
}

/**
 * True if the name read last, without its zone, equals the name of `octets` octets in the words
 * from `at` on. @hot
 */
function equalsName(words: Uint32Array, at: number, octets: number): boolean {
  const whole = octets >> 2
  for (let i = 0; i < whole; i++) if (words[at + i] !== simpleNameWords[i]) return false
  const rest = (1 << ((octets & 3) << 3)) - 1
  // A node pads the last word of its name with zeros; the mask clears the octets behind the name
  // read last.
  return rest === 0 || words[at + whole] === (simpleNameWords[whole]! & rest)
}

/** Writes the header of an authoritative NOERROR answer. The packet already has the id and the question. @hot */
function composeHeader(at: number, count: number): void {
  packetOctets[at + 2] = RESPONSE_AUTHORITATIVE | (packetOctets[at + 2]! & RECURSION_DESIRED)
  packetOctets[at + 3] = packetOctets[at + 3]! & CHECKING_DISABLED
  packetOctets[at + 6] = count >> 8
  packetOctets[at + 7] = count
}

/** @hot */
function composeOpt(query: Query, response: Response, ecsOctets: number, at: number): void {
  packetView.setInt32(at, (RRType.OPT << 8) | (response.payloadOctets >> 8))
  packetView.setInt32(at + 4, response.payloadOctets << 24)
  packetOctets[at + 7] = simpleQuery.dnssecOk ? DNSSEC_OK : 0
  packetOctets[at + 8] = 0
  packetOctets[at + 9] = 0
  packetOctets[at + 10] = ecsOctets
  if (ecsOctets === 0) return
  packetView.setInt32(at + 11, (OptionCode.ECS << 16) | (ecsOctets - 4))
  const scope = response.scopeBits
  packetView.setInt32(
    at + 15,
    (simpleQuery.ecsFamily << 16) | (simpleQuery.ecsSourceBits << 8) | scope,
  )
  const { ecsAddress } = query
  for (let i = 0; i < ecsOctets - ECS_FIXED_OCTETS; i++) packetOctets[at + 19 + i] = ecsAddress[i]!
}
