import { dirname, resolve } from 'node:path'
import { InputError } from '../../base/errors.ts'
import { RRClass } from '../../dns/iana/index.ts'
import { lowerName } from '../../dns/name/name.ts'
import { isDataType, scanClassField, scanTypeField } from './field-types.ts'
import { expandTemplate, type GenerateRange, scanRange } from './generate.ts'
import { Entry, ZoneLexer } from './lexer.ts'
import { OutsideNames } from './outside-names.ts'
import { endsWithZone, lowerOctets, scanNameOctets } from './owner.ts'
import { RdataScanner } from './rdata.ts'
import { ScannedRecord, type ZoneSink } from './sink.ts'
import { type FileStamp, readZoneText, ZONE_OCTETS_MAX, type ZoneText } from './text.ts'
import { scanTtl } from './ttl.ts'

/** Limits of a scan; all have defaults. */
export interface ZoneScanLimits {
  /** Maximum of octets of the file and all text that it includes or generates. */
  readonly octetsMax?: number
  readonly recordsMax?: number
  /** Maximum of records of all $GENERATE lines together. */
  readonly generatedMax?: number
  /** Maximum of octets of text that $GENERATE makes, and of files that are included more than once. */
  readonly expandedOctetsMax?: number
  /** Number of errors after which the scan stops. */
  readonly errorsMax?: number
}

/** TTL of records if the file sets none; the same as in CoreDNS. */
const DEFAULT_TTL_SECONDS = 3600
/** Maximum depth of $INCLUDE; the same as in CoreDNS. */
const INCLUDE_DEPTH_MAX = 7
/** Maximum of files of one zone. */
const FILES_MAX = 10_000
const LIMITS: Required<ZoneScanLimits> = {
  octetsMax: ZONE_OCTETS_MAX,
  recordsMax: 20_000_000,
  // These two stop a few lines from expanding to a zone that takes minutes to load and gigabytes to store.
  generatedMax: 1_000_000,
  expandedOctetsMax: 64 * 1024 * 1024,
  errorsMax: 100,
}
/** Entries between two pauses: well under a millisecond. */
const SLICE_ENTRIES = 512

/** A file that is being read, or the text of one $GENERATE step. */
interface Frame {
  readonly lexer: ZoneLexer
  readonly file: string
  /** The directory that $INCLUDE paths are relative to. */
  readonly directory: string
  readonly depth: number
  /** Completes relative names; keeps case. */
  origin: Uint8Array
  /** True if `origin` is in the zone, so that names relative to it need no check. */
  originInZone: boolean
}

/** A fault of the file; thrown and caught only in this module. */
class Fault {
  readonly message: string
  readonly line: number

  constructor(message: string, line: number) {
    this.message = message
    this.line = line
  }
}

/**
 * Scans a master file (RFC 1035 section 5, RFC 2308 section 4, RFC 3597) record by record into a sink.
 *
 *     text ─▶ lexer: fields of one entry ─▶ scanner: owner, TTL, type ─▶ rdata ─▶ sink.add(record)
 *               ▲                              │
 *               └── $INCLUDE, $GENERATE ───────┘
 *
 * A fault is recorded with its place, and the scan continues with the next entry.
 */
export class ZoneScanner {
  /** Faults so far, in order; empty = the file is valid. */
  readonly errors: InputError[] = []
  /** Every file requested so far; stamp '' = it could not be read. */
  readonly texts: FileStamp[] = []
  /** Records handed to the sink. */
  recordCount = 0

  readonly #zone: Uint8Array
  readonly #sink: ZoneSink
  readonly #record = new ScannedRecord()
  readonly #rdata = new RdataScanner()
  readonly #outside = new OutsideNames()
  /** The first TTL of more than 31 bits, by file. */
  readonly #longTtls = new Map<string, InputError>()
  readonly #limits: Required<ZoneScanLimits>
  /** What is left of the limits of text and of $GENERATE. */
  readonly #left: { octets: number; generated: number; expandedOctets: number }
  /** Paths of `texts`. */
  readonly #paths = new Set<string>()
  /** From the last $TTL in any of the files (RFC 2308 section 4); -1 = none yet. */
  #defaultTtl = -1
  /** Last TTL of a record that has one; -1 = none yet. */
  #lastTtl = -1
  #ownerInZone = false
  #ownerBroken = false
  #stopped = false
  /** Entries read since the last pause. */
  #sliceEntries = 0

  /** `zone`: apex in lower-case wire form; also the first origin. */
  constructor(zone: Uint8Array, sink: ZoneSink, limits: ZoneScanLimits = {}) {
    this.#zone = zone
    this.#sink = sink
    this.#limits = { ...LIMITS, ...limits }
    const { octetsMax, generatedMax, expandedOctetsMax } = this.#limits
    this.#left = { octets: octetsMax, generated: generatedMax, expandedOctets: expandedOctetsMax }
  }

