import * as put from '../../dns/text/put.ts'
import * as entries from './entry.ts'
import {
  putClass,
  putClient,
  putDo,
  putDuration,
  putRcode,
  putReplyFlags,
  putType,
} from './fields.ts'
import * as memory from './memory.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { entryOctets, entryView, entryWords, textView } = memory
const {
  ADDRESS,
  CLIENT_IPV6,
  DNSSEC_OK,
  FLAGS_MASK,
  FLAGS_SHIFT,
  MANNER,
  NANOSECONDS,
  OVER_TCP,
  PORT_ID,
  QUESTION,
  SECONDS,
  SENT,
  SILENT,
  SIZES,
} = entries
const { DIGIT_COUNT, DIGITS, DOTTED, THREE_DIGITS } = put

const SPACE = 0x20
const DOT = 0x2e
const COLON = 0x3a

/** Text of the format between its fields, as 32-bit integers. */
const BEFORE_ID = put.wordsOf(Buffer.from(' - '))[0]!
const BEFORE_TYPE = put.wordsOf(Buffer.from(' "'))[0]!
const BEFORE_RCODE = put.wordsOf(Buffer.from('" '))[0]!
const UDP_SPACED = put.wordsOf(Buffer.from('udp '))[0]!
const TCP_SPACED = put.wordsOf(Buffer.from('tcp '))[0]!

/**
 * Writes a line of COMMON_FORMAT, field by field. `entry`: index of its entry in `entryWords`;
 * `start`: offset in `textView`. Returns the end of the line. This fixed sequence takes a third of
 * the time of a loop over the fields of a format (bench/plugins.mjs), and few Corefiles use another
 * format. @hot
 */
export function putCommon(start: number, entry: number): number {
  const manner = entryWords[entry + MANNER]!
  const ports = entryWords[entry + PORT_ID]!
  const sizes = entryWords[entry + SIZES]!
  const isIPv4 = (manner & CLIENT_IPV6) === 0
  let at = isIPv4 ? putIPv4(start, entryWords[entry + ADDRESS]!) : putClient(textView, start, entry)
  textView.setUint8(at, COLON)
  at = putDigits(at + 1, ports & 0xffff)
  textView.setInt32(at, BEFORE_ID, true)
  at = putDigits(at + 3, ports >>> 16)
  at = putKept(at, entry, QUESTIONS, entryWords[entry + QUESTION]!, 0)
  at = putName(at, (entry + ADDRESS + (isIPv4 ? 1 : 4)) << 2)
  textView.setUint8(at, SPACE)
  textView.setInt32(at + 1, (manner & OVER_TCP) === 0 ? UDP_SPACED : TCP_SPACED, true)
  at = putDigits(at + 5, sizes & 0xffff)
  at = putKept(at, entry, MANNERS, manner & KEPT_MANNER, sizes >>> 16)
  at = putDigits(at, entryWords[entry + SENT]!)
  return putKept(at, entry, TIMES, entryWords[entry + NANOSECONDS]!, entryWords[entry + SECONDS]!)
}

/*
 * Texts with few different values among queries: one that was written before is copied. Each kind
 * has SLOTS places.
 */
const SLOTS = 64
/** ` "A IN `: by the entry's QUESTION. */
const QUESTIONS = 0
/** ` false 512" NOERROR qr,aa,rd `: by the printed part of MANNER, and the client's size limit. */
const MANNERS = SLOTS
/** ` 0.00003799s`: by nanoseconds and seconds. Eight queries of a batch have the same time. */
const TIMES = 2 * SLOTS
const KINDS = 3

const KEPT_MANNER = 0xffff | (FLAGS_MASK << FLAGS_SHIFT) | DNSSEC_OK | SILENT

/** Units of eight octets per text. No text of these kinds has more than 55 octets. */
const KEPT_WORDS = 8
const KEY_FACTOR = 0x9e3779b1
const KEY_SHIFT = 26
const keptKey = new Int32Array(new ArrayBuffer(4 * KINDS * SLOTS))
const keptOther = new Int32Array(new ArrayBuffer(4 * KINDS * SLOTS))
/** 0 = the place is empty. */
const keptOctets = new Uint8Array(new ArrayBuffer(KINDS * SLOTS))
/** Octets, not numbers. Printable characters never form a NaN, whose bits may change in a copy. */
const keptWords = new Float64Array(new ArrayBuffer(8 * KINDS * SLOTS * KEPT_WORDS))

