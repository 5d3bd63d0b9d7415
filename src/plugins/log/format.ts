import type { Clock } from '../../base/clock.ts'
import { printClass, printRcode, printType } from '../../dns/iana/index.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import type { AddressFamily } from '../../dns/text/address.ts'
import {
  ADDRESS_OCTETS_MAX,
  NAME_TEXT_OCTETS_MAX,
  NUMBER_OCTETS_MAX,
  putAddress,
  putName,
  putNumber,
  putThreeDigits,
  putWords,
  SPILL_OCTETS,
  wordsOf,
} from '../../dns/text/put.ts'
import { DROP } from '../../plugin/handler.ts'
import type { MetadataProvider } from '../../plugin/metadata.ts'
import { finishedMs, isUnwritten, sentOctets, sentRcode } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { LineWriter } from '../../telemetry/lines.ts'
import { escapeControls } from '../../telemetry/log.ts'

export const COMMON_FORMAT =
  '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}'
export const COMBINED_FORMAT = `${COMMON_FORMAT} "{>opcode}"`

/** Least size that a client takes (RFC 1035 section 4.2.1), and what a TCP message holds. */
const UDP_OCTETS_MIN = 512
const TCP_OCTETS_MAX = 65_535
/** What is longer of a metadata label is cut, in UTF-16 code units. */
const METADATA_LENGTH_MAX = 1024

/** Longer than any query takes, and within 32 bits as seconds. */
const DURATION_MS_MAX = 2 ** 40

const DASH = 0x2d
const DOT = 0x2e
const DIGIT_0 = 0x30
const OPEN = 0x5b
const CLOSE = 0x5d
const SECONDS = 0x73

export interface FormatParts {
  readonly clock: Clock
  /** Finds the provider of a metadata label; asked per line, since providers come after formats. */
  readonly findMetadata: (label: string) => MetadataProvider | undefined
}

/** What a field prints. */
const Field = {
  Type: 0,
  Class: 1,
  Name: 2,
  Proto: 3,
  Size: 4,
  Remote: 5,
  Port: 6,
  Local: 7,
  Id: 8,
  Opcode: 9,
  Do: 10,
  Bufsize: 11,
  Rcode: 12,
  Rsize: 13,
  Flags: 14,
  Duration: 15,
  Metadata: 16,
  /** Nothing: the text before it ends the line. */
  None: 17,
  /** All of COMMON_FORMAT. */
  Common: 18,
} as const
type Field = (typeof Field)[keyof typeof Field]

/** Most octets of a mnemonic, and of all flags. */
const WORD_OCTETS_MAX = 16
const FLAGS_OCTETS_MAX = 32
const HOST_OCTETS_MAX = ADDRESS_OCTETS_MAX + 2
const DURATION_OCTETS_MAX = NUMBER_OCTETS_MAX + 11

/** Fields by name, without their braces, with most octets. `>` marks what is in the header or its extension. */
const FIELDS: ReadonlyMap<string, readonly [Field, number]> = new Map([
  ['type', [Field.Type, WORD_OCTETS_MAX]],
  ['class', [Field.Class, WORD_OCTETS_MAX]],
  ['name', [Field.Name, NAME_TEXT_OCTETS_MAX]],
  ['proto', [Field.Proto, WORD_OCTETS_MAX]],
  ['size', [Field.Size, NUMBER_OCTETS_MAX]],
  ['remote', [Field.Remote, HOST_OCTETS_MAX]],
  ['port', [Field.Port, NUMBER_OCTETS_MAX]],
  ['local', [Field.Local, HOST_OCTETS_MAX]],
  ['duration', [Field.Duration, DURATION_OCTETS_MAX]],
  ['rcode', [Field.Rcode, WORD_OCTETS_MAX]],
  ['rsize', [Field.Rsize, NUMBER_OCTETS_MAX]],
  ['>id', [Field.Id, NUMBER_OCTETS_MAX]],
  ['>opcode', [Field.Opcode, NUMBER_OCTETS_MAX]],
  ['>do', [Field.Do, WORD_OCTETS_MAX]],
  ['>bufsize', [Field.Bufsize, NUMBER_OCTETS_MAX]],
  ['>rflags', [Field.Flags, FLAGS_OCTETS_MAX]],
])

