import type { Clock } from '../../base/clock.ts'
import { escapeControls } from '../../base/telemetry/log.ts'
import {
  NAME_TEXT_OCTETS_MAX,
  NUMBER_OCTETS_MAX,
  putName,
  putNumber,
  putWords,
  SPILL_OCTETS,
  wordsOf,
} from '../../dns/text/put.ts'
import type { MetadataProvider } from '../../plugin/metadata.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { putCommon } from './common-line.ts'
import { PORT_ID, SENT, SIZES } from './entry.ts'
import {
  DURATION_OCTETS_MAX,
  HOST_OCTETS_MAX,
  nameStart,
  putClass,
  putClient,
  putDestination,
  putDo,
  putDuration,
  putOpcode,
  putProtocol,
  putRcode,
  putReplyFlags,
  putType,
} from './fields.ts'
import { jsonOctetsMax, messageOffset, putCommonJson, putJson } from './json-line.ts'
import * as memory from './memory.ts'
import { FLAGS_OCTETS_MAX, putUnknown, WORD_OCTETS_MAX } from './mnemonics.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { entryOctets, entryWords, textOctets, textView } = memory

export const COMMON_FORMAT =
  '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}'
export const COMBINED_FORMAT = `${COMMON_FORMAT} "{>opcode}"`

/** Longest metadata value, in UTF-16 code units; longer ones are cut. */
const METADATA_LENGTH_MAX = 1024

/**
 * Finds the provider of a metadata label. Called per line, because providers register after formats
 * are compiled.
 */
type FindMetadata = (label: string) => MetadataProvider | undefined

/** The value that a field prints. */
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

/**
 * Fields by name, without their braces, with their most octets. `>` marks fields of the header or
 * its extension.
 */
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

/** Longer than any line of COMMON_FORMAT, which has no field twice. */
const COMMON_OCTETS_MAX = [...FIELDS.values()].reduce(
  (sum, [, octetsMax]) => sum + octetsMax,
  COMMON_FORMAT.length,
)

/**
 * A compiled format: text with fields in braces. A pair of braces without a field name is text. It
 * writes only printable characters, whatever the query contains.
 */
export class LineFormat {
  /** Values of Field in order, each printed after its text; the last one is `None`. */
  readonly #fields: Uint8Array
  /**
   * Octets of the text before each field, and the text itself: the text of each field starts at a
   * 32-bit boundary.
   */
  readonly #textOctets: Int32Array
  readonly #text: Int32Array
  /** Labels of the metadata fields, in their order. */
  readonly labels: readonly string[]
  /** More than the octets of any line, including octets that may be written after it. */
  readonly octetsMax: number
  /** Without the rest of a line in JSON. */
  readonly #messageOctetsMax: number
  readonly #jsonClock: Pick<Clock, 'now'> | undefined
  #nowMs = 0
  readonly #findMetadata: FindMetadata
  /** Whether it is exactly COMMON_FORMAT. */
  readonly #isCommon: boolean
  /** Whether it prints metadata, which entries do not have. */
  readonly hasMetadata: boolean
  /** Whether it prints the query's destination address. */
  readonly hasDestination: boolean

  /** `jsonClock`: the time of lines in JSON, whose `msg` is the format; undefined = lines are text. */
  constructor(format: string, findMetadata: FindMetadata, jsonClock?: Pick<Clock, 'now'>) {
    const isJson = jsonClock !== undefined
    const parts = scanParts(format, isJson ? '' : PREFIX)
    const texts = parts.map(({ text }) => Buffer.from(escapeControls(text)))
    this.#fields = Uint8Array.from(parts, ({ field }) => field)
    this.#textOctets = Int32Array.from(texts, (text) => text.length)
    this.#text = Int32Array.from(texts.flatMap((text) => [...wordsOf(text)]))
    this.labels = parts.filter(({ field }) => field === Field.Metadata).map(({ label }) => label)
    const textOctets = this.#textOctets.reduce((sum, octets) => sum + octets)
    const octetsMax = parts.reduce((sum, part) => sum + part.octetsMax, textOctets) + SPILL_OCTETS
    this.#messageOctetsMax = octetsMax
    this.octetsMax = isJson ? jsonOctetsMax(octetsMax) : octetsMax
    this.#jsonClock = jsonClock
    this.#findMetadata = findMetadata
    this.#isCommon = format === COMMON_FORMAT
    this.hasMetadata = this.labels.length > 0
    this.hasDestination = parts.some(({ field }) => field === Field.Local)
  }

