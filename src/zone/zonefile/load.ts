import { InputError } from '../../base/errors.ts'
import { printType, RRType } from '../../dns/iana/index.ts'
import { printName } from '../../dns/name/name.ts'
import { checkZone } from './check.ts'
import { checkNames } from './check-names.ts'
import { checkSignatures, type SignatureReport } from './check-signatures.ts'
import { memoryProblem } from './memory-need.ts'
import { type PlainRecordLog, readLog } from './record-log.ts'
import { OWNER_RECORDS_MAX, ZoneRecords } from './records.ts'
import { type ZoneScanLimits, ZoneScanner } from './scanner.ts'
import type { ScannedRecord, ZoneSink } from './sink.ts'
import { type FileStamp, hasChanged, readZoneText, ZONE_OCTETS_MAX, type ZoneText } from './text.ts'
import { MADE_BY_SIGNERS, printSigned } from './unsigned-zone.ts'

/** Octets of text per record in ordinary zones: used to estimate the number of records. */
const RECORD_OCTETS = 32

/** Above it, only `sextant check` checks the names: that takes up to a sixth of the time of a load. */
export const NAMES_CHECKED_MAX = 100_000

export interface ZoneLoadOptions extends ZoneScanLimits {
  /** Stops early if the SOA has this serial: the caller already has the zone. */
  readonly unlessSerial?: number
  /** Octets of memory that the load may take; `left`: what the process may still take. Default: any number. */
  readonly memoryMax?: number | 'left'
  /**
   * Seconds since the Unix epoch: warns about signatures that are invalid at this time. Absent =
   * times are not checked.
   */
  readonly nowSeconds?: number
  /** False: other directives may answer for names that the file lacks. Missing = true. */
  readonly isWhole?: boolean
  /** Records of the largest zone whose names are checked. Missing = those of a zone that this slows down little. */
  readonly namesCheckedMax?: number
  /** True: this server signs the zone, so records that a signer makes are faults. */
  readonly isUnsigned?: boolean
}

/** The result of loading a zone file. `files`: every file that was requested, with its state. */
export type ZoneLoad =
  | {
      readonly kind: 'loaded'
      readonly records: ZoneRecords
      readonly serial: number
      readonly warnings: readonly InputError[]
      /** `warnings` includes its warning too. */
      readonly signatures: SignatureReport
      readonly files: readonly FileStamp[]
    }
  | { readonly kind: 'unchanged'; readonly files: readonly FileStamp[] }
  /** The file itself can't be read: missing, not a regular file, or too large. */
  | {
      readonly kind: 'unreadable'
      readonly error: InputError
      readonly files: readonly FileStamp[]
    }
  | {
      readonly kind: 'failed'
      /** At least one, in the order found. */
      readonly errors: readonly InputError[]
      readonly files: readonly FileStamp[]
    }

type UnreadZone = Extract<ZoneLoad, { kind: 'unreadable' | 'failed' }>

/**
 * Scans and checks the zone file at `path`; pauses now and then. `apex`: lower-case wire form.
 * Never throws because of the file or its content.
 */
export function* loadZone(
  path: string,
  apex: Uint8Array,
  options: ZoneLoadOptions = {},
): Generator<void, ZoneLoad> {
  const source = readZone(path, options)
  return 'text' in source ? yield* loadZoneText(source, apex, options) : source
}

/** Returns the text of the zone file at `path`, or why it can't be loaded. */
export function readZone(path: string, options: ZoneLoadOptions): ZoneText | UnreadZone {
  let source: ZoneText
  try {
    source = readZoneText(path, options.octetsMax ?? ZONE_OCTETS_MAX)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return { kind: 'unreadable', error, files: [{ file: path, stamp: '' }] }
  }
  const problem = memoryProblem(source, options.memoryMax)
  // No files: the next reload tries again, because memory may be free by then.
  return problem === undefined ? source : { kind: 'failed', errors: [problem], files: [] }
}

/** Does the same as `loadZone` for text in memory. */
export function* loadZoneText(
  source: ZoneText,
  apex: Uint8Array,
  options: ZoneLoadOptions = {},
): Generator<void, ZoneLoad> {
  const sink = new LoadSink(apex, source.text.length / RECORD_OCTETS, options)
  const scanner = new ZoneScanner(apex, sink, options)
  yield* scanner.scan(source)
  const files = scanner.texts
  if (sink.isKnown) return { kind: 'unchanged', files }
  scanner.errors.push(...sink.faults(source.file))
  if (scanner.errors.length > 0) return { kind: 'failed', errors: scanner.errors, files }
  const ignored = scanner.warnings
  const found = yield* checkZone(sink.records, apex, source.file)
  // The file of another zone has no SOA: the ignored names tell which zone it is.
  if (found.errors.length > 0)
    return { kind: 'failed', errors: [...found.errors, ...ignored], files }
  const isChecked = sink.records.recordCount <= (options.namesCheckedMax ?? NAMES_CHECKED_MAX)
  const names = isChecked ? yield* checkNames(sink.records, apex, options) : []
  const warnings = [...ignored, ...found.warnings, ...names]
  const signatures = yield* checkSignatures(sink.records, apex, options.nowSeconds)
  if (signatures.warning !== undefined) warnings.push(signatures.warning)
  const { records, serial } = sink
  return { kind: 'loaded', records, serial, warnings, signatures, files }
}

