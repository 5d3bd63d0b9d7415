import * as packets from '../../base/packet-memory.ts'
import { putOctets } from '../../base/packet-memory.ts'
import { composeOpt, optOctets, wholeOptOctets } from '../edns/compose-opt.ts'
import * as rcodes from '../iana/rcodes.ts'
import * as types from '../iana/types.ts'
import * as lower from '../name/lower.ts'
import { composeDirect } from './compose-direct.ts'
import { Compressor } from './compressor.ts'
import { directOctets } from './direct-octets.ts'
import * as parsing from './parse-query.ts'
import type { Query } from './query.ts'
import * as queries from './query.ts'
import type { Response } from './response.ts'
import * as responses from './response.ts'
import * as sections from './section.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetOctets, packetView, SCRATCH } = packets
const { RESPONSE_RR_MAX, signedType } = responses
const { Section } = sections
const { HEADER_OCTETS } = parsing
const { LOWER } = lower
const { Rcode } = rcodes
const { RRType } = types
const { Protocol } = queries

/** Type, class, TTL and rdata length of a record, which follow its owner. */
const RR_FIXED_OCTETS = 10
/** What each client accepts over UDP (RFC 1035 section 4.2.1). */
const UDP_OCTETS_MIN = 512
const TCP_OCTETS_MAX = 65_535
/** Serial and the four timers after the names of a SOA. */
const SOA_TAIL_OCTETS = 20

/*
 * Scratch memory of the message being composed. All callers share it, because composing is
 * synchronous.
 */
const compressor = new Compressor()
const recordOffset = new Uint32Array(RESPONSE_RR_MAX)
/** Records written, by section. */
const written = new Uint16Array(3)

/**
 * Returns the maximum octets of the reply (RFC 6891 section 6.2.5): what the client accepts, and by UDP no more than
 * `bufsizeOctets`.
 */
export function replyLimit(query: Query, bufsizeOctets: number): number {
  if (query.protocol !== Protocol.Udp) return TCP_OCTETS_MAX
  if (!query.hasEdns) return UDP_OCTETS_MIN
  return Math.max(UDP_OCTETS_MIN, Math.min(query.payloadOctets, bufsizeOctets))
}

/**
 * Returns how many records of the answer section are in a reply of at most `limitOctets` octets: the first
 * ones. Leaves the response as it is, except that a direct answer may be expanded.
 */
export function fittingAnswers(query: Query, response: Response, limitOctets: number): number {
  const { truncated } = response
  composeAt(query, response, SCRATCH, limitOctets)
  response.truncated = truncated
  return written[Section.Answer]!
}

/** As `composeAt`, for a reply outside of the packet memory: writes it to the start of `out`. */
export function compose(
  query: Query,
  response: Response,
  out: Uint8Array,
  limitOctets: number,
): number {
  const octets = composeAt(query, response, SCRATCH, limitOctets)
  out.set(packetOctets.subarray(SCRATCH, SCRATCH + octets))
  return octets
}

/**
 * Writes the reply to `query` at `start` of the packet memory and returns its length. `limitOctets`:
 * 512..65535, the maximum that the client accepts; there is room for that length.
 *
 * Reserves space for the OPT record first, then writes the sections in wire order. If an RRset does
 * not fit, the whole RRset with its signatures is omitted, and everything after it. TC means that
 * the client must repeat the query because it lacks answer or authority data, or glue that a
 * referral needs (RFC 9471 section 3.1). The name servers beside an answer and other additional
 * data are optional (RFC 2181 section 9). @hot
 */
export function composeAt(
  query: Query,
  response: Response,
  start: number,
  limitOctets: number,
): number {
  const reserved = optOctets(query, response)
  const end = start + limitOctets - reserved
  let at = composeQuestion(query, start + HEADER_OCTETS)
  written[0] = written[1] = written[2] = 0
  at = composeAnswer(query, response, start, at, end)
  if (response.sections !== 0) at = composeSections(query, response, start, at, end)
  if (reserved > 0) at = composeOpt(query, response, at, start + limitOctets)
  composeHeader(query, response, start, reserved > 0 ? 1 : 0)
  return at - start
}

/** Writes the records of a response at `from`, and returns the offset behind those that fit. */
function composeSections(
  query: Query,
  response: Response,
  start: number,
  from: number,
  end: number,
): number {
  compressor.reset(start)
  let at = from
  for (let section = 0; section < 3; section++) {
    if ((response.sections & (1 << section)) === 0) continue
    const next = composeSection(query, response, section, at, end)
    if (next < 0) {
      if (losesNeededData(response, section)) response.truncated = true
      return -next
    }
    at = next
  }
  return at
}