  /** One warning per file for TTLs of more than 31 bits, and one for ignored records of names outside of the zone. */
  get warnings(): InputError[] {
    const outside = this.#outside.warnings(
      this.#zone,
      (them) => `move ${them} to the file of the right zone`,
    )
    return [...this.#longTtls.values(), ...outside]
  }

  /** Scans `source`; yields every few hundred entries so that the caller can do other work. */
  *scan(source: ZoneText): Generator<void, void> {
    this.texts.push({ file: source.file, stamp: source.stamp })
    this.#paths.add(resolve(source.file))
    this.#left.octets -= source.text.length
    yield* this.#scanFrame({
      lexer: new ZoneLexer(source.text),
      file: source.file,
      directory: dirname(resolve(source.file)),
      depth: 0,
      origin: this.#zone,
      originInZone: true,
    })
  }

  *#scanFrame(frame: Frame): Generator<void, void> {
    const { lexer } = frame
    while (!this.#stopped) {
      const entry = lexer.next()
      if (entry === Entry.End) return
      if (++this.#sliceEntries >= SLICE_ENTRIES) {
        this.#sliceEntries = 0
        yield
      }
      if (entry === Entry.Blank) this.#sliceEntries = SLICE_ENTRIES
      else if (entry === Entry.Bad) this.#report(frame, lexer.fault, lexer.faultLine)
      else if (lexer.input[lexer.start[0]!] === DOLLAR) yield* this.#directive(frame)
      else this.#entry(frame)
    }
  }

  #entry(frame: Frame): void {
    try {
      this.#readRecord(frame)
    } catch (fault) {
      this.#catch(frame, fault)
    }
  }

  *#directive(frame: Frame): Generator<void, void> {
    const nested: Frame[] = []
    let range: GenerateRange | undefined
    try {
      const name = frame.lexer.text(0).toUpperCase()
      if (name === '$ORIGIN') this.#readOrigin(frame)
      else if (name === '$TTL') this.#readDefaultTtl(frame)
      else if (name === '$INCLUDE') nested.push(this.#openInclude(frame))
      else if (name === '$GENERATE') range = this.#readRange(frame)
      else throw unknownDirective(frame, name)
    } catch (fault) {
      this.#catch(frame, fault)
    }
    for (const inner of nested) yield* this.#include(inner)
    if (range !== undefined) yield* this.#generate(frame, range)
  }

  /** Reads `[owner] [TTL] [class] type rdata`; TTL and class in either order, each at most once. */
  #readRecord(frame: Frame): void {
    const { lexer } = frame
    const record = this.#record
    let field = 0
    if (lexer.hasOwner) this.#readOwner(frame, field++)
    else if (record.ownerOctets === 0) {
      // A record that inherits a broken owner is skipped: the owner's fault is already reported.
      if (this.#ownerBroken) return
      throw new Fault('the first record has no owner; begin its line with one', lexer.line)
    }
    let ttl = -1
    let hasClass = false
    for (; field < lexer.count; field++) {
      if (ttl === -1 && isDigit(lexer.input[lexer.start[field]!]!))
        ttl = this.#readTtl(frame, field)
      else if (!hasClass && readClass(frame, field)) hasClass = true
      else break
    }
    if (field === lexer.count) {
      throw new Fault('the record has no type; write OWNER TTL IN TYPE DATA', lexer.line)
    }
    record.type = readType(frame, field)
    if (ttl !== -1) this.#lastTtl = ttl
    record.ttlSeconds = this.#effectiveTtl(ttl)
    const complaint = this.#rdata.scan(record, lexer, field + 1, frame.origin)
    if (complaint !== '') throw new Fault(complaint, lexer.line)
    this.#hand(frame)
  }

  /** Returns the TTL by RFC 2308 section 4: $TTL; without it, the last explicit TTL (RFC 1035). */
  #effectiveTtl(ttl: number): number {
    if (ttl !== -1) return ttl
    if (this.#defaultTtl !== -1) return this.#defaultTtl
    return this.#lastTtl !== -1 ? this.#lastTtl : DEFAULT_TTL_SECONDS
  }

  #hand(frame: Frame): void {
    const record = this.#record
    if (!this.#ownerInZone) {
      this.#outside.count(record.owner, frame.file, frame.lexer.line)
      return
    }
    if (this.recordCount >= this.#limits.recordsMax) {
      this.#stopped = true
      const message = `more than ${this.#limits.recordsMax} records; split the zone`
      throw new Fault(message, frame.lexer.line)
    }
    record.file = frame.file
    record.line = frame.lexer.line
    this.recordCount++
    if (!this.#sink.add(record)) this.#stopped = true
  }

  #readOwner(frame: Frame, field: number): void {
    const { lexer } = frame
    const record = this.#record
    record.ownerOctets = 0
    this.#ownerBroken = true
    const start = lexer.start[field]!
    const end = lexer.end[field]!
    const octets =
      lexer.quoted[field] === 1
        ? -1
        : scanNameOctets(lexer.input, start, end, frame.origin, record.owner)
    if (octets < 0) {
      const message = `${quote(frame, field)} is not a domain name; labels have 1 to 63 octets, names up to 255`
      throw new Fault(message, lexer.line)
    }
    lowerOctets(record.owner, octets)
    record.ownerOctets = octets
    this.#ownerBroken = false
    const isRelative = lexer.input[end - 1] !== DOT
    this.#ownerInZone =
      (isRelative && frame.originInZone) || endsWithZone(record.owner, octets, this.#zone)
  }

  #readOrigin(frame: Frame): void {
    if (frame.lexer.count !== 2) throw usage(frame, '$ORIGIN NAME')
    this.#setOrigin(frame, nameOf(frame, 1))
  }

  #setOrigin(frame: Frame, origin: Uint8Array): void {
    frame.origin = origin
    frame.originInZone = endsWithZone(lowerName(origin), origin.length, this.#zone)
  }

  #readDefaultTtl(frame: Frame): void {
    if (frame.lexer.count !== 2) throw usage(frame, '$TTL SECONDS')
    this.#defaultTtl = this.#readTtl(frame, 1)
  }

  #openInclude(frame: Frame): Frame {
    const { lexer } = frame
    if (lexer.count < 2 || lexer.count > 3) throw usage(frame, '$INCLUDE FILE [ORIGIN]')
    if (frame.depth >= INCLUDE_DEPTH_MAX) {
      const message = `$INCLUDE is nested deeper than ${INCLUDE_DEPTH_MAX}; include fewer levels`
      throw new Fault(message, lexer.line)
    }
    if (this.texts.length >= FILES_MAX) {
      throw new Fault(`more than ${FILES_MAX} files; merge them`, lexer.line)
    }
    const origin = lexer.count === 3 ? nameOf(frame, 2) : frame.origin
    const source = this.#readInclude(frame, lexer.text(1))
    const inner: Frame = {
      ...frame,
      lexer: new ZoneLexer(source.text),
      file: source.file,
      directory: dirname(source.file),
      depth: frame.depth + 1,
    }
    this.#setOrigin(inner, origin)
    return inner
  }

  #readInclude(frame: Frame, name: string): ZoneText {
    const path = resolve(frame.directory, name)
    const position = { file: frame.file, line: frame.lexer.line }
    const read = { file: path, stamp: '' }
    this.texts.push(read)
    const source = readZoneText(path, this.#left.octets, position)
    this.#left.octets -= source.text.length
    read.stamp = source.stamp
    const isAgain = this.#paths.has(path)
    this.#paths.add(path)
    if (isAgain && !this.#expand(source.text.length)) {
      const message = `${path} is included again, for more than ${this.#limits.expandedOctetsMax} octets of text in all; include it less often`
      this.#stopped = true
      throw new InputError(position, message)
    }
    return source
  }

  /** Counts text that is in no file; returns false if it exceeds the limit. */
  #expand(octets: number): boolean {
    this.#left.expandedOctets -= octets
    return this.#left.expandedOctets >= 0
  }

  /**
   * Reads an included file. Afterwards the outer file's origin and owner apply again (RFC 1035
   * section 5.1), but not its TTL.
   */
  *#include(inner: Frame): Generator<void, void> {
    const record = this.#record
    const owner = record.owner.slice(0, record.ownerOctets)
    const ownerInZone = this.#ownerInZone
    // Opening a file takes as long as reading hundreds of entries.
    yield
    yield* this.#scanFrame(inner)
    record.owner.set(owner)
    record.ownerOctets = owner.length
    this.#ownerInZone = ownerInZone
  }

  #readRange(frame: Frame): GenerateRange {
    const { lexer } = frame
    if (lexer.count < 4)
      throw usage(frame, '$GENERATE START-STOP[/STEP] OWNER [TTL] [CLASS] TYPE DATA')
    const range = scanRange(lexer.text(1), lexer.textBetween(lexer.start[2]!, lexer.at))
    if (typeof range === 'string') throw new Fault(range, lexer.line)
    const steps = Math.floor((range.stop - range.start) / range.step) + 1
    if (steps > this.#left.generated)
      throw this.#tooMuch(frame, `more than ${this.#limits.generatedMax} records`)
    this.#left.generated -= steps
    return range
  }

  *#generate(frame: Frame, range: GenerateRange): Generator<void, void> {
    const line = frame.lexer.line
    for (let i = range.start; i <= range.stop && !this.#stopped; i += range.step) {
      const text = expandTemplate(range.template, i)
      if (typeof text !== 'string') {
        this.#report(frame, text.complaint, line)
        return
      }
      const input = Buffer.from(text, 'latin1')
      this.#left.octets -= input.length
      if (!this.#expand(input.length) || this.#left.octets < 0) {
        const { message } = this.#tooMuch(
          frame,
          `more than ${this.#limits.expandedOctetsMax} octets of text`,
        )
        this.#report(frame, message, line)
        return
      }
      // A long generated record costs more than an entry of a file.
      this.#sliceEntries += input.length >> 5
      const errorsBefore = this.errors.length
      const lexer = new ZoneLexer(input, line, true)
      yield* this.#scanFrame({ ...frame, lexer, depth: INCLUDE_DEPTH_MAX })
      // Every further step would repeat the fault.
      if (this.errors.length > errorsBefore) return
    }
  }

  /** Stops the scan: every further $GENERATE would report the same fault. */
  #tooMuch(frame: Frame, what: string): Fault {
    this.#stopped = true
    const message = `$GENERATE makes ${what} in this zone; split the zone, or write the records into the file`
    return new Fault(message, frame.lexer.line)
  }

  #catch(frame: Frame, fault: unknown): void {
    if (fault instanceof Fault) this.#report(frame, fault.message, fault.line)
    else if (fault instanceof InputError) this.#keep(fault)
    else throw fault
  }

  #report(frame: Frame, message: string, line: number): void {
    this.#keep(new InputError({ file: frame.file, line }, message))
  }

  /** A TTL of more than 31 bits counts as 0 (RFC 2181 section 8). */
  #readTtl(frame: Frame, field: number): number {
    const { lexer, file } = frame
    const ttl = scanTtl(lexer.input, lexer.start[field]!, lexer.end[field]!)
    const how = 'write seconds up to 2147483647, or 1h30m'
    if (ttl === -1) throw new Fault(`${quote(frame, field)} is not a TTL; ${how}`, lexer.line)
    if (ttl <= TTL_SECONDS_MAX) return ttl
    if (!this.#longTtls.has(file)) {
      const message = `TTL ${ttl} has more than 31 bits: it counts as 0 (RFC 2181 section 8); ${how}`
      this.#longTtls.set(file, new InputError({ file, line: lexer.line }, message))
    }
    return 0
  }

  #keep(error: InputError): void {
    this.errors.push(error)
    if (this.errors.length >= this.#limits.errorsMax) this.#stopped = true
  }
}

