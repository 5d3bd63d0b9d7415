import * as packets from '../../base/packet-memory.ts'
import { parseOpt } from '../edns/parse-opt.ts'
import * as opcodes from '../iana/opcodes.ts'
import * as types from '../iana/types.ts'
import { addWord, joinHash, LABEL_SEED, NAME_HASH_SEED } from '../name/hash.ts'
import { lowerWord } from '../name/lower.ts'
import { ParseStatus, type Query } from './query.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetOctets, packetView, SCRATCH, SCRATCH_OCTETS } = packets
const { RRType } = types
const { Opcode } = opcodes

/** Octets of a message header (RFC 1035 section 4.1.1). */
export const HEADER_OCTETS = 12

const LABEL_OCTETS_MAX = 63
const NAME_OCTETS_MAX = 255
/** Type, class, TTL and rdata length of a record, which follow its owner. */
const RR_FIXED_OCTETS = 10

/*
 * Maximum of records of a query per section. An IXFR has one in authority, a NOTIFY one in answer;
 * OPT and TSIG make two in additional. No query needs more, and CoreDNS has the same limits.
 */
const ANSWERS_MAX = 1
const AUTHORITIES_MAX = 1
const ADDITIONALS_MAX = 2

/** As `parsePacket`, for a packet outside of the packet memory: `packet[0..octets-1]`. */
export function parseQuery(query: Query, packet: Uint8Array, octets: number): ParseStatus {
  query.packet = packet
  const isWhole = octets <= packet.length && octets <= SCRATCH_OCTETS
  if (isWhole) packetOctets.set(packet.subarray(0, octets), SCRATCH)
  return parsePacket(query, SCRATCH, isWhole ? octets : 0)
}

/**
 * Parses the query of `octets` octets at `at` of the packet memory into `query`, and returns which
 * reply it deserves. A NOTIFY (RFC 1996) has the form of a query: its opcode distinguishes it. Never
 * throws and never uses octets behind the packet, whatever they are; their number bounds the work.
 * Resets `query` first, except the packet and the address fields that the transport has set.
 *
 * Octets behind the last record are accepted: RFC 1035 does not mention them, and BIND, NSD and
 * CoreDNS ignore them too. @hot
 */
export function parsePacket(query: Query, at: number, octets: number): ParseStatus {
  reset(query, octets)
  if (octets < HEADER_OCTETS) return ParseStatus.Ignore
  query.id = (packetOctets[at]! << 8) | packetOctets[at + 1]!
  const flags = (packetOctets[at + 2]! << 8) | packetOctets[at + 3]!
  query.flags = flags
  if ((flags & 0x8000) !== 0) return ParseStatus.Ignore
  query.opcode = (flags >> 11) & 0xf
  if (query.opcode !== Opcode.QUERY && query.opcode !== Opcode.NOTIFY) return ParseStatus.NotImp

  // Exactly one question: RFC 9619.
  if (packetOctets[at + 4] !== 0 || packetOctets[at + 5] !== 1) return ParseStatus.FormErr
  if (!parseQuestion(query, at + HEADER_OCTETS, at + octets)) return ParseStatus.FormErr
  const answers = (packetOctets[at + 6]! << 8) | packetOctets[at + 7]!
  const authorities = (packetOctets[at + 8]! << 8) | packetOctets[at + 9]!
  const additionals = (packetOctets[at + 10]! << 8) | packetOctets[at + 11]!
  if (answers + authorities + additionals === 0) return ParseStatus.Ok
  if (answers > ANSWERS_MAX || authorities > AUTHORITIES_MAX || additionals > ADDITIONALS_MAX) {
    return ParseStatus.FormErr
  }
  return parseRecords(query, at, answers + authorities, additionals)
}

function reset(query: Query, octets: number): void {
  query.packetOctets = octets
  query.id = 0
  query.flags = 0
  query.opcode = 0
  query.qtype = 0
  query.qclass = 0
  query.qnameOctets = 0
  query.labelCount = 0
  query.questionOctets = 0
  query.tsigOffset = 0
  query.clientIsEcs = false
  if (query.hasEdns) resetEdns(query)
}

