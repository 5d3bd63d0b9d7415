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

const DASH = 0x2d
const DOT = 0x2e
const DIGIT_0 = 0x30
const OPEN = 0x5b
const CLOSE = 0x5d
const SECONDS = 0x73

/**
 * Writes one part of a line to `out` from `at` on, after the chain returned `status`; returns the
 * offset behind it.
 */
interface Part {
  /** Most octets that it writes. */
  readonly octetsMax: number
  readonly put: (out: Buffer, at: number, tx: Transaction, status: number) => number
}

export interface FormatParts {
  readonly clock: Clock
  /** Finds the provider of a metadata label; asked per line, since providers come after formats. */
  readonly findMetadata: (label: string) => MetadataProvider | undefined
}

/**
 * A format, compiled: text with fields in braces. A brace pair that names no field is text. What it
 * writes is printable characters only, whatever the query holds.
 */
export class LineFormat {
  readonly #parts: readonly Part[]
  readonly #octetsMax: number

  constructor(format: string, given: FormatParts) {
    this.#parts = compileParts(`[INFO] ${format}`, given)
    this.#octetsMax = this.#parts.reduce((sum, { octetsMax }) => sum + octetsMax, 0)
  }

  /** Writes the line of a query, unless there is no room. @hot */
  write(lines: LineWriter, tx: Transaction, status: number): void {
    let at = lines.begin(this.#octetsMax)
    if (at === -1) return
    const out = lines.octets
    const parts = this.#parts
    for (let i = 0; i < parts.length; i++) at = parts[i]!.put(out, at, tx, status)
    lines.end(at)
  }
}

function compileParts(format: string, given: FormatParts): Part[] {
  const compiled: Part[] = []
  let literal = ''
  let rest = format
  for (;;) {
    const close = rest.indexOf('}')
    if (close < 0) break
    const open = rest.lastIndexOf('{', close)
    const part = open < 0 ? undefined : fieldPart(rest.slice(open + 1, close), given)
    if (part === undefined) {
      literal += rest.slice(0, close + 1)
    } else {
      compiled.push(textPart(literal + rest.slice(0, open)), part)
      literal = ''
    }
    rest = rest.slice(close + 1)
  }
  compiled.push(textPart(literal + rest))
  return compiled.filter(({ octetsMax }) => octetsMax > 0)
}

function textPart(text: string): Part {
  const octets = Buffer.from(escapeControls(text))
  return { octetsMax: octets.length, put: (out, at) => putOctets(out, at, octets) }
}

function fieldPart(field: string, given: FormatParts): Part | undefined {
  if (field.startsWith('/')) return metadataPart(field.slice(1), given)
  if (field === 'duration') return durationPart(given.clock)
  return FIELDS.get(field)
}

function metadataPart(label: string, { findMetadata }: FormatParts): Part {
  return {
    octetsMax: METADATA_LENGTH_MAX * 3,
    put: (out, at, tx) => {
      const provider = findMetadata(label)
      if (provider === undefined) return putUnknown(out, at)
      return at + out.write(escapeControls(provider(tx)).slice(0, METADATA_LENGTH_MAX), at)
    },
  }
}

/** Seconds with up to nine decimals, no zeros at their end: `0.00003799s`, `2s`. */
function durationPart(clock: Clock): Part {
  return {
    octetsMax: NUMBER_OCTETS_MAX + 11,
    put: (out, at, tx) => {
      const nanoseconds = Math.round(Math.max(0, finishedMs(tx, clock) - tx.startedMs) * 1e6)
      const seconds = Math.floor(nanoseconds / 1e9)
      let to = putNumber(out, at, seconds)
      if (nanoseconds !== seconds * 1e9) {
        out[to] = DOT
        to = putDigits(out, to + 1, nanoseconds - seconds * 1e9, 9)
        while (out[to - 1] === DIGIT_0) to--
      }
      out[to] = SECONDS
      return to + 1
    },
  }
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

function number(countOf: (tx: Transaction, status: number) => number): Part {
  return {
    octetsMax: NUMBER_OCTETS_MAX,
    put: (out, at, tx, status) => putNumber(out, at, countOf(tx, status)),
  }
}

/** One of a few words; none is longer than 16 octets. */
function word(octetsOf: (tx: Transaction) => Uint8Array): Part {
  return { octetsMax: 16, put: (out, at, tx) => putOctets(out, at, octetsOf(tx)) }
}

/** Fields by name, without their braces. `>` marks what is in the header or its extension. */
const FIELDS: ReadonlyMap<string, Part> = new Map<string, Part>([
  ['type', word((tx) => TYPES.of(tx.query.qtype))],
  ['class', word((tx) => CLASSES.of(tx.query.qclass))],
  [
    'name',
    { octetsMax: NAME_TEXT_OCTETS_MAX, put: (out, at, tx) => putName(out, at, tx.query.qname) },
  ],
  ['proto', word((tx) => (tx.query.protocol === Protocol.Udp ? UDP : TCP))],
  ['size', number((tx) => tx.query.packetOctets)],
  ['remote', host((out, at, { query }) => putHost(out, at, query.peerAddress, query.peerFamily))],
  ['port', number((tx) => tx.query.peerPort)],
  ['local', host((out, at, { query }) => putHost(out, at, query.localAddress, query.localFamily))],
  ['>id', number((tx) => tx.query.id)],
  ['>opcode', number((tx) => tx.query.opcode)],
  ['>do', word((tx) => (tx.query.dnssecOk ? TRUE : FALSE))],
  ['>bufsize', number((tx) => takenOctets(tx.query))],
  ['rcode', { octetsMax: 16, put: putRcode }],
  ['rsize', number(sentOctets)],
  ['>rflags', { octetsMax: 32, put: putFlags }],
])

function host(put: (out: Uint8Array, at: number, tx: Transaction) => number): Part {
  return { octetsMax: ADDRESS_OCTETS_MAX + 2, put }
}

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

function putRcode(out: Uint8Array, at: number, tx: Transaction, status: number): number {
  if (status === DROP) return putUnknown(out, at)
  return putOctets(out, at, RCODES.of(sentRcode(tx, status)))
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
