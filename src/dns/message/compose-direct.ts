import * as packets from '../../base/packet-memory.ts'
import { putOctets } from '../../base/packet-memory.ts'
import * as types from '../iana/types.ts'
import { countCommonLabels, equalSuffixes, type HashedName } from '../name/hashed-name.ts'
import { ALIASES_MAX, type DirectAnswer, type SectionSignatures } from './direct-answer.ts'
import * as parsing from './parse-query.ts'
import type { Query } from './query.ts'
import * as sections from './section.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetView } = packets
const { HEADER_OCTETS } = parsing
const { RRType } = types
const { Section } = sections

/** A pointer as the owner, type, class, TTL and rdata length of a record. */
const FIXED_OCTETS = 12
const POINTER = 0xc000
/** A name that starts here has labels to the last place that a pointer can lead to (14 bits). */
const POINTER_TARGET_MAX = 0x3fff - 255
const CLASS_IN = 1
/** Serial and the four timers after the names of a SOA. */
const SOA_TAIL_OCTETS = 20

/** By alias: where its target would start in the message if it were not compressed. */
const targetAt = new Uint16Array(ALIASES_MAX)
/** Where the name written last starts in the message: the pointer to it. */
let namePointer = 0
/** The next signature of the section that is being written. */
let nextSignature = 0

/**
 * Writes a direct answer to `at` of the packet memory, with its names compressed as far as possible (RFC
 * 1035 section 4.1.4). Returns the offset behind it; -1 if it may not fit before `end`, or if its
 * names only seem to be related. `start`: of the message. @hot
 */
export function composeDirect(
  query: Query,
  direct: DirectAnswer,
  start: number,
  at: number,
  end: number,
): number {
  let to = at
  let owner = HEADER_OCTETS
  nextSignature = 0
  if (direct.aliasCount > 0) {
    to = composeAliases(query, direct, start, at, end)
    if (to === -1) return -1
    owner = namePointer
  }
  if (direct.setCount > 0) to = composeSet(query.qtype, direct, owner, to, end)
  else to = composeSoa(query, direct, start, to, end)
  if (direct.proofCount === 0 || to === -1) return to
  return composeProofs(query, direct, start, to, end)
}

function composeAliases(
  query: Query,
  direct: DirectAnswer,
  start: number,
  from: number,
  end: number,
): number {
  const { aliasCount, aliasOffset, aliasTtlSeconds, aliasSignatures, answerSignatures, targets } =
    direct
  let at = from
  let owner = HEADER_OCTETS
  for (let i = 0; i < aliasCount; i++) {
    const target = targets[i]!
    if (at + FIXED_OCTETS + target.qnameOctets > end) return -1
    const offset = aliasOffset[i]!
    const rdata = composeFixed(owner, RRType.CNAME, aliasTtlSeconds[i]!, at)
    let common = countCommonLabels(target, query)
    let relative: HashedName = query
    let relativeAt = HEADER_OCTETS
    for (let k = 0; k < i; k++) {
      const labels = countCommonLabels(target, targets[k]!)
      if (labels <= common) continue
      common = labels
      relative = targets[k]!
      relativeAt = targetAt[k]!
    }
    targetAt[i] = rdata - start
    at = composeName(target, direct.bytes, offset + 2, common, relative, relativeAt, start, rdata)
    // A pointer cannot lead to a name that is far behind many signatures.
    if (at === -1 || namePointer > POINTER_TARGET_MAX) return -1
    packetView.setInt16(rdata - 2, at - rdata)
    const signatures = aliasSignatures[i]!
    if (signatures > 0) {
      at = composeSignatures(
        direct,
        answerSignatures,
        signatures,
        owner,
        aliasTtlSeconds[i]!,
        at,
        end,
      )
      if (at === -1) return -1
    }
    owner = namePointer
  }
  return at
}

