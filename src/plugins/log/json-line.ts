import { NAME_TEXT_OCTETS_MAX, putAddress, putNumber } from '../../dns/text/put.ts'
import { KEPT_MANNER, putCommon, putDigits, putIPv4, putName } from './common-line.ts'
import {
  ADDRESS,
  CLIENT_IPV6,
  HEAD,
  MANNER,
  NANOSECONDS,
  nameOctetsOfHead,
  OVER_TCP,
  opcodeOf,
  PORT_ID,
  QUESTION,
  SECONDS,
  SENT,
  SILENT,
  SIZES,
} from './entry.ts'
import {
  nameStart,
  putClass,
  putDo,
  putDuration,
  putProtocol,
  putRcode,
  putType,
} from './fields.ts'
import * as kept from './kept-texts.ts'
import * as memory from './memory.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { entryOctets, entryWords, textOctets, textView } = memory

/** A piece of text in units of eight octets, and its octets. Printable characters never form a NaN. */
function piece(text: string): {
  readonly words: Float64Array<ArrayBuffer>
  readonly octets: number
} {
  const octets = Buffer.from(text)
  const words = new Float64Array((octets.length + 7) >> 3)
  new Uint8Array(words.buffer).set(octets)
  return { words, octets: octets.length }
}

const PLUGIN = piece('","plugin":"log","client_ip":"')
const PORT = piece('","client_port":')
const NAME = piece(',"qname":"')
const TYPE = piece('","qtype":"')
const CLASS = piece('","qclass":"')
const PROTOCOL = piece('","protocol":"')
const ID = piece('","id":')
const OPCODE = piece(',"opcode":')
const SIZE = piece(',"request_size":')
const DNSSEC = piece(',"dnssec_ok":')
const BUFSIZE = piece(',"bufsize":')
const RCODE = piece(',"rcode":"')
const NO_RCODE = piece(',"rcode":null')
const QUOTE = piece('"')
const RESPONSE = piece(',"response_size":')
const DURATION = piece(',"duration_seconds":')
const CLOSE = 0x7d

/** More than the octets of a line, except its `msg` and its name. */
const FIXED_OCTETS_MAX = 1024

/** Octets of room for a line whose `msg` has at most `octetsMax` octets before they are escaped. */
export function jsonOctetsMax(octetsMax: number): number {
  return messageOffset(octetsMax) + octetsMax
}

/**
 * Returns where to print the text of `msg`, from the start of the line on. The line is written in front of it: it can
 * have twice the octets, but never reaches an octet that has not been read.
 */
export function messageOffset(octetsMax: number): number {
  return FIXED_OCTETS_MAX + 2 * NAME_TEXT_OCTETS_MAX + octetsMax
}

/**
 * Writes the line of an entry, with CoreDNS's fields, and returns its end. `entry`: its index in `entryWords`; `start`:
 * offset in `textView`; `from`, `end`: its `msg`, at `messageOffset`, in printable characters. @hot
 */
export function putJson(
  start: number,
  entry: number,
  from: number,
  end: number,
  nowMs: number,
): number {
  return putFields(putEscaped(putHead(start, nowMs), from, end), entry)
}

/**
 * As `putJson`, with a line of COMMON_FORMAT as `msg`, which is written in its place. Returns -1 if the name has to be
 * escaped, because octets of it are special. @hot
 */
export function putCommonJson(start: number, entry: number, nowMs: number): number {
  const name = put(putPeer(putCommon(putHead(start, nowMs), entry, true), entry), NAME)
  const end = putName(name, nameStart(entry))
  return isPlain(end - name, entry) ? putAfterName(end, entry) : -1
}

/** True if a printed name has `octets` octets only where it has no escapes: a dot for the length of each label. */
function isPlain(octets: number, entry: number): boolean {
  const nameOctets = nameOctetsOfHead(entryWords[entry + HEAD]!)
  return nameOctets === 1 || octets === nameOctets - 1
}

/** Writes what follows `msg`. @hot */
function putFields(start: number, entry: number): number {
  const name = put(putPeer(start, entry), NAME)
  let at = putName(name, nameStart(entry))
  if (!isPlain(at - name, entry)) at = escapeName(name, at)
  return putAfterName(at, entry)
}

/** @hot */
function putAfterName(start: number, entry: number): number {
  let at = putDigits(putQuestion(start, entry), entryWords[entry + PORT_ID]! >>> 16)
  at = putDigits(putOpcode(at, entry), entryWords[entry + SIZES]! & 0xffff)
  at = putDigits(putManner(at, entry), entryWords[entry + SENT]!)
  return putTime(at, entry)
}

