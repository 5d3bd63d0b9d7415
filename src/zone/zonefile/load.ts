import { InputError } from '../../base/errors.ts'
import { RRType } from '../../dns/iana/index.ts'
import { printName } from '../../dns/name/name.ts'
import { checkZone } from './check.ts'
import { checkSignatures, type SignatureReport } from './check-signatures.ts'
import { OWNER_RECORDS_MAX, ZoneRecords } from './records.ts'
import { type ZoneScanLimits, ZoneScanner } from './scanner.ts'
import type { ScannedRecord, ZoneSink } from './sink.ts'
import { type FileStamp, hasChanged, readZoneText, ZONE_OCTETS_MAX, type ZoneText } from './text.ts'

/** Octets of text per record in ordinary zones: the first guess of their number. */
const RECORD_OCTETS = 32

export interface ZoneLoadOptions extends ZoneScanLimits {
  /** Stop at once if the SOA carries this serial: the zone is known already. */
  readonly unlessSerial?: number
  /** Seconds since the Unix epoch: warns of signatures that are not valid then. Absent = times are not checked. */
  readonly nowSeconds?: number
}

/** What loading a zone file came to. `files`: every file asked for, with its state. */
export type ZoneLoad =
  | {
      readonly kind: 'loaded'
      readonly records: ZoneRecords
      readonly serial: number
      readonly warnings: readonly InputError[]
      /** Its warning is among the warnings too. */
      readonly signatures: SignatureReport
      readonly files: readonly FileStamp[]
    }
  | { readonly kind: 'unchanged'; readonly files: readonly FileStamp[] }
  /** The file itself can't be read: not there, not a file, too large. */
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

/**
 * Scans and checks the zone file at `path`; pauses now and then. `apex`: lower-case wire form. Never
 * throws for what is in or about the file.
 */
export function* loadZone(
  path: string,
  apex: Uint8Array,
  options: ZoneLoadOptions = {},
): Generator<void, ZoneLoad> {
  let source: ZoneText
  try {
    source = readZoneText(path, options.octetsMax ?? ZONE_OCTETS_MAX)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return { kind: 'unreadable', error, files: [{ file: path, stamp: '' }] }
  }
  return yield* loadZoneText(source, apex, options)
}

/** As `loadZone`, of text that is there already. */
export function* loadZoneText(
  source: ZoneText,
  apex: Uint8Array,
  options: ZoneLoadOptions = {},
): Generator<void, ZoneLoad> {
  const sink = new LoadSink(apex, source.text.length / RECORD_OCTETS, options.unlessSerial ?? -1)
  const scanner = new ZoneScanner(apex, sink, options)
  yield* scanner.scan(source)
  const files = scanner.texts
  if (sink.isKnown) return { kind: 'unchanged', files }
  if (sink.records.full) scanner.errors.push(tooLarge(source.file))
  if (sink.crowded !== undefined) scanner.errors.push(sink.crowded)
  if (scanner.errors.length > 0) return { kind: 'failed', errors: scanner.errors, files }
  const { errors, warnings } = yield* checkZone(sink.records, apex, source.file)
  if (errors.length > 0) return { kind: 'failed', errors, files }
  const signatures = yield* checkSignatures(sink.records, apex, options.nowSeconds)
  if (signatures.warning !== undefined) warnings.push(signatures.warning)
  const { records, serial } = sink
  return { kind: 'loaded', records, serial, warnings, signatures, files }
}

/** True if any of the files changed since they were read. */
export function haveChanged(files: readonly FileStamp[]): boolean {
  return files.some(hasChanged)
}

function tooLarge(file: string): InputError {
  return new InputError('ZONE_LIMIT', { file, line: 1 }, 'the zone is over two gigabytes; split it')
}

function tooMany({ owner, file, line }: ScannedRecord): InputError {
  const message = `${printName(owner)} has more than ${OWNER_RECORDS_MAX} records; spread them over more names`
  return new InputError('ZONE_LIMIT', { file, line }, message)
}

/** Keeps the records, and notes the SOA's serial in passing. */
class LoadSink implements ZoneSink {
  readonly records: ZoneRecords
  serial = -1
  isKnown = false
  /** The fault of an owner with too many records. */
  crowded: InputError | undefined
  readonly #apex: Uint8Array
  readonly #knownSerial: number

  constructor(apex: Uint8Array, recordsExpected: number, knownSerial: number) {
    this.records = new ZoneRecords(Math.ceil(recordsExpected))
    this.#apex = apex
    this.#knownSerial = knownSerial
  }

  add(record: ScannedRecord): boolean {
    if (record.type === RRType.SOA && this.serial === -1) {
      this.serial = soaSerial(record.rdata.subarray(0, record.rdataOctets))
      this.isKnown = this.serial === this.#knownSerial && record.ownerOctets === this.#apex.length
      if (this.isKnown) return false
    }
    const isKept = this.records.add(record)
    if (this.records.crowded) this.crowded = tooMany(record)
    return isKept
  }
}

/** The serial of SOA rdata: before refresh, retry, expire and minimum, four octets each. */
function soaSerial(rdata: Uint8Array): number {
  const at = rdata.length - 20
  return (
    ((rdata[at]! << 24) | (rdata[at + 1]! << 16) | (rdata[at + 2]! << 8) | rdata[at + 3]!) >>> 0
  )
}