/** Writes the next `count` signatures of a section for the RRset of `owner`. */
function composeSignatures(
  direct: DirectAnswer,
  signatures: SectionSignatures,
  count: number,
  owner: number,
  ttlSeconds: number,
  from: number,
  end: number,
): number {
  const { view } = direct
  const { offset } = signatures
  const head = ((POINTER | owner) << 16) | RRType.RRSIG
  const middle = (CLASS_IN << 16) | (ttlSeconds >>> 16)
  const stop = nextSignature + count
  let at = from
  for (let i = nextSignature; i < stop; i++) {
    const start = offset[i]!
    const octets = view.getUint16(start)
    if (at + FIXED_OCTETS + octets > end) return -1
    packetView.setInt32(at, head)
    packetView.setInt32(at + 4, middle)
    packetView.setInt32(at + 8, (ttlSeconds << 16) | octets)
    at = copyRdata(view, start + 2, octets, at + FIXED_OCTETS)
  }
  nextSignature = stop
  return at
}

/** Copies rdata of the image, and returns the offset behind it. */
function copyRdata(view: DataView, from: number, octets: number, start: number): number {
  const end = start + octets
  const shift = from - start
  let at = start
  for (; at + 4 <= end; at += 4) packetView.setInt32(at, view.getInt32(at + shift))
  for (; at < end; at++) packetView.setInt8(at, view.getInt8(at + shift))
  return end
}

/** Writes the NSEC or NSEC3 records with their signatures. */
function composeProofs(
  query: Query,
  direct: DirectAnswer,
  start: number,
  from: number,
  end: number,
): number {
  const { view, proofCount, proofOffset, proofTtlSeconds, proofSignatures, proofType } = direct
  if (direct.soaOffset === 0) nextSignature = 0
  let at = from
  for (let i = 0; i < proofCount; i++) {
    const octets = view.getUint16(proofOffset[i]!)
    const ttlSeconds = proofTtlSeconds[i]!
    if (at + direct.proofOwnerOctets[i]! + FIXED_OCTETS + octets > end) return -1
    at = composeProofOwner(query, direct, i, start, at)
    if (namePointer > POINTER_TARGET_MAX) return -1
    packetView.setInt32(at, (proofType << 16) | CLASS_IN)
    packetView.setInt32(at + 4, ttlSeconds)
    packetView.setInt16(at + 8, octets)
    at = copyRdata(view, proofOffset[i]! + 2, octets, at + FIXED_OCTETS - 2)
    const { authoritySignatures } = direct
    const count = proofSignatures[i]!
    at = composeSignatures(direct, authoritySignatures, count, namePointer, ttlSeconds, at, end)
    if (at === -1) return -1
  }
  return at
}

/**
 * Writes the owner of a proof with a pointer to the labels that it shares with the qname, which are the apex at least.
 * Sets `namePointer`. Returns the offset behind it.
 */
function composeProofOwner(
  query: Query,
  direct: DirectAnswer,
  i: number,
  start: number,
  at: number,
): number {
  const { bytes, proofLabel } = direct
  const { qname, labelOffset } = query
  const from = direct.proofOwner[i]!
  const octets = direct.proofOwnerOctets[i]!
  if (from === 0) {
    namePointer = HEADER_OCTETS + labelOffset[octets]!
    packetView.setInt16(at, POINTER | namePointer)
    return at + 2
  }
  const shift = from + octets - labelOffset[proofLabel]!
  let label = proofLabel
  // Length octets are part of the comparison, so labels are equal that start at the same place from the end.
  let own = octets
  while (label > 0) {
    const next = labelOffset[label - 1]! + shift
    if (next < from || !isLabel(bytes, from, next)) break
    let k = labelOffset[label]! - 1
    while (k >= labelOffset[label - 1]! && qname[k] === bytes[k + shift]) k--
    if (k >= labelOffset[label - 1]!) break
    label--
    own = next - from
  }
  putOctets(bytes, from, own, at)
  const pointer = HEADER_OCTETS + labelOffset[label]!
  namePointer = own === 0 ? pointer : at - start
  packetView.setInt16(at + own, POINTER | pointer)
  return at + own + 2
}

/** True if a label of the name at `bytes[from]` starts at `bytes[at]`. */
function isLabel(bytes: Uint8Array, from: number, at: number): boolean {
  let start = from
  while (start < at) start += bytes[start]! + 1
  return start === at
}

