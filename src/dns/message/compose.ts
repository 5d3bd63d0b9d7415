import { copyOctets } from '../../base/octets.ts'
import { composeOpt, optOctets, wholeOptOctets } from '../edns/compose-opt.ts'
import * as rcodes from '../iana/rcodes.ts'
import * as types from '../iana/types.ts'
import * as lower from '../name/lower.ts'
import { Compressor } from './compressor.ts'
import * as parsing from './parse-query.ts'
import type { Query } from './query.ts'
import type { Response } from './response.ts'
import * as responses from './response.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { RESPONSE_RR_MAX, Section, signedType } = responses
const { HEADER_OCTETS } = parsing
const { LOWER } = lower
const { Rcode } = rcodes
const { RRType } = types

/** Type, class, TTL and rdata length of a record, which follow its owner. */
const RR_FIXED_OCTETS = 10
/** Serial and the four timers after the names of a SOA. */
const SOA_TAIL_OCTETS = 20

/*
 * Scratch memory of the message being composed. All callers share it, because composing is
 * synchronous.
 */
const compressor = new Compressor()
/** Offset of each record of the response, from the message's start. */
const recordOffset = new Uint16Array(RESPONSE_RR_MAX)
/** Records written, by section. */
const written = new Uint16Array(3)

/**
 * Writes the reply to `query` into `out` and returns its length. `limitOctets`: 512..65535, the
 * maximum that the client accepts; `out` has at least that length.
 *
 * Reserves space for the OPT record first, then writes the sections in wire order. If an RRset does
 * not fit, the whole RRset with its signatures is omitted, and everything after it. TC means that
 * the client must repeat the query because it lacks answer or authority data, or glue that a
 * referral needs (RFC 9471 section 3.1). The name servers beside an answer and other additional
 * data are optional (RFC 2181 section 9).
 */
export function compose(
  query: Query,
  response: Response,
  out: Uint8Array,
  limitOctets: number,
): number {
  const reserved = optOctets(query, response)
  const end = limitOctets - reserved
  compressor.reset()
  let at = composeQuestion(query, out)
  written[0] = written[1] = written[2] = 0
  let fits = true
  for (let section = 0; section < 3 && fits && response.count > 0; section++) {
    const next = composeSection(query, response, section, out, at, end)
    fits = next >= 0
    at = fits ? next : -next
    if (!fits && losesNeededData(response, section)) response.truncated = true
  }
  if (reserved > 0) at = composeOpt(query, response, out, at, limitOctets)
  composeHeader(query, response, out, reserved > 0 ? 1 : 0)
  return at
}

/**
 * Returns the length of the reply without compression and truncation: the size in CoreDNS's logs
 * and metrics.
 */
export function uncompressedOctets(query: Query, response: Response): number {
  let octets = HEADER_OCTETS + query.questionOctets + wholeOptOctets(query, response)
  for (let i = 0; i < response.count; i++) {
    const owner = response.ownerBytes[i]!
    let at = response.ownerOffset[i]!
    while (at < owner.length && owner[at] !== 0) at += owner[at]! + 1
    octets += at + 1 - response.ownerOffset[i]! + RR_FIXED_OCTETS + response.rdataOctets[i]!
  }
  return octets
}

/** Copies the question unchanged, including case: clients compare it (RFC 5452 section 9.1). */
function composeQuestion(query: Query, out: Uint8Array): number {
  copyOctets(query.packet, HEADER_OCTETS, out, HEADER_OCTETS, query.questionOctets)
  return HEADER_OCTETS + query.questionOctets
}

function composeHeader(query: Query, response: Response, out: Uint8Array, optCount: number): void {
  // Without OPT, a reply can't contain the upper bits of an extended code.
  const rcode = response.rcode > 0xf && optCount === 0 ? Rcode.SERVFAIL : response.rcode
  const additional = written[Section.Additional]! + optCount
  out[0] = query.id >> 8
  out[1] = query.id & 0xff
  out[2] =
    0x80 |
    (query.opcode << 3) |
    (response.authoritative ? 0x04 : 0) |
    (response.truncated ? 0x02 : 0) |
    (response.recursionDesired ? 0x01 : 0)
  out[3] =
    (response.recursionAvailable ? 0x80 : 0) |
    (response.authenticData ? 0x20 : 0) |
    (response.checkingDisabled ? 0x10 : 0) |
    (rcode & 0xf)
  out[4] = 0
  out[5] = query.questionOctets > 0 ? 1 : 0
  out[6] = written[Section.Answer]! >> 8
  out[7] = written[Section.Answer]! & 0xff
  out[8] = written[Section.Authority]! >> 8
  out[9] = written[Section.Authority]! & 0xff
  out[10] = additional >> 8
  out[11] = additional & 0xff
}

