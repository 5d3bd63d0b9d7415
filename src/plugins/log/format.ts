import type { Clock } from '../../base/clock.ts'
import { printClass, printRcode, printType } from '../../dns/iana/index.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import type { AddressFamily } from '../../dns/text/address.ts'
import {
  ADDRESS_OCTETS_MAX,
  NAME_TEXT_OCTETS_MAX,
  NUMBER_OCTETS_MAX,
  putAddress,
  putDigits,
  putName,
  putNumber,
  putOctets,
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

/**
 * A format, compiled: text with fields in braces. A brace pair that names no field is text. What it
 * writes is printable characters only, whatever the query holds.
 */
export class LineFormat {
  /** By Field: what comes one after the other, each behind its text. */
  readonly #fields: number[] = []
  /** All text, and how much of it comes before each field; the rest comes behind the last. */
  readonly #text: Uint8Array
  readonly #textEnds: number[] = []
  /** Of the metadata fields, in their order. */
  readonly #labels: string[] = []
  #octetsMax = 0
  readonly #given: FormatParts

  constructor(format: string, given: FormatParts) {
    this.#given = given
    let text = '[INFO] '
    let rest = format
    for (;;) {
      const close = rest.indexOf('}')
      if (close < 0) break
      const open = rest.lastIndexOf('{', close)
      if (open >= 0 && this.#addField(rest.slice(open + 1, close))) {
        text += escapeControls(rest.slice(0, open))
        this.#textEnds.push(Buffer.byteLength(text))
      } else text += escapeControls(rest.slice(0, close + 1))
      rest = rest.slice(close + 1)
    }
    this.#text = Uint8Array.from(Buffer.from(text + escapeControls(rest)))
    this.#octetsMax += this.#text.length
  }

  /** Returns false where there is no field of that name. */
  #addField(name: string): boolean {
    if (name.startsWith('/')) {
      this.#labels.push(name.slice(1))
      this.#fields.push(Field.Metadata)
      this.#octetsMax += METADATA_LENGTH_MAX * 3
      return true
    }
    const field = FIELDS.get(name)
    if (field === undefined) return false
    this.#fields.push(field[0])
    this.#octetsMax += field[1]
    return true
  }

  /** Writes the line of a query after the chain returned `status`, unless there is no room. @hot */
  write(lines: LineWriter, tx: Transaction, status: number): void {
    let at = lines.begin(this.#octetsMax)
    if (at === -1) return
    const out = lines.octets
    const text = this.#text
    let from = 0
    let label = 0
    for (let i = 0; i < this.#fields.length; i++) {
      for (const end = this.#textEnds[i]!; from < end; from++) out[at++] = text[from]!
      const field = this.#fields[i]!
      if (field === Field.Duration)
        at = putDuration(out, at, finishedMs(tx, this.#given.clock) - tx.startedMs)
      else if (field === Field.Metadata) at = this.#putMetadata(out, at, tx, this.#labels[label++]!)
      else at = putField(out, at, field, tx, status)
    }
    for (; from < text.length; from++) out[at++] = text[from]!
    lines.end(at)
  }

  #putMetadata(out: Buffer, at: number, tx: Transaction, label: string): number {
    const provider = this.#given.findMetadata(label)
    if (provider === undefined) return putUnknown(out, at)
    return at + out.write(escapeControls(provider(tx)).slice(0, METADATA_LENGTH_MAX), at)
  }
}

/** @hot */
function putField(
  out: Uint8Array,
  at: number,
  field: number,
  tx: Transaction,
  status: number,
): number {
  const { query } = tx
  switch (field) {
    case Field.Type:
      return putOctets(out, at, TYPES.of(query.qtype))
    case Field.Class:
      return putOctets(out, at, CLASSES.of(query.qclass))
    case Field.Name:
      return putName(out, at, query.qname)
    case Field.Proto:
      return putOctets(out, at, query.protocol === Protocol.Udp ? UDP : TCP)
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
      return putOctets(out, at, query.dnssecOk ? TRUE : FALSE)
    case Field.Bufsize:
      return putNumber(out, at, takenOctets(query))
    case Field.Rcode:
      if (status === DROP) return putUnknown(out, at)
      return putOctets(out, at, RCODES.of(sentRcode(tx, status)))
    case Field.Rsize:
      return putNumber(out, at, sentOctets(tx, status))
    default:
      return putFlags(out, at, tx, status)
  }
}

/** Seconds with up to nine decimals, no zeros at their end: `0.00003799s`, `2s`. @hot */
function putDuration(out: Uint8Array, at: number, milliseconds: number): number {
  const ms = Math.min(Math.max(0, milliseconds), DURATION_MS_MAX)
  let seconds = Math.floor(ms / 1000)
  let nanoseconds = Math.round((ms - seconds * 1000) * 1e6)
  if (nanoseconds === 1e9) {
    seconds++
    nanoseconds = 0
  }
  let to = putNumber(out, at, seconds)
  if (nanoseconds !== 0) {
    out[to] = DOT
    to = putDigits(out, to + 1, nanoseconds, 9)
    while (out[to - 1] === DIGIT_0) to--
  }
  out[to] = SECONDS
  return to + 1
}

/** Codes above are rare enough to be printed every time. */
const KNOWN_CODES = 512

/** Mnemonics by code, printed once each. */
class Mnemonics {
  readonly #print: (code: number) => string
  readonly #octets: (Uint8Array | undefined)[] = new Array(KNOWN_CODES).fill(undefined)

  constructor(print: (code: number) => string) {
    this.#print = print
  }

  of(code: number): Uint8Array {
    if (code >= KNOWN_CODES) return Buffer.from(this.#print(code))
    const known = this.#octets[code]
    if (known !== undefined) return known
    const octets = Buffer.from(this.#print(code))
    this.#octets[code] = octets
    return octets
  }
}

const TYPES = new Mnemonics(printType)
const CLASSES = new Mnemonics(printClass)
const RCODES = new Mnemonics(printRcode)

const UDP = Buffer.from('udp')
const TCP = Buffer.from('tcp')
const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')

function putHost(out: Uint8Array, at: number, bytes: Uint8Array, family: number): number {
  if (family === 1) return putAddress(out, at, bytes, 1)
  out[at] = OPEN
  const end = putAddress(out, at + 1, bytes, family as AddressFamily)
  out[end] = CLOSE
  return end + 1
}

/** Stands for what is not known. */
function putUnknown(out: Uint8Array, at: number): number {
  out[at] = DASH
  return at + 1
}

/** How large a reply the client takes. */
function takenOctets(query: Query): number {
  if (query.protocol === Protocol.Tcp) return TCP_OCTETS_MAX
  return query.hasEdns ? Math.max(UDP_OCTETS_MIN, query.payloadOctets) : UDP_OCTETS_MIN
}

const FLAGS = ['qr', ',aa', ',tc', ',rd', ',ra', ',ad', ',cd'].map((flag) => Buffer.from(flag))

function putFlags(out: Uint8Array, at: number, tx: Transaction, status: number): number {
  if (status === DROP) return putUnknown(out, at)
  const { response } = tx
  const written = !isUnwritten(status)
  let to = putOctets(out, at, FLAGS[0]!)
  if (written && response.authoritative) to = putOctets(out, to, FLAGS[1]!)
  if (written && response.truncated) to = putOctets(out, to, FLAGS[2]!)
  if (response.recursionDesired) to = putOctets(out, to, FLAGS[3]!)
  if (response.recursionAvailable) to = putOctets(out, to, FLAGS[4]!)
  if (written && response.authenticData) to = putOctets(out, to, FLAGS[5]!)
  if (response.checkingDisabled) to = putOctets(out, to, FLAGS[6]!)
  return to
}
