import * as packets from '../../base/packet-memory.ts'
import * as classes from '../iana/classes.ts'
import * as options from '../iana/options.ts'
import * as types from '../iana/types.ts'
import { addWord, joinHash, LABEL_SEED, NAME_HASH_SEED } from '../name/hash.ts'
import { LABELS_MAX } from './query.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetOctets, packetView, packetWords } = packets
const { OptionCode } = options
const { RRClass } = classes
const { RRType } = types

const HEADER_OCTETS = 12
const LABEL_OCTETS_MAX = 63
const NAME_OCTETS_MAX = 255
/** Root label, type and class, after the last label. */
const QUESTION_END_OCTETS = 5
/** QR and the opcode, which are all 0 in a query (RFC 1035 section 4.1.1). */
const QR_AND_OPCODE = 0xf8
/** The header words that count records, in this machine's byte order: one question; no OPT or one OPT. */
const ONE_QUESTION = 0x0000_0100
const ONE_ADDITIONAL = 0x0100_0000
/** An OPT without options: RFC 6891 section 6.1.2. */
const OPT_OCTETS = 11
/** Code, length, family, source and scope bits: RFC 7871 section 6. */
const ECS_FIXED_OCTETS = 8
const DNSSEC_OK = 0x80

/** Octets of a name, and a margin because the code reads and writes four octets at a time. */
const nameBuffer = new ArrayBuffer(NAME_OCTETS_MAX + 9)
const simpleName = new Uint8Array(nameBuffer)
/** The name read last in lower case, four octets per word, little endian. Octets behind the name are undefined. */
export const simpleNameWords = new Uint32Array(nameBuffer)
const nameView = new DataView(nameBuffer)
const simpleLabelOffset = new Uint8Array(new ArrayBuffer(LABELS_MAX + 1))
export const simpleSuffixHash = new Int32Array(new ArrayBuffer(4 * (LABELS_MAX + 1)))

/** The other data of the query read last. */
class SimpleQuery {
  /** Offset of its packet in the packet memory. */
  at = 0
  packetOctets = 0
  id = 0
  flags = 0
  /** The name, as in `Query`. */
  readonly qname: Uint8Array = simpleName
  qnameOctets = 0
  labelCount = 0
  readonly labelOffset: Uint8Array = simpleLabelOffset
  readonly suffixHash: Int32Array = simpleSuffixHash
  qtype = 0
  /** End of the question. */
  end = 0
  hasEdns = false
  payloadOctets = 0
  dnssecOk = false
  /** 0 = no client subnet; its address is at `ecsAt`, of (bits + 7) / 8 octets. */
  ecsFamily = 0
  ecsSourceBits = 0
  ecsAt = 0
}
export const simpleQuery = new SimpleQuery()
const query = simpleQuery

/**
 * Parses the `octets` octets at `at` of the packet memory, a multiple of four, if they are a simple
 * query: class IN, at most an OPT with at most a client subnet. Returns false if `parseQuery` must
 * parse the packet. Parses simple queries as `parseQuery` does, including octets behind the last
 * record. @hot
 */
export function parseSimpleQuery(at: number, octets: number): boolean {
  if (octets < HEADER_OCTETS + QUESTION_END_OCTETS) return false
  if ((packetOctets[at + 2]! & QR_AND_OPCODE) !== 0) return false
  if (packetWords[(at >> 2) + 1] !== ONE_QUESTION) return false
  const others = packetWords[(at >> 2) + 2]!
  if (others !== 0 && others !== ONE_ADDITIONAL) return false
  const root = parseName(at + HEADER_OCTETS, at + octets - QUESTION_END_OCTETS)
  if (root === -1) return false
  if (packetOctets[root + 3] !== 0 || packetOctets[root + 4] !== RRClass.IN) return false
  query.at = at
  query.id = (packetOctets[at]! << 8) | packetOctets[at + 1]!
  query.flags = (packetOctets[at + 2]! << 8) | packetOctets[at + 3]!
  query.packetOctets = octets
  query.qtype = (packetOctets[root + 1]! << 8) | packetOctets[root + 2]!
  query.end = root + QUESTION_END_OCTETS
  query.ecsFamily = 0
  query.ecsSourceBits = 0
  query.hasEdns = others !== 0
  query.dnssecOk = false
  query.payloadOctets = 0
  return others === 0 || parseOpt(query.end, at + octets)
}