/** More than any line of COMMON_FORMAT has: it has no field twice. */
const COMMON_OCTETS_MAX = [...FIELDS.values()].reduce(
  (sum, [, octetsMax]) => sum + octetsMax,
  COMMON_FORMAT.length,
)

/**
 * A format, compiled: text with fields in braces. A brace pair that names no field is text. What it
 * writes is printable characters only, whatever the query holds.
 */
export class LineFormat {
  /** By Field: what comes one after the other, each behind its text; the last is None. */
  readonly #fields: Uint8Array
  /** Octets of the text before each field, and all of it: the text of each begins with a new word. */
  readonly #textOctets: Int32Array
  readonly #text: Int32Array
  /** Of the metadata fields, in their order. */
  readonly #labels: readonly string[]
  readonly #octetsMax: number
  readonly #given: FormatParts

  constructor(format: string, given: FormatParts) {
    const parts = scanParts(format)
    const texts = parts.map(({ text }) => Buffer.from(escapeControls(text)))
    this.#fields = Uint8Array.from(parts, ({ field }) => field)
    this.#textOctets = Int32Array.from(texts, (text) => text.length)
    this.#text = Int32Array.from(texts.flatMap((text) => [...wordsOf(text)]))
    this.#labels = parts.filter(({ field }) => field === Field.Metadata).map(({ label }) => label)
    const textOctets = this.#textOctets.reduce((sum, octets) => sum + octets)
    this.#octetsMax = parts.reduce((sum, part) => sum + part.octetsMax, textOctets) + SPILL_OCTETS
    this.#given = given
  }

