import type { Clock } from '../../base/clock.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import { DROP } from '../../plugin/handler.ts'
import { finishedMs, isUnwritten, sentOctets, sentRcode } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/*
 * A log line before it is text: all data of a query that a format can print, except metadata, in
 * 32-bit integers in the machine's byte order. Entries are made where queries are answered, and
 * printed later.
 *
 *     HEAD      length of the entry in 32-bit integers (8 bits), octets of the name (8), rule (16)
 *     PORT_ID   port of the client (16), id (16)
 *     QUESTION  type (16), class (16)
 *     SIZES     octets of the query (16), octets that the client accepts (16)
 *     MANNER    rcode (16), flags of the reply (6), then a bit each: DO, TCP, no reply, client over
 *               IPv6, destination is IPv6; opcode (4)
 *     SENT      octets of the reply
 *     SECONDS, NANOSECONDS
 *     ADDRESS   of the client: one integer or four; then the name, wire form, lower case; then the destination
 *               address, if the rule's format prints it
 */
export const HEAD = 0
export const PORT_ID = 1
export const QUESTION = 2
export const SIZES = 3
export const MANNER = 4
export const SENT = 5
export const SECONDS = 6
export const NANOSECONDS = 7
export const ADDRESS = 8

export const RULE_MAX = 0xffff
export const FLAGS_SHIFT = 16
export const FLAGS_MASK = 0x3f
export const DNSSEC_OK = 1 << 22
export const OVER_TCP = 1 << 23
export const SILENT = 1 << 24
export const CLIENT_IPV6 = 1 << 25
export const DESTINATION_IPV6 = 1 << 26
const OPCODE_SHIFT = 27
const OPCODE_MASK = 0xf

/** Bits of the flags. */
const AUTHORITATIVE = 1
const TRUNCATED = 2
const RECURSION_DESIRED = 4
const RECURSION_AVAILABLE = 8
const AUTHENTIC_DATA = 16
const CHECKING_DISABLED = 32

const IPV6_WORDS = 4
const NAME_WORDS_MAX = 64
export const ENTRY_WORDS_MAX = ADDRESS + 2 * IPV6_WORDS + NAME_WORDS_MAX

/** Least size that a client accepts (RFC 1035 section 4.2.1), and the size of a TCP message. */
const UDP_OCTETS_MIN = 512
const TCP_OCTETS_MAX = 65_535

/** Longer than any query takes; in seconds it fits into 32 bits. */
const DURATION_MS_MAX = 2 ** 40

/** Length of an entry, and octets of its name, from its HEAD. */
export function wordsOfHead(head: number): number {
  return head & 0xff
}

export function nameOctetsOfHead(head: number): number {
  return (head >>> 8) & 0xff
}

export function ruleOfHead(head: number): number {
  return head >>> 16
}

export function opcodeOf(manner: number): number {
  return (manner >>> OPCODE_SHIFT) & OPCODE_MASK
}

/**
 * Writes the entry of a query after the chain returned `status` to `words` from `at` on, and
 * returns its end. `rule`: the block's rule that prints it. `hasDestination`: whether that rule prints
 * the destination address. @hot
 */
export function composeEntry(
  words: Int32Array,
  at: number,
  tx: Transaction,
  status: number,
  rule: number,
  hasDestination: boolean,
  clock: Clock,
): number {
  const { query } = tx
  words[at + PORT_ID] = query.peerPort | (query.id << 16)
  words[at + QUESTION] = query.qtype | (query.qclass << 16)
  words[at + SIZES] = query.packetOctets | (acceptedOctets(query) << 16)
  words[at + MANNER] =
    mannerOf(tx, status) | (query.opcode << OPCODE_SHIFT) | (query.dnssecOk ? DNSSEC_OK : 0)
  words[at + SENT] = sentOctets(tx, status)
  composeDuration(words, at, finishedMs(tx, clock) - tx.startedMs)
  const name = composeClient(words, at, query)
  const { nameWords, qnameOctets } = query
  const count = (qnameOctets + 3) >> 2
  // Octets behind a name have no meaning, but they can be read.
  for (let i = 0; i < count; i++) words[name + i] = nameWords[i]!
  return endEntry(words, at, name + count, query, qnameOctets, rule, hasDestination)
}

