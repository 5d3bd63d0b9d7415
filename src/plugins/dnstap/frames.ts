import { putWords, wordsOf } from '../../dns/text/put.ts'
import * as entries from './entry.ts'
import * as memory from './memory.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { DATA, EXTRA, LOCAL, LOCAL_IPV6, MANNER, MESSAGES, OVER_TCP } = entries
const { PEER, PEER_IPV6, PORTS, REPLIED, TIMES } = entries
const { entryNumbers, entryView, entryWords, frameView } = memory

/*
 * Tags of fields in dnstap.proto: number * 8 + wire type (0 = varint, 2 = octets with their length, 5 = 32 bits).
 * Varints have a fixed number of octets here, because protobuf allows leading zeros: three, or five for seconds.
 */
const IDENTITY = 0x0a
const VERSION = 0x12
const EXTRA_TEXT = 0x1a
const MESSAGE = 0x72
const TYPE = 0x78
const MESSAGE_TYPE = 0x08
const SOCKET_FAMILY = 0x10
const SOCKET_PROTOCOL = 0x18
const QUERY_ADDRESS = 0x22
const RESPONSE_ADDRESS = 0x2a
const QUERY_PORT = 0x30
const RESPONSE_PORT = 0x38
const QUERY_SECONDS = 0x40
const QUERY_NANOSECONDS = 0x4d
const QUERY_MESSAGE = 0x52
const RESPONSE_SECONDS = 0x60
const RESPONSE_NANOSECONDS = 0x6d
const RESPONSE_MESSAGE = 0x72

const CLIENT_QUERY = 5
const CLIENT_RESPONSE = 6
/** `Dnstap.type` of all frames. */
const TYPE_OF_MESSAGE = 1
const UDP = 1
const TCP = 2
const INET = 1
const INET6 = 2

/** The length of a frame, which precedes it. */
const LENGTH_OCTETS = 4
/** A tag and three octets of a varint. */
const FIELD_OCTETS = 4
const TIME_OCTETS = 11

export interface FrameTexts {
  readonly identity: string
  readonly version: string
  /** Of entries that have none. */
  readonly extra: string
}

/**
 * Encodes entries as data frames of Frame Streams: one for the query, and one for the reply if it was sent. Reads
 * `entryOctets` and writes `frameOctets`.
 */
export class FrameEncoder {
  /** The fields before the message, with `extra` or without it: octets, and zeros up to a multiple of 4. */
  readonly #head: Int32Array
  readonly #headOctets: number
  readonly #ownHead: Int32Array
  readonly #ownHeadOctets: number

  constructor({ identity, version, extra }: FrameTexts) {
    const own = Buffer.concat([textField(IDENTITY, identity), textField(VERSION, version)])
    const head = extra === '' ? own : Buffer.concat([own, textField(EXTRA_TEXT, extra)])
    this.#head = wordsOf(head)
    this.#headOctets = head.length
    this.#ownHead = wordsOf(own)
    this.#ownHeadOctets = own.length
  }

  /** Writes the frames of the entry at index `at` of `entryWords` from `start` on, and returns their end. @hot */
  encode(start: number, at: number): number {
    const end = this.#encodeOne(start, at, false)
    return framesOf(at) === 1 ? end : this.#encodeOne(end, at, true)
  }

