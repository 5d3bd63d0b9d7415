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
import * as kept from './kept-texts.ts'
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
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Text of the format between its fields, as 32-bit integers. */
const BEFORE_ID = put.wordsOf(Buffer.from(' - '))[0]!
const UDP_SPACED = put.wordsOf(Buffer.from('udp '))[0]!
const TCP_SPACED = put.wordsOf(Buffer.from('tcp '))[0]!

/**
 * Writes a line of COMMON_FORMAT, field by field. `entry`: index of its entry in `entryWords`;
 * `start`: offset in `textView`; `isEscaped`: the quotes are those of a string of JSON, the name is
 * not escaped. Returns the end of the line. This fixed sequence takes a third of
 * the time of a loop over the fields of a format (bench/plugins.mjs), and few Corefiles use another
 * format. @hot
 */
export function putCommon(start: number, entry: number, isEscaped = false): number {
  const manner = entryWords[entry + MANNER]!
  const ports = entryWords[entry + PORT_ID]!
  const sizes = entryWords[entry + SIZES]!
  const isIPv4 = (manner & CLIENT_IPV6) === 0
  let at = isIPv4 ? putIPv4(start, entryWords[entry + ADDRESS]!) : putClient(textView, start, entry)
  textView.setUint8(at, COLON)
  at = putDigits(at + 1, ports & 0xffff)
  textView.setInt32(at, BEFORE_ID, true)
  at = putDigits(at + 3, ports >>> 16)
  at = putQuestion(at, entry, isEscaped)
  at = putName(at, (entry + ADDRESS + (isIPv4 ? 1 : 4)) << 2)
  textView.setUint8(at, SPACE)
  textView.setInt32(at + 1, (manner & OVER_TCP) === 0 ? UDP_SPACED : TCP_SPACED, true)
  at = putDigits(at + 5, sizes & 0xffff)
  at = putManner(at, entry, isEscaped)
  at = putDigits(at, entryWords[entry + SENT]!)
  return putTime(at, entry)
}

/** The part of MANNER that is printed with the client's size limit. */
export const KEPT_MANNER = 0xffff | (FLAGS_MASK << FLAGS_SHIFT) | DNSSEC_OK | SILENT

/** ` "A IN `. `isEscaped`: for a string of JSON. @hot */
function putQuestion(at: number, entry: number, isEscaped: boolean): number {
  const kind = isEscaped ? kept.ESCAPED_QUESTIONS : kept.QUESTIONS
  const key = entryWords[entry + QUESTION]!
  const end = kept.putKept(at, kind, key, 0)
  return end !== -1 ? end : kept.keep(at, printQuestion(at, entry, isEscaped), kind, key, 0)
}

function printQuestion(start: number, entry: number, isEscaped: boolean): number {
  const at = putSpace(putType(textView, putQuote(putSpace(start), isEscaped), entry))
  return putSpace(putClass(textView, at, entry))
}

/** ` false 512" NOERROR qr,aa,rd `. @hot */
function putManner(at: number, entry: number, isEscaped: boolean): number {
  const kind = isEscaped ? kept.ESCAPED_MANNERS : kept.MANNERS
  const key = entryWords[entry + MANNER]! & KEPT_MANNER
  const size = entryWords[entry + SIZES]! >>> 16
  const end = kept.putKept(at, kind, key, size)
  return end !== -1 ? end : kept.keep(at, printManner(at, entry, isEscaped), kind, key, size)
}

function printManner(start: number, entry: number, isEscaped: boolean): number {
  let at = putSpace(putDo(textView, putSpace(start), entry))
  at = putSpace(putQuote(putDigits(at, entryWords[entry + SIZES]! >>> 16), isEscaped))
  at = putSpace(putRcode(textView, at, entry))
  return putSpace(putReplyFlags(textView, at, entry))
}

/** @hot */
function putTime(at: number, entry: number): number {
  const key = entryWords[entry + NANOSECONDS]!
  const other = entryWords[entry + SECONDS]!
  const end = kept.putKept(at, kept.TIMES, key, other)
  if (end !== -1) return end
  return kept.keep(at, putDuration(textView, putSpace(at), entry), kept.TIMES, key, other)
}

function putQuote(at: number, isEscaped: boolean): number {
  if (!isEscaped) {
    textView.setUint8(at, QUOTE)
    return at + 1
  }
  textView.setUint8(at, BACKSLASH)
  textView.setUint8(at + 1, QUOTE)
  return at + 2
}

function putSpace(at: number): number {
  textView.setUint8(at, SPACE)
  return at + 1
}

/** As `putNumber`. @hot */
export function putDigits(at: number, value: number): number {
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
export function putIPv4(at: number, address: number): number {
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
export function putName(at: number, start: number): number {
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