/** Size of the largest reply that the client accepts. */
function acceptedOctets(query: Query): number {
  if (query.protocol !== Protocol.Udp) return TCP_OCTETS_MAX
  return query.hasEdns ? Math.max(UDP_OCTETS_MIN, query.payloadOctets) : UDP_OCTETS_MIN
}

/** MANNER: properties of the reply, and of the query's transport. */
function mannerOf(tx: Transaction, status: number): number {
  const protocol = tx.query.protocol === Protocol.Udp ? 0 : OVER_TCP
  if (status === DROP) return protocol | SILENT
  return protocol | sentRcode(tx, status) | (flagsOf(tx, status) << FLAGS_SHIFT)
}

function flagsOf({ response }: Transaction, status: number): number {
  let set = 0
  if (response.recursionDesired) set |= RECURSION_DESIRED
  if (response.recursionAvailable) set |= RECURSION_AVAILABLE
  if (response.checkingDisabled) set |= CHECKING_DISABLED
  if (!isUnwritten(status)) {
    if (response.authoritative) set |= AUTHORITATIVE
    if (response.truncated) set |= TRUNCATED
    if (response.authenticData) set |= AUTHENTIC_DATA
  }
  return set
}

/** The duration written last: eight queries of a batch have the same one. */
let lastMs = -1
let lastSeconds = 0
let lastNanoseconds = 0

function composeDuration(words: Int32Array, at: number, milliseconds: number): void {
  if (milliseconds !== lastMs) splitDuration(milliseconds)
  words[at + SECONDS] = lastSeconds
  words[at + NANOSECONDS] = lastNanoseconds
}

function splitDuration(milliseconds: number): void {
  lastMs = milliseconds
  const ms = Math.min(Math.max(0, milliseconds), DURATION_MS_MAX)
  lastSeconds = (ms / 1000) | 0
  lastNanoseconds = ((ms - lastSeconds * 1000) * 1e6 + 0.5) | 0
  if (lastNanoseconds === 1e9) {
    lastSeconds++
    lastNanoseconds = 0
  }
}

/** Also sets the address family in MANNER. Returns the end. */
function composeClient(words: Int32Array, at: number, query: Query): number {
  if (query.peerFamily !== 1) words[at + MANNER]! |= CLIENT_IPV6
  return composeAddress(words, at + ADDRESS, query.peerAddress, query.peerFamily)
}

/** Writes what follows the name, and the head. */
function endEntry(
  words: Int32Array,
  at: number,
  behindName: number,
  query: Query,
  nameOctets: number,
  rule: number,
  hasDestination: boolean,
): number {
  let end = behindName
  if (hasDestination) {
    if (query.localFamily !== 1) words[at + MANNER]! |= DESTINATION_IPV6
    end = composeAddress(words, end, query.localAddress, query.localFamily)
  }
  words[at + HEAD] = (end - at) | (nameOctets << 8) | (rule << 16)
  return end
}

function composeAddress(words: Int32Array, at: number, octets: Uint8Array, family: number): number {
  words[at] = wordAt(octets, 0)
  if (family === 1) return at + 1
  words[at + 1] = wordAt(octets, 4)
  words[at + 2] = wordAt(octets, 8)
  words[at + 3] = wordAt(octets, 12)
  return at + IPV6_WORDS
}

function wordAt(octets: Uint8Array, i: number): number {
  return octets[i]! | (octets[i + 1]! << 8) | (octets[i + 2]! << 16) | (octets[i + 3]! << 24)
}