/** Writes a pointer to `owner` and the fixed part of a record, without the length. Returns its end. */
function composeFixed(owner: number, type: number, ttlSeconds: number, at: number): number {
  packetView.setInt32(at, ((POINTER | owner) << 16) | type)
  packetView.setInt32(at + 4, (CLASS_IN << 16) | (ttlSeconds >>> 16))
  packetView.setInt16(at + 8, ttlSeconds)
  return at + FIXED_OCTETS
}

/**
 * Writes `name`, whose octets are at `bytes[offset]`, with a pointer to the last `common` labels of
 * `relative`, which starts at `relativeAt` of the message. Returns the offset behind it and sets
 * `namePointer`; -1 if these labels are not the same.
 */
function composeName(
  name: HashedName,
  bytes: Uint8Array,
  offset: number,
  common: number,
  relative: HashedName,
  relativeAt: number,
  start: number,
  at: number,
): number {
  namePointer = at - start
  if (common === 0) {
    putOctets(bytes, offset, name.qnameOctets, at)
    return at + name.qnameOctets
  }
  const own = name.labelCount - common
  const label = relative.labelCount - common
  if (!equalSuffixes(name, own, relative, label)) return -1
  const octets = name.labelOffset[own]!
  putOctets(bytes, offset, octets, at)
  const pointer = relativeAt + relative.labelOffset[label]!
  if (own === 0) namePointer = pointer
  packetView.setInt16(at + octets, POINTER | pointer)
  return at + octets + 2
}

function composeSet(
  qtype: number,
  direct: DirectAnswer,
  owner: number,
  start: number,
  end: number,
): number {
  const { setCount, setOffset, setTtlSeconds, bytes } = direct
  if (start + setCount * FIXED_OCTETS + direct.setOctets > end) return -1
  const head = ((POINTER | owner) << 16) | qtype
  const middle = (CLASS_IN << 16) | (setTtlSeconds >>> 16)
  let at = start
  for (let i = 0; i < setCount; i++) {
    const from = setOffset[i]!
    const octets = (bytes[from]! << 8) | bytes[from + 1]!
    packetView.setInt32(at, head)
    packetView.setInt32(at + 4, middle)
    packetView.setInt32(at + 8, (setTtlSeconds << 16) | octets)
    at += FIXED_OCTETS
    putOctets(bytes, from + 2, octets, at)
    at += octets
  }
  const { setSignatures } = direct
  if (setSignatures === 0) return at
  const { answerSignatures } = direct
  return composeSignatures(direct, answerSignatures, setSignatures, owner, setTtlSeconds, at, end)
}

function composeSoa(
  query: Query,
  direct: DirectAnswer,
  start: number,
  from: number,
  end: number,
): number {
  const { bytes, soaOffset, soaServer, soaMailbox } = direct
  if (from + FIXED_OCTETS + direct.rdataOctets(soaOffset) > end) return -1
  const owner = HEADER_OCTETS + query.labelOffset[direct.soaLabel]!
  const rdata = composeFixed(owner, RRType.SOA, direct.soaTtlSeconds, from)
  const first = countCommonLabels(soaServer, query)
  const serverAt = soaOffset + 2
  let at = composeName(soaServer, bytes, serverAt, first, query, HEADER_OCTETS, start, rdata)
  if (at === -1) return -1
  const inQuery = countCommonLabels(soaMailbox, query)
  const inServer = countCommonLabels(soaMailbox, soaServer)
  const mailboxAt = serverAt + soaServer.qnameOctets
  at =
    inServer > inQuery
      ? composeName(soaMailbox, bytes, mailboxAt, inServer, soaServer, rdata - start, start, at)
      : composeName(soaMailbox, bytes, mailboxAt, inQuery, query, HEADER_OCTETS, start, at)
  if (at === -1) return -1
  putOctets(bytes, mailboxAt + soaMailbox.qnameOctets, SOA_TAIL_OCTETS, at)
  at += SOA_TAIL_OCTETS
  packetView.setInt16(rdata - 2, at - rdata)
  const { soaSignatures } = direct
  if (soaSignatures === 0) return at
  const isAnswer = direct.soaSection === Section.Answer
  const signatures = isAnswer ? direct.answerSignatures : direct.authoritySignatures
  const ttl = direct.soaTtlSeconds
  return composeSignatures(direct, signatures, soaSignatures, owner, ttl, at, end)
}