/** Writes a direct answer at `at`, and returns the offset behind it. */
function composeAnswer(
  query: Query,
  response: Response,
  start: number,
  at: number,
  end: number,
): number {
  const { direct } = response
  if (direct.count === 0) return at
  const next = composeDirect(query, direct, start, at, end)
  if (next === -1) {
    // As a list of records, any answer can be cut.
    response.expand(query)
    return at
  }
  if (direct.soaOffset !== 0) written[direct.soaSection]!++
  const { answerSignatures, authoritySignatures } = direct
  written[Section.Answer]! += direct.aliasCount + direct.setCount + answerSignatures.count
  written[Section.Authority]! += direct.proofCount + authoritySignatures.count
  return next
}

/**
 * Returns the length of the reply without compression and truncation: the size in CoreDNS's logs
 * and metrics.
 */
export function uncompressedOctets(query: Query, response: Response): number {
  let octets = HEADER_OCTETS + query.questionOctets + wholeOptOctets(query, response)
  if (response.direct.count > 0) octets += directOctets(query, response.direct)
  for (let i = 0; i < response.count; i++) {
    const owner = response.ownerBytes[i]!
    let at = response.ownerOffset[i]!
    while (at < owner.length && owner[at] !== 0) at += owner[at]! + 1
    octets += at + 1 - response.ownerOffset[i]! + RR_FIXED_OCTETS + response.rdataOctets[i]!
  }
  return octets
}

/**
 * Copies the question unchanged, including case: clients compare it (RFC 5452 section 9.1). Returns
 * its end.
 */
function composeQuestion(query: Query, at: number): number {
  const end = at + query.questionOctets
  if (query.packetAt === -1) {
    putOctets(query.packet, HEADER_OCTETS, query.questionOctets, at)
    return end
  }
  const from = query.packetAt + HEADER_OCTETS - at
  // The last turn may copy octets behind the question; the records overwrite them.
  for (let to = at; to < end; to += 4) packetView.setInt32(to, packetView.getInt32(from + to))
  return end
}

function composeHeader(query: Query, response: Response, start: number, optCount: number): void {
  // Without OPT, a reply can't contain the upper bits of an extended code.
  const rcode = response.rcode > 0xf && optCount === 0 ? Rcode.SERVFAIL : response.rcode
  const flags =
    0x8000 |
    (query.opcode << 11) |
    (response.authoritative ? 0x0400 : 0) |
    (response.truncated ? 0x0200 : 0) |
    (response.recursionDesired ? 0x0100 : 0) |
    (response.recursionAvailable ? 0x0080 : 0) |
    (response.authenticData ? 0x0020 : 0) |
    (response.checkingDisabled ? 0x0010 : 0) |
    (rcode & 0xf)
  const questions = query.questionOctets > 0 ? 1 : 0
  packetView.setInt32(start, (query.id << 16) | flags)
  packetView.setInt32(start + 4, (questions << 16) | written[Section.Answer]!)
  const additional = written[Section.Additional]! + optCount
  packetView.setInt32(start + 8, (written[Section.Authority]! << 16) | additional)
}

/**
 * Writes the records of one section. Returns the offset behind them. If one does not fit, returns
 * the negated offset behind the records that remain.
 */
function composeSection(
  query: Query,
  response: Response,
  section: number,
  start: number,
  end: number,
): number {
  const { count } = response
  let at = start
  for (let i = 0; i < count; i++) {
    if (response.section[i] !== section) continue
    recordOffset[i] = at
    const next = composeRecord(query, response, i, at, end)
    if (next === -1) return -cutRRset(response, section, i)
    at = next
    written[section]!++
  }
  return at
}

/**
 * Removes the RRset of record `cut` with its signatures from the message, and RRsets of which a part
 * is behind its first record: a shuffle mixes A and AAAA, and signatures that are made on demand
 * follow all RRsets. Returns the new end of the section.
 */
function cutRRset(response: Response, section: number, cut: number): number {
  let first = cut
  for (let i = cut - 1; i >= 0; i--) {
    if (response.section[i] !== section) continue
    for (let k = response.count - 1; k >= first; k--) {
      if (response.section[k] !== section || !sameRRset(response, i, k)) continue
      first = i
      break
    }
  }
  for (let i = first; i < cut; i++) if (response.section[i] === section) written[section]!--
  compressor.rollBack(recordOffset[first]!)
  return recordOffset[first]!
}

function sameRRset(response: Response, i: number, k: number): boolean {
  if (signedType(response, i) !== signedType(response, k)) return false
  const name = response.ownerBytes[i]!
  return equalsName(
    name,
    response.ownerOffset[i]!,
    response.ownerBytes[k]!,
    response.ownerOffset[k]!,
  )
}

function equalsName(a: Uint8Array, aOffset: number, b: Uint8Array, bOffset: number): boolean {
  if (a === b && aOffset === bOffset) return true
  let at = 0
  for (;;) {
    const length = a[aOffset + at]!
    if (length !== b[bOffset + at]) return false
    if (!(length > 0)) return true
    for (const stop = at + length; at < stop; ) {
      at++
      if (LOWER[a[aOffset + at]!] !== LOWER[b[bOffset + at]!]) return false
    }
    at++
  }
}