  /** Writes the line of a query after the chain returned `status`, unless there is no room. @hot */
  write(lines: LineWriter, tx: Transaction, status: number): void {
    let at = lines.begin(this.#octetsMax)
    if (at === -1) return
    const out = lines.view
    const fields = this.#fields
    let word = 0
    let label = 0
    for (let i = 0; i < fields.length; i++) {
      const octets = this.#textOctets[i]!
      at = putWords(out, at, this.#text, word, octets)
      word += (octets + 3) >> 2
      const field = fields[i]!
      if (field === Field.Common) at = putCommon(out, at, tx, status, this.#given.clock)
      else if (field === Field.Duration)
        at = putDuration(out, at, finishedMs(tx, this.#given.clock) - tx.startedMs)
      else if (field === Field.Metadata)
        at = this.#putMetadata(lines, at, tx, this.#labels[label++]!)
      else at = putField(out, at, field, tx, status)
    }
    lines.end(at)
  }

  #putMetadata(lines: LineWriter, at: number, tx: Transaction, label: string): number {
    const provider = this.#given.findMetadata(label)
    if (provider === undefined) return putUnknown(lines.view, at)
    const text = escapeControls(provider(tx)).slice(0, METADATA_LENGTH_MAX)
    return at + lines.octets.write(text, at)
  }
}

/** A field and the text before it. */
interface Part {
  readonly text: string
  readonly field: Field
  /** Most octets of the field. */
  readonly octetsMax: number
  /** What metadata it prints. */
  readonly label: string
}

function scanParts(format: string): Part[] {
  const parts: Part[] = []
  let text = '[INFO] '
  let rest = format
  if (format.startsWith(COMMON_FORMAT)) {
    parts.push({ text, field: Field.Common, octetsMax: COMMON_OCTETS_MAX, label: '' })
    text = ''
    rest = format.slice(COMMON_FORMAT.length)
  }
  for (;;) {
    const close = rest.indexOf('}')
    if (close < 0) break
    const open = rest.lastIndexOf('{', close)
    const found = open < 0 ? undefined : findField(rest.slice(open + 1, close))
    if (found !== undefined) {
      parts.push({ text: text + rest.slice(0, open), ...found })
      text = ''
    } else text += rest.slice(0, close + 1)
    rest = rest.slice(close + 1)
  }
  parts.push({ text: text + rest, field: Field.None, octetsMax: 0, label: '' })
  return parts
}

/** `name`: without its braces. */
function findField(name: string): Omit<Part, 'text'> | undefined {
  if (name.startsWith('/')) {
    return { field: Field.Metadata, octetsMax: METADATA_LENGTH_MAX * 3, label: name.slice(1) }
  }
  const known = FIELDS.get(name)
  return known === undefined ? undefined : { field: known[0], octetsMax: known[1], label: '' }
}

/** Text of the common format between its fields; what has one octet is an octet. */
const COLON = 0x3a
const SPACE = 0x20
const BEFORE_ID = wordsOf(Buffer.from(' - '))[0]!
const BEFORE_TYPE = wordsOf(Buffer.from(' "'))[0]!
const BEFORE_RCODE = wordsOf(Buffer.from('" '))[0]!
const UDP_SPACED = wordsOf(Buffer.from('udp '))[0]!
const TCP_SPACED = wordsOf(Buffer.from('tcp '))[0]!

/**
 * A line of COMMON_FORMAT, field by field as `putField` puts them. Straight on it takes half the time of
 * going through the fields of a format (bench/plugins.mjs), and hardly anybody has another. @hot
 */
function putCommon(
  out: DataView,
  start: number,
  tx: Transaction,
  status: number,
  clock: Clock,
): number {
  const { query } = tx
  let at = putHost(out, start, query.peerAddress, query.peerFamily)
  out.setUint8(at, COLON)
  at = putNumber(out, at + 1, query.peerPort)
  out.setInt32(at, BEFORE_ID, true)
  at = putNumber(out, at + 3, query.id)
  out.setInt32(at, BEFORE_TYPE, true)
  at = putSpace(out, TYPES.put(out, at + 2, query.qtype))
  at = putSpace(out, CLASSES.put(out, at, query.qclass))
  at = putSpace(out, putName(out, at, query.qname))
  out.setInt32(at, query.protocol === Protocol.Udp ? UDP_SPACED : TCP_SPACED, true)
  at = putSpace(out, putNumber(out, at + 4, query.packetOctets))
  at = putManner(out, at, tx, status)
  at = putNumber(out, putSpace(out, at), sentOctets(tx, status))
  return putTime(out, putSpace(out, at), finishedMs(tx, clock) - tx.startedMs)
}

/**
 * From DO to the flags of the reply: `false 512" NOERROR qr,aa,rd`. There are few of them among queries, and one
 * that was put before is copied. @hot
 */
function putManner(out: DataView, at: number, tx: Transaction, status: number): number {
  const rcode = sentRcode(tx, status)
  if (status === DROP || rcode > MANNER_RCODE_MAX) return putMannerAnew(out, at, tx, status)
  const doBit = tx.query.dnssecOk ? 1 << 30 : 0
  const key = takenOctets(tx.query) | (rcode << 16) | (flagsOf(tx, status) << 24) | doBit
  const slot = (Math.imul(key, MANNER_FACTOR) >>> 20) & (MANNERS - 1)
  if (mannerKeys[slot] === key) {
    return putWords(out, at, mannerWords, slot * MANNER_WORDS, mannerOctets[slot]!)
  }
  const end = putMannerAnew(out, at, tx, status)
  mannerKeys[slot] = key
  mannerOctets[slot] = end - at
  keepWords(mannerWords, slot * MANNER_WORDS, out, at, end)
  return end
}

/** Those that are kept: which is which, and their texts. */
const MANNERS = 64
const MANNER_WORDS = 20
const MANNER_FACTOR = 0x9e3779b1
/** All that fits into a key; above it they are seldom. */
const MANNER_RCODE_MAX = 255
const mannerKeys = new Int32Array(MANNERS).fill(-1)
const mannerOctets = new Uint8Array(MANNERS)
const mannerWords = new Int32Array(MANNERS * MANNER_WORDS)

function keepWords(words: Int32Array, first: number, out: DataView, at: number, end: number): void {
  for (let i = at; i < end; i += 4) words[first + ((i - at) >> 2)] = out.getInt32(i, true)
}

function putMannerAnew(out: DataView, start: number, tx: Transaction, status: number): number {
  let at = putSpace(out, putBoolean(out, start, tx.query.dnssecOk))
  at = putNumber(out, at, takenOctets(tx.query))
  out.setInt32(at, BEFORE_RCODE, true)
  at += 2
  at = status === DROP ? putUnknown(out, at) : RCODES.put(out, at, sentRcode(tx, status))
  return putFlags(out, putSpace(out, at), tx, status)
}

/** Of the duration that was put last: queries of a batch have the same by eight. */
const timeWords = new Int32Array((DURATION_OCTETS_MAX + SPILL_OCTETS) >> 2)
let timeOctets = 0
let timeMs = -1

/** As `putDuration`. @hot */
function putTime(out: DataView, at: number, milliseconds: number): number {
  if (milliseconds === timeMs) return putWords(out, at, timeWords, 0, timeOctets)
  const end = putDuration(out, at, milliseconds)
  timeMs = milliseconds
  timeOctets = end - at
  keepWords(timeWords, 0, out, at, end)
  return end
}

function putSpace(out: DataView, at: number): number {
  out.setUint8(at, SPACE)
  return at + 1
}

/** @hot */
function putField(
  out: DataView,
  at: number,
  field: number,
  tx: Transaction,
  status: number,
): number {
  const { query } = tx
  switch (field) {
    case Field.Type:
      return TYPES.put(out, at, query.qtype)
    case Field.Class:
      return CLASSES.put(out, at, query.qclass)
    case Field.Name:
      return putName(out, at, query.qname)
    case Field.Proto:
      return putWords(out, at, query.protocol === Protocol.Udp ? UDP : TCP, 0, 3)
    case Field.Size:
      return putNumber(out, at, query.packetOctets)
    case Field.Remote:
      return putHost(out, at, query.peerAddress, query.peerFamily)
    case Field.Port:
      return putNumber(out, at, query.peerPort)
    case Field.Local:
      return putHost(out, at, query.localAddress, query.localFamily)
    case Field.Id:
      return putNumber(out, at, query.id)
    case Field.Opcode:
      return putNumber(out, at, query.opcode)
    case Field.Do:
      return putBoolean(out, at, query.dnssecOk)
    case Field.Bufsize:
      return putNumber(out, at, takenOctets(query))
    case Field.Rcode:
      if (status === DROP) return putUnknown(out, at)
      return RCODES.put(out, at, sentRcode(tx, status))
    case Field.Rsize:
      return putNumber(out, at, sentOctets(tx, status))
    case Field.Flags:
      return putFlags(out, at, tx, status)
    default:
      return at
  }
}

/** Seconds with up to nine decimals, no zeros at their end: `0.00003799s`, `2s`. @hot */
function putDuration(out: DataView, at: number, milliseconds: number): number {
  const ms = Math.min(Math.max(0, milliseconds), DURATION_MS_MAX)
  let seconds = (ms / 1000) | 0
  let nanoseconds = ((ms - seconds * 1000) * 1e6 + 0.5) | 0
  if (nanoseconds === 1e9) {
    seconds++
    nanoseconds = 0
  }
  let to = putNumber(out, at, seconds)
  if (nanoseconds !== 0) {
    out.setUint8(to, DOT)
    const microseconds = (nanoseconds / 1000) | 0
    const wholeMs = (microseconds / 1000) | 0
    to = putThreeDigits(out, to + 1, wholeMs)
    to = putThreeDigits(out, to, (microseconds - wholeMs * 1000) | 0)
    to = putThreeDigits(out, to, (nanoseconds - microseconds * 1000) | 0)
    while (out.getUint8(to - 1) === DIGIT_0) to--
  }
  out.setUint8(to, SECONDS)
  return to + 1
}

/** Codes above are rare enough to be printed every time. */
const KNOWN_CODES = 512
const MNEMONIC_WORDS = WORD_OCTETS_MAX / 4

/** Mnemonics by code, printed once each. */
class Mnemonics {
  readonly #print: (code: number) => string
  /** Behind those of known codes one for the code that was printed last of all others. */
  readonly #words = new Int32Array((KNOWN_CODES + 1) * MNEMONIC_WORDS)
  /** 0 = not printed yet. */
  readonly #octets = new Uint8Array(KNOWN_CODES + 1)

  constructor(print: (code: number) => string) {
    this.#print = print
  }

  /** @hot */
  put(out: DataView, at: number, code: number): number {
    const index = Math.min(code, KNOWN_CODES)
    if (index === KNOWN_CODES || this.#octets[index] === 0) this.#keep(index, code)
    return putWords(out, at, this.#words, index * MNEMONIC_WORDS, this.#octets[index]!)
  }

  #keep(index: number, code: number): void {
    const text = Buffer.from(this.#print(code)).subarray(0, WORD_OCTETS_MAX)
    this.#words.set(wordsOf(text), index * MNEMONIC_WORDS)
    this.#octets[index] = text.length
  }
}

const TYPES = new Mnemonics(printType)
const CLASSES = new Mnemonics(printClass)
const RCODES = new Mnemonics(printRcode)

const UDP = wordsOf(Buffer.from('udp'))
const TCP = wordsOf(Buffer.from('tcp'))
const TRUE = wordsOf(Buffer.from('true'))
const FALSE = wordsOf(Buffer.from('false'))

function putHost(out: DataView, at: number, bytes: Uint8Array, family: number): number {
  if (family === 1) return putAddress(out, at, bytes, 1)
  out.setUint8(at, OPEN)
  const end = putAddress(out, at + 1, bytes, family as AddressFamily)
  out.setUint8(end, CLOSE)
  return end + 1
}

function putBoolean(out: DataView, at: number, value: boolean): number {
  return value ? putWords(out, at, TRUE, 0, 4) : putWords(out, at, FALSE, 0, 5)
}

/** Stands for what is not known. */
function putUnknown(out: DataView, at: number): number {
  out.setUint8(at, DASH)
  return at + 1
}

/** How large a reply the client takes. */
function takenOctets(query: Query): number {
  if (query.protocol === Protocol.Tcp) return TCP_OCTETS_MAX
  return query.hasEdns ? Math.max(UDP_OCTETS_MIN, query.payloadOctets) : UDP_OCTETS_MIN
}

/** Bit i of an index into `FLAG_WORDS` stands for flag i. */
const FLAGS = ['aa', 'tc', 'rd', 'ra', 'ad', 'cd']
const FLAG_TEXTS = Array.from({ length: 2 ** FLAGS.length }, (_, set) => {
  return ['qr', ...FLAGS.filter((_, i) => (set & (1 << i)) !== 0)].join()
})
const FLAGS_WORDS = FLAGS_OCTETS_MAX / 4
const FLAG_WORDS = new Int32Array(FLAG_TEXTS.length * FLAGS_WORDS)
FLAG_TEXTS.forEach((text, i) => {
  FLAG_WORDS.set(wordsOf(Buffer.from(text)), i * FLAGS_WORDS)
})
const FLAG_OCTETS = Uint8Array.from(FLAG_TEXTS, (text) => text.length)

/** @hot */
function putFlags(out: DataView, at: number, tx: Transaction, status: number): number {
  if (status === DROP) return putUnknown(out, at)
  const set = flagsOf(tx, status)
  return putWords(out, at, FLAG_WORDS, set * FLAGS_WORDS, FLAG_OCTETS[set]!)
}

/** A bit each, as in FLAGS. */
function flagsOf({ response }: Transaction, status: number): number {
  let set = 0
  if (response.recursionDesired) set |= 4
  if (response.recursionAvailable) set |= 8
  if (response.checkingDisabled) set |= 32
  if (!isUnwritten(status)) {
    if (response.authoritative) set |= 1
    if (response.truncated) set |= 2
    if (response.authenticData) set |= 16
  }
  return set
}
