import { randomBytes, randomInt } from 'node:crypto'
import { OptionCode, Rcode, RRType } from '../../dns/iana/index.ts'
import { EDNS_DNSSEC_OK, HeaderFlag } from '../../dns/message/header.ts'
import type { Message } from '../../dns/message/message.ts'
import { parseMessage } from '../../dns/message/parse-message.ts'
import { LOWER } from '../../dns/name/lower.ts'
import { PAYLOAD_OCTETS } from '../ask.ts'

const HEADER_OCTETS = 12
/** Type and class of a question. */
const QUESTION_FIXED_OCTETS = 4
/** An OPT record without options. */
const OPT_OCTETS = 11
const OPTION_HEADER_OCTETS = 4
const OPCODE_MASK = 0x7800
const RCODE_MASK = 0x000f
/** Errors of a server that could not read a query, or does not want to. */
const BARE_ERRORS: ReadonlySet<number> = new Set([
  Rcode.FORMERR,
  Rcode.SERVFAIL,
  Rcode.NOTIMP,
  Rcode.REFUSED,
])

/** A question for another server. */
export interface UpstreamQuestion {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  readonly type: number
  readonly rrclass: number
  /** Hash of name, type and class. */
  readonly hash: number
  /** RD, AD and CD: bits of `HeaderFlag`. */
  readonly flags: number
  readonly dnssecOk: boolean
  /** Data of the client subnet option (RFC 7871 section 6); undefined = no option. */
  readonly subnet: Uint8Array | undefined
  /** True: the case of each letter is random, and the reply must repeat it (DNS 0x20). */
  readonly mixesCase: boolean
  /** False: without an OPT record, for servers that reject it. */
  readonly hasEdns: boolean
}

/** One query on the wire. */
export interface UpstreamQuery {
  readonly id: number
  readonly octets: Uint8Array
  /** End of the question section in `octets`. */
  readonly questionEnd: number
  readonly mixesCase: boolean
}

/** Why a query failed, or its reply. */
export type Outcome =
  | { readonly message: Message; readonly octets: number }
  | { readonly failure: string }

/** Composes a query with a random id that `isUsed` does not report. */
export function composeQuery(
  question: UpstreamQuestion,
  isUsed: (id: number) => boolean,
): UpstreamQuery {
  const { name, type, rrclass, flags, subnet, hasEdns, mixesCase } = question
  const subnetOctets = subnet === undefined ? 0 : OPTION_HEADER_OCTETS + subnet.length
  const questionEnd = HEADER_OCTETS + name.length + QUESTION_FIXED_OCTETS
  const octets = Buffer.alloc(questionEnd + (hasEdns ? OPT_OCTETS + subnetOctets : 0))
  let id = randomInt(0x10000)
  while (isUsed(id)) id = randomInt(0x10000)
  octets.writeUInt16BE(id, 0)
  octets.writeUInt16BE(flags, 2)
  octets.writeUInt16BE(1, 4)
  octets.set(name, HEADER_OCTETS)
  if (mixesCase) mixCase(octets, HEADER_OCTETS, name.length)
  octets.writeUInt16BE(type, questionEnd - 4)
  octets.writeUInt16BE(rrclass, questionEnd - 2)
  if (hasEdns) putOpt(octets, questionEnd, question)
  return { id, octets, questionEnd, mixesCase }
}

function putOpt(octets: Buffer, start: number, { dnssecOk, subnet }: UpstreamQuestion): void {
  octets.writeUInt16BE(1, 10)
  octets.writeUInt16BE(RRType.OPT, start + 1)
  octets.writeUInt16BE(PAYLOAD_OCTETS, start + 3)
  octets.writeUInt16BE(dnssecOk ? EDNS_DNSSEC_OK : 0, start + 7)
  if (subnet === undefined) return
  octets.writeUInt16BE(OPTION_HEADER_OCTETS + subnet.length, start + 9)
  octets.writeUInt16BE(OptionCode.ECS, start + OPT_OCTETS)
  octets.writeUInt16BE(subnet.length, start + OPT_OCTETS + 2)
  octets.set(subnet, start + OPT_OCTETS + OPTION_HEADER_OCTETS)
}

/** Writes letters of a lower-case name in upper case, each with probability 1/2. */
function mixCase(octets: Uint8Array, start: number, length: number): void {
  const random = randomBytes((length + 7) >> 3)
  for (let i = 0; i < length; i++) {
    const octet = octets[start + i]!
    const isLetter = octet >= 0x61 && octet <= 0x7a
    if (isLetter && (random[i >> 3]! & (1 << (i & 7))) !== 0) octets[start + i] = octet - 0x20
  }
}

/**
 * True if `octets` is the reply to `query`: a response with the same id and question. An error may
 * come without a question, from a server that could not parse it.
 */
export function isReplyTo(octets: Uint8Array, query: UpstreamQuery): boolean {
  if (octets.length < HEADER_OCTETS) return false
  if (((octets[0]! << 8) | octets[1]!) !== query.id) return false
  const flags = (octets[2]! << 8) | octets[3]!
  if ((flags & HeaderFlag.QR) === 0 || (flags & OPCODE_MASK) !== 0) return false
  const questions = (octets[4]! << 8) | octets[5]!
  if (questions === 0) return isBareError(octets, flags & RCODE_MASK)
  if (questions !== 1 || octets.length < query.questionEnd) return false
  const { octets: own, questionEnd, mixesCase } = query
  for (let i = HEADER_OCTETS; i < questionEnd; i++) {
    const octet = octets[i]!
    if (octet === own[i]) continue
    // Type and class are exact: no letters.
    if (mixesCase || i >= questionEnd - QUESTION_FIXED_OCTETS) return false
    if (LOWER[octet] !== own[i]) return false
  }
  return true
}

/**
 * True if a reply without a question has no answer either. Such a reply can be forged without the letters of
 * the name, so it must not say anything about the name.
 */
function isBareError(octets: Uint8Array, rcode: number): boolean {
  const counts = octets[6]! | octets[7]! | octets[8]! | octets[9]!
  return BARE_ERRORS.has(rcode) && counts === 0
}

/** Parses a packet that `isReplyTo` accepted. */
export function readReply(octets: Uint8Array): Outcome {
  const message = parseMessage(octets)
  return message === undefined
    ? { failure: 'the reply is malformed' }
    : { message, octets: octets.length }
}

export function socketFailure(error: NodeJS.ErrnoException): string {
  if (error.code === 'ECONNREFUSED') return 'connection refused'
  return error.message
}

/** The failure if no reply arrived in time. */
export const TIMED_OUT = 'timed out'
/** The failure if the asker needs no reply any more. */
export const CANCELLED = 'cancelled'

/** Ends a wait for a reply early, so that it no longer takes a socket. */
export class Cancellation {
  isCancelled = false
  #stop: (() => void) | undefined

  cancel(): void {
    this.isCancelled = true
    const stop = this.#stop
    this.#stop = undefined
    stop?.()
  }

  /** `stop` ends the wait that begins now, at once if it came too late; undefined = no wait is in progress. */
  set(stop: (() => void) | undefined): void {
    this.#stop = stop
    if (this.isCancelled) this.cancel()
  }
}