/** `,"opcode":0,"request_size":`. @hot */
function putOpcode(at: number, entry: number): number {
  const key = opcodeOf(entryWords[entry + MANNER]!)
  const end = kept.putKept(at, kept.JSON_OPCODES, key, 0)
  if (end !== -1) return end
  const to = put(putNumber(textView, put(at, OPCODE), key), SIZE)
  return kept.keep(at, to, kept.JSON_OPCODES, key, 0)
}

/** `,"dnssec_ok":false,"bufsize":512,"rcode":"NOERROR","response_size":`. @hot */
function putManner(at: number, entry: number): number {
  const key = entryWords[entry + MANNER]! & KEPT_MANNER
  const size = entryWords[entry + SIZES]! >>> 16
  const end = kept.putKept(at, kept.JSON_MANNERS, key, size)
  return end !== -1 ? end : kept.keep(at, printManner(at, entry), kept.JSON_MANNERS, key, size)
}

function printManner(start: number, entry: number): number {
  let at = putDo(textView, put(start, DNSSEC), entry)
  at = putNumber(textView, put(at, BUFSIZE), entryWords[entry + SIZES]! >>> 16)
  if ((entryWords[entry + MANNER]! & SILENT) !== 0) at = put(at, NO_RCODE)
  else at = put(putRcode(textView, put(at, RCODE), entry), QUOTE)
  return put(at, RESPONSE)
}

/** `,"duration_seconds":0.00003799}`. @hot */
function putTime(at: number, entry: number): number {
  const key = entryWords[entry + NANOSECONDS]!
  const other = entryWords[entry + SECONDS]!
  const end = kept.putKept(at, kept.JSON_TIMES, key, other)
  if (end !== -1) return end
  // In place of the unit.
  const to = putDuration(textView, put(at, DURATION), entry)
  textView.setUint8(to - 1, CLOSE)
  return kept.keep(at, to, kept.JSON_TIMES, key, other)
}

/** @hot */
function put(at: number, { words, octets }: ReturnType<typeof piece>): number {
  for (let i = 0; i < words.length; i++) textView.setFloat64(at + (i << 3), words[i]!, true)
  return at + octets
}

/** The beginning of the lines of one millisecond. */
let headMs = -1
let head = piece('')

function putHead(at: number, nowMs: number): number {
  if (nowMs !== headMs) {
    head = piece(`{"time":"${new Date(nowMs).toISOString()}","level":"INFO","msg":"`)
    headMs = nowMs
  }
  return put(at, head)
}

/** @hot */
function putPeer(start: number, entry: number): number {
  const address = (entry + ADDRESS) << 2
  const from = put(start, PLUGIN)
  const at =
    (entryWords[entry + MANNER]! & CLIENT_IPV6) === 0
      ? putIPv4(from, entryWords[entry + ADDRESS]!)
      : putAddress(textView, from, entryOctets, 2, address)
  return putDigits(put(at, PORT), entryWords[entry + PORT_ID]! & 0xffff)
}

/** `","qtype":"A","qclass":"IN","protocol":"udp","id":`. @hot */
function putQuestion(at: number, entry: number): number {
  const key = entryWords[entry + QUESTION]!
  const other = entryWords[entry + MANNER]! & OVER_TCP
  const end = kept.putKept(at, kept.JSON_QUESTIONS, key, other)
  return end !== -1 ? end : kept.keep(at, printQuestion(at, entry), kept.JSON_QUESTIONS, key, other)
}

function printQuestion(start: number, entry: number): number {
  let at = putType(textView, put(start, TYPE), entry)
  at = putClass(textView, put(at, CLASS), entry)
  return put(putProtocol(textView, put(at, PROTOCOL), entry), ID)
}

const BACKSLASH = 0x5c
const QUOTES = 0x22222222
const BACKSLASHES = 0x5c5c5c5c

/** Returns a value other than 0 if one of four octets is a quote or a backslash. @hot */
function specialOf(word: number): number {
  const quote = word ^ QUOTES
  const backslash = word ^ BACKSLASHES
  const isZero = ((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash)
  return isZero & 0x80808080
}

/** Escapes a name that was printed from `start` to `end`. Returns its end. */
function escapeName(start: number, end: number): number {
  const from = start + NAME_TEXT_OCTETS_MAX
  textOctets.copyWithin(from, start, end)
  return putEscaped(start, from, from + end - start)
}

/** Copies printable characters from `start` to before `end`, with a backslash before quotes and backslashes. @hot */
function putEscaped(at: number, start: number, end: number): number {
  let to = at
  for (let from = start; from < end; from += 4) {
    const word = textView.getInt32(from, true)
    if (from + 4 <= end && specialOf(word) === 0) {
      textView.setInt32(to, word, true)
      to += 4
      continue
    }
    for (let i = from; i < Math.min(from + 4, end); i++) {
      const octet = textView.getUint8(i)
      if (octet === 0x22 || octet === BACKSLASH) textView.setUint8(to++, BACKSLASH)
      textView.setUint8(to++, octet)
    }
  }
  return to
}