  #encodeOne(start: number, at: number, isReply: boolean): number {
    const extraOctets = entryWords[at + EXTRA]!
    let to = start + LENGTH_OCTETS
    if (extraOctets === 0) to = putWords(frameView, to, this.#head, 0, this.#headOctets)
    else {
      to = putWords(frameView, to, this.#ownHead, 0, this.#ownHeadOctets)
      const both = entryWords[at + MESSAGES]!
      const from = (at + DATA) * 4 + (both & 0xffff) + (both >>> 16)
      to = putEntryOctets(putField(to, EXTRA_TEXT, extraOctets), from, extraOctets)
    }
    const from = to + FIELD_OCTETS
    const end = putMessage(from, at, isReply)
    putField(to, MESSAGE, end - from)
    frameView.setInt16(end, TYPE | (TYPE_OF_MESSAGE << 8), true)
    frameView.setInt32(start, end + 2 - start - LENGTH_OCTETS)
    return end + 2
  }
}

/** Frames of the entry at index `at`. */
export function framesOf(at: number): number {
  return (entryWords[at + MANNER]! & REPLIED) === 0 ? 1 : 2
}

function putMessage(start: number, at: number, isReply: boolean): number {
  const manner = entryWords[at + MANNER]!
  const isPeerIPv6 = (manner & PEER_IPV6) !== 0
  const peerOctets = isPeerIPv6 ? 16 : 4
  const type = isReply ? CLIENT_RESPONSE : CLIENT_QUERY
  const protocol = (manner & OVER_TCP) === 0 ? UDP : TCP
  putFour(start, MESSAGE_TYPE, type, SOCKET_FAMILY, isPeerIPv6 ? INET6 : INET)
  putFour(start + 4, SOCKET_PROTOCOL, protocol, QUERY_ADDRESS, peerOctets)
  let to = putEntryOctets(start + 8, (at + PEER) * 4, peerOctets)
  const localOctets = (manner & LOCAL_IPV6) === 0 ? 4 : 16
  frameView.setInt16(to, RESPONSE_ADDRESS | (localOctets << 8), true)
  to = putEntryOctets(to + 2, (at + LOCAL) * 4, localOctets)
  const ports = entryWords[at + PORTS]!
  to = putField(to, QUERY_PORT, ports & 0xffff)
  to = putField(to, RESPONSE_PORT, ports >>> 16)
  const times = (at + TIMES) >> 1
  to = putTime(to, QUERY_SECONDS, QUERY_NANOSECONDS, entryNumbers[times]!)
  const both = entryWords[at + MESSAGES]!
  const queryOctets = both & 0xffff
  const from = (at + DATA) * 4
  if (!isReply) return putKept(to, QUERY_MESSAGE, from, queryOctets)
  to = putTime(to, RESPONSE_SECONDS, RESPONSE_NANOSECONDS, entryNumbers[times + 1]!)
  return putKept(to, RESPONSE_MESSAGE, from + queryOctets, both >>> 16)
}

/** Writes a DNS message, if the entry has it. */
function putKept(at: number, tag: number, from: number, octets: number): number {
  return octets === 0 ? at : putEntryOctets(putField(at, tag, octets), from, octets)
}

function putFour(at: number, first: number, second: number, third: number, fourth: number): void {
  frameView.setInt32(at, first | (second << 8) | (third << 16) | (fourth << 24), true)
}

/** Writes a number below 2^21, or the beginning of a field with that many octets. */
function putField(at: number, tag: number, value: number): number {
  const low = (value & 0x7f) | 0x80 | ((value & 0x3f80) << 1) | 0x8000
  frameView.setInt32(at, tag | (low << 8) | ((value >>> 14) << 24), true)
  return at + FIELD_OCTETS
}

/** The varint of the seconds written last: its first four octets, and the fifth. */
let lastSeconds = -1
let lastLow = 0
let lastHigh = 0

function putTime(at: number, secondsTag: number, nanosecondsTag: number, ms: number): number {
  const seconds = Math.floor(ms / 1000)
  if (seconds !== lastSeconds) splitSeconds(seconds)
  frameView.setInt8(at, secondsTag)
  frameView.setInt32(at + 1, lastLow, true)
  frameView.setInt16(at + 5, lastHigh | (nanosecondsTag << 8), true)
  frameView.setInt32(at + 7, (ms - seconds * 1000) * 1e6, true)
  return at + TIME_OCTETS
}

function splitSeconds(seconds: number): void {
  lastSeconds = seconds
  lastLow = 0
  for (let i = 0; i < 4; i++) lastLow |= (((seconds >>> (7 * i)) & 0x7f) | 0x80) << (8 * i)
  lastHigh = seconds >>> 28
}

/** Copies octets of an entry. Up to three octets behind them have no meaning. */
function putEntryOctets(at: number, from: number, octets: number): number {
  for (let i = 0; i < octets; i += 4) {
    frameView.setInt32(at + i, entryView.getInt32(from + i, true), true)
  }
  return at + octets
}

function textField(tag: number, text: string): Uint8Array {
  const octets = Buffer.from(text)
  const { length } = octets
  const head = [tag, (length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14]
  return Buffer.concat([Uint8Array.from(head), octets])
}
