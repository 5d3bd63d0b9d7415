import { parseOpt } from '../edns/parse-opt.ts'
import * as opcodes from '../iana/opcodes.ts'
import * as types from '../iana/types.ts'
import { copyLabel, hashLabel, joinHash, NAME_HASH_SEED } from '../name/hash.ts'
import { ParseStatus, type Query } from './query.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
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

/**
 * Parses the query in `packet[0..octets-1]` into `query`, and returns which reply it deserves. A
 * NOTIFY (RFC 1996) has the form of a query: its opcode distinguishes it. Never throws and never
 * reads behind the octets, whatever they are; their number bounds the work. Resets `query` first,
 * except the address fields that the transport has set.
 *
 * Octets behind the last record are accepted: RFC 1035 does not mention them, and BIND, NSD and
 * CoreDNS ignore them too.
 */
export function parseQuery(query: Query, packet: Uint8Array, octets: number): ParseStatus {
  reset(query, packet, octets)
  if (octets < HEADER_OCTETS || octets > packet.length) return ParseStatus.Ignore
  query.id = (packet[0]! << 8) | packet[1]!
  const flags = (packet[2]! << 8) | packet[3]!
  query.flags = flags
  if ((flags & 0x8000) !== 0) return ParseStatus.Ignore
  query.opcode = (flags >> 11) & 0xf
  if (query.opcode !== Opcode.QUERY && query.opcode !== Opcode.NOTIFY) return ParseStatus.NotImp

  // Exactly one question: RFC 9619.
  if (packet[4] !== 0 || packet[5] !== 1) return ParseStatus.FormErr
  if (!parseQuestion(query, packet, octets)) return ParseStatus.FormErr
  const answers = (packet[6]! << 8) | packet[7]!
  const authorities = (packet[8]! << 8) | packet[9]!
  const additionals = (packet[10]! << 8) | packet[11]!
  if (answers + authorities + additionals === 0) return ParseStatus.Ok
  if (answers > ANSWERS_MAX || authorities > AUTHORITIES_MAX || additionals > ADDITIONALS_MAX) {
    return ParseStatus.FormErr
  }
  return parseRecords(query, answers + authorities, additionals)
}

function reset(query: Query, packet: Uint8Array, octets: number): void {
  query.packet = packet
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
  query.hasEdns = false
  query.ednsVersion = 0
  query.payloadOctets = 0
  query.dnssecOk = false
  query.nsidRequested = false
  query.cookieOffset = 0
  query.cookieOctets = 0
  query.hasEcs = false
  query.ecsFamily = 0
  query.ecsSourceBits = 0
  query.keepaliveRequested = false
  query.clientIsEcs = false
}

/** Parses the question; returns false if it is incomplete. Rejects a compressed qname: it has nothing to point to. */
function parseQuestion(query: Query, packet: Uint8Array, octets: number): boolean {
  const { qname, labelOffset, suffixHash } = query
  let labels = 0
  let offset = 0
  for (;;) {
    const at = HEADER_OCTETS + offset
    if (at >= octets) return false
    const length = packet[at]!
    labelOffset[labels] = offset
    if (length === 0) break
    // 255 octets hold at most 127 labels, so this also bounds `labels`.
    if (length > LABEL_OCTETS_MAX || offset + length + 1 >= NAME_OCTETS_MAX) return false
    if (at + length >= octets) return false
    suffixHash[labels] = copyLabel(packet, at, qname, offset)
    offset += length + 1
    labels++
  }
  qname[offset] = 0
  const end = HEADER_OCTETS + offset + 1
  if (end + 4 > octets) return false
  query.qnameOctets = offset + 1
  query.labelCount = labels
  query.qtype = (packet[end]! << 8) | packet[end + 1]!
  query.qclass = (packet[end + 2]! << 8) | packet[end + 3]!
  query.questionOctets = offset + 5
  let hash = NAME_HASH_SEED
  suffixHash[labels] = hash
  for (let label = labels - 1; label >= 0; label--) {
    hash = joinHash(hash, suffixHash[label]!)
    suffixHash[label] = hash
  }
  return true
}

/** Fills `suffixHash` from `qname`, `labelOffset` and `labelCount`. */
export function hashSuffixes(query: Query): void {
  const { qname, labelOffset, suffixHash, labelCount } = query
  let hash = NAME_HASH_SEED
  suffixHash[labelCount] = hash
  for (let label = labelCount - 1; label >= 0; label--) {
    hash = hashLabel(hash, qname, labelOffset[label]!)
    suffixHash[label] = hash
  }
}

/**
 * Parses the records after the question: skips `skipped` of them, then reads `additionals` that may
 * be OPT or TSIG.
 */
function parseRecords(query: Query, skipped: number, additionals: number): ParseStatus {
  const { packet, packetOctets: octets } = query
  let at = HEADER_OCTETS + query.questionOctets
  let badEdns = false
  for (let i = 0; i < skipped + additionals; i++) {
    const owner = at
    at = skipName(packet, at, octets)
    if (at === -1 || at + RR_FIXED_OCTETS > octets) return ParseStatus.FormErr
    const type = (packet[at]! << 8) | packet[at + 1]!
    const rdataOctets = (packet[at + 8]! << 8) | packet[at + 9]!
    const rdata = at + RR_FIXED_OCTETS
    if (rdata + rdataOctets > octets) return ParseStatus.FormErr
    if (type === RRType.OPT) {
      // At most one OPT, owned by the root, in the additional section: RFC 6891 section 6.1.1.
      if (i < skipped || query.hasEdns || packet[owner] !== 0) return ParseStatus.FormErr
      if (!parseOpt(query, at, rdataOctets)) badEdns = true
    } else if (type === RRType.TSIG) {
      // TSIG must be the last record: RFC 8945 section 5.2.
      if (i < skipped || i !== skipped + additionals - 1) return ParseStatus.FormErr
      query.tsigOffset = owner
    }
    at = rdata + rdataOctets
  }
  // An unknown version may change the meaning of the rest, so the version is checked first.
  if (query.ednsVersion !== 0) return ParseStatus.BadVers
  return badEdns ? ParseStatus.FormErr : ParseStatus.Ok
}

/** Returns the offset behind the name at `start`, or -1. A pointer ends a name and is not followed. */
function skipName(packet: Uint8Array, start: number, octets: number): number {
  let at = start
  while (at < octets) {
    const length = packet[at]!
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    if (length > LABEL_OCTETS_MAX) return -1
    at += length + 1
    if (at - start >= NAME_OCTETS_MAX) return -1
  }
  return -1
}