/** Maximum TTL (RFC 2181 section 8). */
const TTL_SECONDS_MAX = 0x7fffffff
const DOLLAR = 0x24
const DOT = 0x2e

function isDigit(octet: number): boolean {
  return octet >= 0x30 && octet <= 0x39
}

/** Returns true if the field is class IN, false if it is not a class. */
function readClass(frame: Frame, field: number): boolean {
  const { lexer } = frame
  const rrclass = scanClassField(lexer.input, lexer.start[field]!, lexer.end[field]!)
  if (rrclass === -1) return false
  if (rrclass === RRClass.IN) return true
  const message = `class ${quote(frame, field)} is not served; use IN`
  throw new Fault(message, lexer.line)
}

function readType(frame: Frame, field: number): number {
  const { lexer } = frame
  const type = scanTypeField(lexer.input, lexer.start[field]!, lexer.end[field]!)
  if (type !== -1 && isDataType(type)) return type
  const message =
    type === -1
      ? `${quote(frame, field)} is not a record type; write its mnemonic, or TYPE and its number`
      : `${quote(frame, field)} is a type of queries, not of records; remove it`
  throw new Fault(message, lexer.line)
}

function nameOf(frame: Frame, field: number): Uint8Array {
  const { lexer } = frame
  const name = new Uint8Array(255)
  const octets = scanNameOctets(
    lexer.input,
    lexer.start[field]!,
    lexer.end[field]!,
    frame.origin,
    name,
  )
  if (octets >= 0) return name.slice(0, octets)
  throw new Fault(`${quote(frame, field)} is not a domain name`, lexer.line)
}

function usage(frame: Frame, form: string): Fault {
  return new Fault(`wrong number of fields; write ${form}`, frame.lexer.line)
}

function unknownDirective(frame: Frame, name: string): Fault {
  const message = `unknown directive ${JSON.stringify(name.slice(0, 40))}; there are $ORIGIN, $TTL, $INCLUDE and $GENERATE, and a name starts with \\$`
  return new Fault(message, frame.lexer.line)
}

/** Returns a field for an error message: quoted and shortened. */
function quote(frame: Frame, field: number): string {
  return JSON.stringify(frame.lexer.text(field).slice(0, 80))
}