/**
 * Writes the records of one section. Returns the offset behind them. If one does not fit, returns
 * the negated offset behind the records that remain.
 */
function composeSection(
  query: Query,
  response: Response,
  section: number,
  out: Uint8Array,
  start: number,
  end: number,
): number {
  let at = start
  for (let i = 0; i < response.count; i++) {
    if (response.section[i] !== section) continue
    recordOffset[i] = at
    const next = composeRecord(query, response, i, out, at, end)
    if (next === -1) return -cutRRset(response, section, i)
    at = next
    written[section]!++
  }
  return at
}

/**
 * Removes the RRset of record `cut` with its signatures from the message, and RRsets that are mixed
 * with it (a shuffle mixes A and AAAA). Returns the new end of the section.
 */
function cutRRset(response: Response, section: number, cut: number): number {
  let first = cut
  for (let i = cut - 1; i >= 0; i--) {
    if (response.section[i] !== section) continue
    for (let k = cut; k >= first; k--) {
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

/** Writes record `i` at `out[start]`; returns the offset behind it, or -1 if it would pass `end`. */
function composeRecord(
  query: Query,
  response: Response,
  i: number,
  out: Uint8Array,
  start: number,
  end: number,
): number {
  const owner = response.ownerBytes[i]!
  let at = compressor.writeOwner(query, owner, response.ownerOffset[i]!, out, start, end)
  if (at === -1 || at + RR_FIXED_OCTETS > end) return -1
  const type = response.type[i]!
  const ttl = response.ttlSeconds[i]!
  out[at] = type >> 8
  out[at + 1] = type & 0xff
  out[at + 2] = response.rrclass[i]! >> 8
  out[at + 3] = response.rrclass[i]! & 0xff
  out[at + 4] = ttl >>> 24
  out[at + 5] = (ttl >>> 16) & 0xff
  out[at + 6] = (ttl >>> 8) & 0xff
  out[at + 7] = ttl & 0xff
  at += RR_FIXED_OCTETS
  const next = composeRdata(query, response, i, out, at, end)
  if (next === -1) return -1
  out[at - 2] = (next - at) >> 8
  out[at - 1] = (next - at) & 0xff
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
  out: Uint8Array,
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
      return compressor.writeName(query, rdata, offset, out, at, end)
    case RRType.MX: {
      const name = putOctets(rdata, offset, 2, out, at, end)
      return name === -1 ? -1 : compressor.writeName(query, rdata, offset + 2, out, name, end)
    }
    case RRType.SOA:
      return composeSoa(query, rdata, offset, octets, out, at, end)
    default:
      return putOctets(rdata, offset, octets, out, at, end)
  }
}

function composeSoa(
  query: Query,
  rdata: Uint8Array,
  offset: number,
  octets: number,
  out: Uint8Array,
  start: number,
  end: number,
): number {
  let second = offset
  while (rdata[second]! > 0) second += rdata[second]! + 1
  second++
  let at = compressor.writeName(query, rdata, offset, out, start, end)
  if (at !== -1) at = compressor.writeName(query, rdata, second, out, at, end)
  if (at === -1) return -1
  const tail = offset + octets - SOA_TAIL_OCTETS
  return putOctets(rdata, tail, SOA_TAIL_OCTETS, out, at, end)
}

/** Copies octets. Returns the offset behind them, or -1 if they would pass `end`. */
function putOctets(
  from: Uint8Array,
  offset: number,
  octets: number,
  out: Uint8Array,
  at: number,
  end: number,
): number {
  if (at + octets > end) return -1
  copyOctets(from, offset, out, at, octets)
  return at + octets
}