function resetEdns(query: Query): void {
  query.hasEdns = false
  query.ednsVersion = 0
  query.payloadOctets = 0
  query.dnssecOk = false
  query.compactOk = false
  query.nsidRequested = false
  query.zoneVersionRequested = false
  query.cookieOffset = 0
  query.cookieOctets = 0
  query.hasEcs = false
  query.ecsFamily = 0
  query.ecsSourceBits = 0
  query.keepaliveRequested = false
}

/**
 * Parses the question at `start`; returns false if it does not end before `end`. Rejects a
 * compressed qname: it has nothing to point to. Reads and writes a name by four octets. @hot
 */
function parseQuestion(query: Query, start: number, end: number): boolean {
  const { nameView, labelOffset, suffixHash } = query
  // The root label, type and class follow the labels.
  const last = end - 5
  let labels = 0
  let at = start
  for (;;) {
    if (at > last) return false
    const octets = packetOctets[at]!
    labelOffset[labels] = at - start
    if (octets === 0) break
    // 255 octets hold at most 127 labels, so this also bounds `labels`.
    const next = at + octets + 1
    if (octets > LABEL_OCTETS_MAX || next > last || next - start >= NAME_OCTETS_MAX) return false
    let hash = LABEL_SEED
    for (; at + 4 <= next; at += 4) {
      const word = lowerWord(packetView.getInt32(at, true))
      nameView.setInt32(at - start, word, true)
      hash = addWord(hash, word)
    }
    const rest = lowerWord(packetView.getInt32(at, true)) & ((1 << ((next - at) << 3)) - 1)
    nameView.setInt32(at - start, rest, true)
    suffixHash[labels++] = addWord(hash, rest)
    at = next
  }
  nameView.setInt32(at - start, 0)
  query.qnameOctets = at - start + 1
  query.labelCount = labels
  query.qtype = (packetOctets[at + 1]! << 8) | packetOctets[at + 2]!
  query.qclass = (packetOctets[at + 3]! << 8) | packetOctets[at + 4]!
  query.questionOctets = at - start + 5
  let hash = NAME_HASH_SEED
  suffixHash[labels] = hash
  while (labels > 0) {
    labels--
    hash = joinHash(hash, suffixHash[labels]!)
    suffixHash[labels] = hash
  }
  return true
}

/**
 * Parses the records after the question: skips `skipped` of them, then reads `additionals` that may
 * be OPT or TSIG.
 */
function parseRecords(
  query: Query,
  packet: number,
  skipped: number,
  additionals: number,
): ParseStatus {
  const end = packet + query.packetOctets
  let at = packet + HEADER_OCTETS + query.questionOctets
  let badEdns = false
  for (let i = 0; i < skipped + additionals; i++) {
    const owner = at
    at = at < end && packetOctets[at] === 0 ? at + 1 : skipName(at, end)
    if (at === -1 || at + RR_FIXED_OCTETS > end) return ParseStatus.FormErr
    const type = (packetOctets[at]! << 8) | packetOctets[at + 1]!
    const rdataOctets = (packetOctets[at + 8]! << 8) | packetOctets[at + 9]!
    const rdata = at + RR_FIXED_OCTETS
    if (rdata + rdataOctets > end) return ParseStatus.FormErr
    if (type === RRType.OPT) {
      // At most one OPT, owned by the root, in the additional section: RFC 6891 section 6.1.1.
      if (i < skipped || query.hasEdns || packetOctets[owner] !== 0) return ParseStatus.FormErr
      if (!parseOpt(query, packet, at, rdataOctets)) badEdns = true
    } else if (type === RRType.TSIG) {
      // TSIG must be the last record: RFC 8945 section 5.2.
      if (i < skipped || i !== skipped + additionals - 1) return ParseStatus.FormErr
      query.tsigOffset = owner - packet
    }
    at = rdata + rdataOctets
  }
  // An unknown version may change the meaning of the rest, so the version is checked first.
  if (query.ednsVersion !== 0) return ParseStatus.BadVers
  return badEdns ? ParseStatus.FormErr : ParseStatus.Ok
}

/** Returns the offset behind the name at `start`, or -1. A pointer ends a name and is not followed. */
function skipName(start: number, end: number): number {
  let at = start
  while (at < end) {
    const length = packetOctets[at]!
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    if (length > LABEL_OCTETS_MAX) return -1
    at += length + 1
    if (at - start >= NAME_OCTETS_MAX) return -1
  }
  return -1
}