/** Does the same for the records of a transfer. Their names are not checked: its primary did that. */
export function* loadLog(log: PlainRecordLog, nowSeconds: number): Generator<void, ZoneLoad> {
  const { zone } = log
  const files: FileStamp[] = []
  const { records, serial, faults } = yield* scanLog(log)
  if (faults.length > 0) return { kind: 'failed', errors: faults, files }
  const { errors, warnings } = yield* checkZone(records, zone, 'the transfer')
  if (errors.length > 0) return { kind: 'failed', errors, files }
  const signatures = yield* checkSignatures(records, zone, nowSeconds)
  if (signatures.warning !== undefined) warnings.push(signatures.warning)
  return { kind: 'loaded', records, serial, warnings, signatures, files }
}

/** The records of a log by owner. Faults: why they are incomplete. */
interface ScannedLog {
  readonly records: ZoneRecords
  readonly serial: number
  readonly faults: readonly InputError[]
}

export function* scanLog(log: PlainRecordLog): Generator<void, ScannedLog> {
  const sink = new LoadSink(log.zone, log.recordCount, {})
  yield* readLog(log, sink)
  const { records, serial } = sink
  return { records, serial, faults: sink.faults(log.origin) }
}

/** True if any of the files changed since they were read. */
export function haveChanged(files: readonly FileStamp[]): boolean {
  return files.some(hasChanged)
}

function tooLarge(file: string): InputError {
  return new InputError({ file, line: 1 }, 'the zone is larger than two gigabytes; split it')
}

function tooMany({ owner, file, line }: ScannedRecord): InputError {
  const message = `${printName(owner)} has more than ${OWNER_RECORDS_MAX} records; spread them over more names`
  return new InputError({ file, line }, message)
}

function signedAlready({ owner, type, file, line }: ScannedRecord): InputError {
  return new InputError({ file, line }, printSigned(`${printName(owner)} ${printType(type)}`))
}

/** Stores the records, and the SOA's serial. */
class LoadSink implements ZoneSink {
  readonly records: ZoneRecords
  serial = -1
  isKnown = false
  /** The fault of an owner with too many records. */
  crowded: InputError | undefined
  /** The fault of a record that a signer made. */
  #signed: InputError | undefined
  readonly #apex: Uint8Array
  readonly #knownSerial: number
  readonly #isUnsigned: boolean

  constructor(
    apex: Uint8Array,
    recordsExpected: number,
    { unlessSerial = -1, isUnsigned = false }: ZoneLoadOptions,
  ) {
    this.records = new ZoneRecords(Math.ceil(recordsExpected))
    this.#apex = apex
    this.#knownSerial = unlessSerial
    this.#isUnsigned = isUnsigned
  }

  /** What made the sink end the scan: names and rdata, or one owner, have too many records, or one is of a signer. */
  faults(file: string): InputError[] {
    const faults = this.records.full ? [tooLarge(file)] : []
    return [...faults, this.crowded, this.#signed].filter((fault) => fault !== undefined)
  }

  add(record: ScannedRecord): boolean {
    if (record.type === RRType.SOA && this.serial === -1) {
      this.serial = soaSerial(record.rdata, record.rdataOffset + record.rdataOctets)
      this.isKnown = this.serial === this.#knownSerial && record.ownerOctets === this.#apex.length
      if (this.isKnown) return false
    }
    if (this.#isUnsigned && MADE_BY_SIGNERS.has(record.type)) {
      this.#signed = signedAlready(record)
      return false
    }
    const isKept = this.records.add(record)
    if (this.records.crowded) this.crowded = tooMany(record)
    return isKept
  }
}

/** Returns the serial of SOA rdata that ends at `end`: four numbers of four octets each follow it. */
export function soaSerial(rdata: Uint8Array, end: number): number {
  const at = end - 20
  return (
    ((rdata[at]! << 24) | (rdata[at + 1]! << 16) | (rdata[at + 2]! << 8) | rdata[at + 3]!) >>> 0
  )
}