  /** Reads the time of lines in JSON: call it before lines are printed. @hot */
  readTime(): void {
    if (this.#jsonClock !== undefined) this.#nowMs = this.#jsonClock.now()
  }

  /**
   * Prints the line of the entry at index `entry` of `entryWords` to `start` of the text memory, and
   * returns its end. `tx`: provides metadata, if the format has any. @hot
   */
  print(start: number, entry: number, tx?: Transaction): number {
    if (this.#jsonClock !== undefined) {
      const line = this.#isCommon ? putCommonJson(start, entry, this.#nowMs) : -1
      if (line !== -1) return line
      const from = start + messageOffset(this.#messageOctetsMax)
      return putJson(start, entry, from, this.#printFields(from, entry, tx), this.#nowMs)
    }
    if (this.#isCommon) return putCommon(putPrefix(start), entry)
    return this.#printFields(start, entry, tx)
  }

  #printFields(start: number, entry: number, tx: Transaction | undefined): number {
    const fields = this.#fields
    let at = start
    let word = 0
    let label = 0
    for (let i = 0; i < fields.length; i++) {
      const octets = this.#textOctets[i]!
      at = putWords(textView, at, this.#text, word, octets)
      word += (octets + 3) >> 2
      const field = fields[i]!
      if (field === Field.Common) at = putCommon(at, entry)
      else if (field === Field.Metadata) at = this.#putMetadata(at, this.labels[label++]!, tx)
      else at = putField(textView, at, field, entry)
    }
    return at
  }

  #putMetadata(at: number, label: string, tx: Transaction | undefined): number {
    const provider = this.#findMetadata(label)
    if (provider === undefined || tx === undefined) return putUnknown(textView, at)
    const text = escapeControls(provider(tx)).slice(0, METADATA_LENGTH_MAX)
    return at + textOctets.write(text, at)
  }
}

/** @hot */
function putField(out: DataView, at: number, field: number, entry: number): number {
  switch (field) {
    case Field.Type:
      return putType(out, at, entry)
    case Field.Class:
      return putClass(out, at, entry)
    case Field.Name:
      return putName(out, at, entryOctets, nameStart(entry))
    case Field.Proto:
      return putProtocol(out, at, entry)
    case Field.Size:
      return putNumber(out, at, entryWords[entry + SIZES]! & 0xffff)
    case Field.Remote:
      return putClient(out, at, entry)
    case Field.Port:
      return putNumber(out, at, entryWords[entry + PORT_ID]! & 0xffff)
    case Field.Local:
      return putDestination(out, at, entry)
    case Field.Id:
      return putNumber(out, at, entryWords[entry + PORT_ID]! >>> 16)
    case Field.Opcode:
      return putOpcode(out, at, entry)
    case Field.Do:
      return putDo(out, at, entry)
    case Field.Bufsize:
      return putNumber(out, at, entryWords[entry + SIZES]! >>> 16)
    case Field.Rcode:
      return putRcode(out, at, entry)
    case Field.Rsize:
      return putNumber(out, at, entryWords[entry + SENT]!)
    case Field.Flags:
      return putReplyFlags(out, at, entry)
    case Field.Duration:
      return putDuration(out, at, entry)
    default:
      return at
  }
}

/** Prefix of every line. */
const PREFIX = '[INFO] '
const PREFIX_WORDS = wordsOf(Buffer.from(PREFIX))

function putPrefix(at: number): number {
  textView.setInt32(at, PREFIX_WORDS[0]!, true)
  textView.setInt32(at + 4, PREFIX_WORDS[1]!, true)
  return at + PREFIX.length
}

/** A field and the text before it. */
interface Part {
  readonly text: string
  readonly field: Field
  /** Most octets of the field. */
  readonly octetsMax: number
  /** The metadata label that it prints. */
  readonly label: string
}

function scanParts(format: string, prefix: string): Part[] {
  const parts: Part[] = []
  let text = prefix
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

/** Unknown fields of a format, such as `{nme}`. Metadata labels are not checked here. */
export function unknownFields(format: string): string[] {
  const fields = format.match(/\{>?[a-z]+\}/g) ?? []
  return fields.filter((field) => findField(field.slice(1, -1)) === undefined)
}