/** True if the data that a section lost is worth a second query over TCP. */
function losesNeededData(response: Response, section: number): boolean {
  if (section === Section.Answer) return true
  if (section === Section.Authority) return losesNeededAuthority(response)
  const cut = firstUnwritten(response, section)
  const delegation = delegationOf(response)
  if (delegation === -1) return false
  for (let i = cut; i < response.count; i++) {
    if (response.section[i] !== Section.Additional) continue
    if (response.type[i] !== RRType.A && response.type[i] !== RRType.AAAA) continue
    if (isBelow(response, i, delegation)) return true
  }
  return false
}

/**
 * True if lost authority data is needed. The name servers beside a positive answer are optional;
 * all other authority data is needed.
 */
function losesNeededAuthority(response: Response): boolean {
  if (!response.authoritative || written[Section.Answer] === 0) return true
  for (let i = firstUnwritten(response, Section.Authority); i < response.count; i++) {
    if (response.section[i] !== Section.Authority) continue
    if (signedType(response, i) !== RRType.NS) return true
  }
  return false
}

/** Returns the index of the first record of a section that was not written. */
function firstUnwritten(response: Response, section: number): number {
  let seen = 0
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== section) continue
    if (seen === written[section]) return i
    seen++
  }
  return response.count
}

/** Returns the index of an NS record of a referral; -1 if the response is not a referral. */
function delegationOf(response: Response): number {
  if (response.authoritative || written[Section.Answer] !== 0) return -1
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] === Section.Authority && response.type[i] === RRType.NS) return i
  }
  return -1
}

/** True if the owner of record i is at or below the owner of record k. */
function isBelow(response: Response, i: number, k: number): boolean {
  const name = response.ownerBytes[i]!
  const zone = response.ownerBytes[k]!
  const zoneOffset = response.ownerOffset[k]!
  for (let at = response.ownerOffset[i]!; ; at += name[at]! + 1) {
    if (equalsName(name, at, zone, zoneOffset)) return true
    if (!(name[at]! > 0)) return false
  }
}

/** Writes record `i` at `start`; returns the offset behind it, or -1 if it would pass `end`. */
function composeRecord(
  query: Query,
  response: Response,
  i: number,
  start: number,
  end: number,
): number {
  const owner = response.ownerBytes[i]!
  let at = compressor.writeOwner(query, owner, response.ownerOffset[i]!, start, end)
  if (at === -1 || at + RR_FIXED_OCTETS > end) return -1
  const ttl = response.ttlSeconds[i]!
  packetView.setInt32(at, (response.type[i]! << 16) | response.rrclass[i]!)
  packetView.setInt32(at + 4, ttl)
  at += RR_FIXED_OCTETS
  const next = composeRdata(query, response, i, at, end)
  if (next === -1) return -1
  packetView.setInt16(at - 2, next - at)
  return next
}

/**
 * Writes rdata. Compresses names only in types of RFC 1035, because all resolvers support these
 * (RFC 3597 section 4).
 */
function composeRdata(
  query: Query,
  response: Response,
  i: number,
  at: number,
  end: number,
): number {
  const rdata = response.rdataBytes[i]!
  const offset = response.rdataOffset[i]!
  const octets = response.rdataOctets[i]!
  switch (response.type[i]) {
    case RRType.NS:
    case RRType.CNAME:
    case RRType.PTR:
      return compressor.writeName(query, rdata, offset, at, end)
    case RRType.MX: {
      const name = copyRdata(rdata, offset, 2, at, end)
      return name === -1 ? -1 : compressor.writeName(query, rdata, offset + 2, name, end)
    }
    case RRType.SOA:
      return composeSoa(query, rdata, offset, octets, at, end)
    default:
      return copyRdata(rdata, offset, octets, at, end)
  }
}

function composeSoa(
  query: Query,
  rdata: Uint8Array,
  offset: number,
  octets: number,
  start: number,
  end: number,
): number {
  let second = offset
  while (rdata[second]! > 0) second += rdata[second]! + 1
  second++
  let at = compressor.writeName(query, rdata, offset, start, end)
  if (at !== -1) at = compressor.writeName(query, rdata, second, at, end)
  if (at === -1) return -1
  return copyRdata(rdata, offset + octets - SOA_TAIL_OCTETS, SOA_TAIL_OCTETS, at, end)
}

/** Copies octets. Returns the offset behind them, or -1 if they would pass `end`. */
function copyRdata(
  from: Uint8Array,
  offset: number,
  octets: number,
  at: number,
  end: number,
): number {
  if (at + octets > end) return -1
  putOctets(from, offset, octets, at)
  return at + octets
}