/** Writes a text of `kind` by its keys. @hot */
function putKept(at: number, entry: number, kind: number, key: number, other: number): number {
  const slot = kind + (Math.imul(key ^ (other << 7), KEY_FACTOR) >>> KEY_SHIFT)
  if (keptKey[slot] !== key || keptOther[slot] !== other || keptOctets[slot] === 0) {
    keep(slot, putAnew(at, entry, kind), at)
    keptKey[slot] = key
    keptOther[slot] = other
  }
  const octets = keptOctets[slot]!
  const first = slot * KEPT_WORDS
  for (let i = 0; i < octets; i += 8) {
    textView.setFloat64(at + i, keptWords[first + (i >> 3)]!, true)
  }
  return at + octets
}

function keep(slot: number, end: number, at: number): void {
  keptOctets[slot] = end - at
  for (let i = at; i < end; i += 8) {
    keptWords[slot * KEPT_WORDS + ((i - at) >> 3)] = textView.getFloat64(i, true)
  }
}

function putAnew(at: number, entry: number, kind: number): number {
  if (kind === QUESTIONS) return putQuestion(at, entry)
  if (kind === MANNERS) return putManner(at, entry)
  return putDuration(textView, putSpace(at), entry)
}

function putQuestion(start: number, entry: number): number {
  textView.setInt32(start, BEFORE_TYPE, true)
  const at = putSpace(putType(textView, start + 2, entry))
  return putSpace(putClass(textView, at, entry))
}

function putManner(start: number, entry: number): number {
  let at = putSpace(putDo(textView, putSpace(start), entry))
  at = putDigits(at, entryWords[entry + SIZES]! >>> 16)
  textView.setInt32(at, BEFORE_RCODE, true)
  at = putSpace(putRcode(textView, at + 2, entry))
  return putSpace(putReplyFlags(textView, at, entry))
}

function putSpace(at: number): number {
  textView.setUint8(at, SPACE)
  return at + 1
}

/** As `putNumber`. @hot */
function putDigits(at: number, value: number): number {
  if (value >= 1_000_000) return put.putNumber(textView, at, value)
  if (value < 1000) {
    textView.setInt32(at, DIGITS[value]!, true)
    return at + DIGIT_COUNT[value]!
  }
  const thousands = (value / 1000) | 0
  textView.setInt32(at, DIGITS[thousands]!, true)
  const to = at + DIGIT_COUNT[thousands]!
  textView.setInt32(to, THREE_DIGITS[(value - thousands * 1000) | 0]!, true)
  return to + 3
}

/** `address`: its four octets, the first one lowest. @hot */
function putIPv4(at: number, address: number): number {
  let to = putDotted(at, address & 0xff)
  to = putDotted(to, (address >>> 8) & 0xff)
  to = putDotted(to, (address >>> 16) & 0xff)
  // Without the last dot.
  return putDotted(to, address >>> 24) - 1
}

function putDotted(at: number, octet: number): number {
  textView.setInt32(at, DOTTED[octet]!, true)
  return at + DIGIT_COUNT[octet]! + 1
}

/**
 * As `put.putName`. `start`: offset in `entryOctets`. Reads four octets at once, so it may read
 * beyond the end of a label.
 * @hot
 */
function putName(at: number, start: number): number {
  let to = at
  let from = start + 1
  let length = entryOctets[start]!
  if (length === 0) {
    textView.setUint8(to, DOT)
    return to + 1
  }
  while (length > 0) {
    let special = 0
    for (let i = 0; i < length; i += 4) {
      const word = entryView.getInt32(from + i, true)
      textView.setInt32(to + i, word, true)
      const rest = length - i
      special |= put.specialOf(word) & (rest < 4 ? (1 << (rest << 3)) - 1 : -1)
    }
    const end = from + length
    to = special === 0 ? to + length : put.putSpecial(textView, to, entryOctets, from, end)
    textView.setUint8(to++, DOT)
    from = end + 1
    length = entryOctets[end]!
  }
  return to
}