/** Parses the name at `start`, whose root is at `last` at most; returns the offset of the root, -1 = invalid. @hot */
function parseName(start: number, last: number): number {
  let labels = 0
  let at = start
  for (;;) {
    const octets = packetOctets[at]!
    if (octets === 0) break
    const end = at + octets + 1
    // The packet continues behind the name, so the name can be read four octets at a time.
    if (octets > LABEL_OCTETS_MAX || end > last || end - start >= NAME_OCTETS_MAX) return -1
    simpleLabelOffset[labels] = at - start
    let hash = LABEL_SEED
    for (; at + 4 <= end; at += 4) {
      const word = lowerWord(packetView.getInt32(at, true))
      nameView.setInt32(at - start, word, true)
      hash = addWord(hash, word)
    }
    const rest = lowerWord(packetView.getInt32(at, true)) & ((1 << ((end - at) << 3)) - 1)
    nameView.setInt32(at - start, rest, true)
    simpleSuffixHash[labels++] = addWord(hash, rest)
    at = end
  }
  simpleName[at - start] = 0
  simpleLabelOffset[labels] = at - start
  query.labelCount = labels
  query.qnameOctets = at - start + 1
  let hash = NAME_HASH_SEED
  simpleSuffixHash[labels] = hash
  while (labels > 0) {
    labels--
    hash = joinHash(hash, simpleSuffixHash[labels]!)
    simpleSuffixHash[labels] = hash
  }
  return at
}

/** Converts four octets to lower case at once, as `LOWER` does one by one. @hot */
function lowerWord(word: number): number {
  const low = word & 0x7f7f7f7f
  // The highest bit of each octet is set if the octet is at least `A`, not above `Z` and not above
  // 127.
  const isLetter = (low + 0x3f3f3f3f) & ~(low + 0x25252525) & ~word & 0x80808080
  return word | (isLetter >>> 2)
}

/** @hot */
function parseOpt(at: number, end: number): boolean {
  if (at + OPT_OCTETS > end) return false
  // Root owner, type OPT, version 0.
  if (packetOctets[at] !== 0 || packetOctets[at + 1] !== 0 || packetOctets[at + 2] !== RRType.OPT)
    return false
  if (packetOctets[at + 6] !== 0) return false
  query.payloadOctets = (packetOctets[at + 3]! << 8) | packetOctets[at + 4]!
  query.dnssecOk = (packetOctets[at + 7]! & DNSSEC_OK) !== 0
  const octets = (packetOctets[at + 9]! << 8) | packetOctets[at + 10]!
  if (at + OPT_OCTETS + octets > end) return false
  return octets === 0 || parseEcs(at + OPT_OCTETS, octets)
}

/** Parses the `octets` octets of an OPT's rdata; returns false unless they are one well-formed client subnet. @hot */
function parseEcs(at: number, octets: number): boolean {
  if (octets < ECS_FIXED_OCTETS || packetOctets[at] !== 0) return false
  if (packetOctets[at + 1] !== OptionCode.ECS || packetOctets[at + 2] !== 0) return false
  if (packetOctets[at + 3] !== octets - 4 || packetOctets[at + 4] !== 0) return false
  const family = packetOctets[at + 5]!
  const bits = packetOctets[at + 6]!
  if (packetOctets[at + 7] !== 0) return false
  if (family !== 1 && family !== 2) return false
  if (bits === 0 || bits > (family === 1 ? 32 : 128)) return false
  if (octets !== ECS_FIXED_OCTETS + ((bits + 7) >> 3)) return false
  // Bits behind the prefix must be zero: RFC 7871 section 6.
  const padding = -bits & 7
  if ((packetOctets[at + octets - 1]! & ((1 << padding) - 1)) !== 0) return false
  query.ecsFamily = family
  query.ecsSourceBits = bits
  query.ecsAt = at + ECS_FIXED_OCTETS
  return true
}
