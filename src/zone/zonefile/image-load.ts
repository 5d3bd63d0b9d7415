import { InputError, type Position } from '../../base/errors.ts'
import { type CapturedImage, ZoneImage } from '../image/writer.ts'
import type { SignatureReport } from './check-signatures.ts'
import { countEntries } from './count-entries.ts'
import { DirectSink } from './direct-sink.ts'
import { fillImage, finished, finishImage, newImage } from './fill.ts'
import {
  loadLog,
  loadZoneText,
  NAMES_CHECKED_MAX,
  readZone,
  type ZoneLoad,
  type ZoneLoadOptions,
} from './load.ts'
import { memoryLeft, memoryProblem } from './memory-need.ts'
import { type PlainRecordLog, readLog } from './record-log.ts'
import { ZoneScanner } from './scanner.ts'
import type { FileStamp, ZoneText } from './text.ts'

/** Loads a zone file. */
interface FileJob {
  readonly path: string
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly options: ZoneLoadOptions
  /** Path of the snapshot to write after a load in a thread; absent = none. */
  readonly snapshot?: string | undefined
}

/** Loads the records of a transfer. */
interface LogJob {
  readonly log: PlainRecordLog
  /** Of now, since the Unix epoch. */
  readonly nowSeconds: number
}

export type ImageJob = FileJob | LogJob

/** The result of loading a zone into an image. Plain data, except its errors. */
export type ImageLoad =
  | {
      readonly kind: 'loaded'
      /** Of a zone file, an image that will not change; of a transfer, one for `adoptArena`. */
      readonly image: CapturedImage
      readonly serial: number
      readonly warnings: readonly InputError[]
      readonly signatures: SignatureReport
      readonly files: readonly FileStamp[]
    }
  | Exclude<ZoneLoad, { readonly kind: 'loaded' }>

export type LoadedImage = Extract<ImageLoad, { readonly kind: 'loaded' }>

/** An error as plain data: errors lose their class when they are sent between threads. */
export interface PlainError {
  readonly position?: Position | undefined
  readonly message: string
}

/** A loaded image as plain data. */
export type PlainImage = Omit<LoadedImage, 'warnings' | 'signatures'> & {
  readonly warnings: readonly PlainError[]
  readonly expiry?: LoadedImage['signatures']['expiry']
  /** Which of the warnings is that of the signatures; -1 = none. */
  readonly signatureWarning: number
}

export function toPlainImage({ signatures, ...load }: LoadedImage): PlainImage {
  const { expiry, warning } = signatures
  const signatureWarning = warning === undefined ? -1 : load.warnings.indexOf(warning)
  return { ...load, warnings: load.warnings.map(toPlain), expiry, signatureWarning }
}

/** Does the opposite of `toPlainImage`. */
export function toLoaded({ expiry, signatureWarning, ...load }: PlainImage): LoadedImage {
  const warnings = load.warnings.map(toError)
  return { ...load, warnings, signatures: { warning: warnings[signatureWarning], expiry } }
}

export function toPlain({ position, message }: InputError): PlainError {
  return { position, message }
}

export function toError({ position, message }: PlainError): InputError {
  return new InputError(position, message)
}

/** Loads a zone and fills an image of its own with it. */
export function* loadImage(job: ImageJob): Generator<void, ImageLoad> {
  let files: readonly FileStamp[] = []
  try {
    const load = isFile(job) ? yield* loadFile(job) : yield* loadTransfer(job)
    if (load.kind !== 'loaded' || 'image' in load) return load
    const { kind, records, serial, warnings, signatures } = load
    files = load.files
    const image = isFile(job)
      ? yield* finishImage(records, job.apex)
      : (yield* fillImage(records, job.log.zone)).capture()
    return { kind, image, serial, warnings, signatures, files }
  } catch (error) {
    const reason = error instanceof InputError ? error : outOfMemory(error, job)
    return { kind: 'failed', errors: [reason], files }
  }
}

function* loadFile(job: FileJob): Generator<void, ImageLoad | ZoneLoad> {
  const { path, apex, options } = job
  const source = readZone(path, options)
  if (!('text' in source)) return source
  return (yield* loadPlainFile(job, source)) ?? (yield* loadZoneText(source, apex, options))
}

/** Returns undefined if all records must be loaded. Its own function: its image must not be kept then. */
function* loadPlainFile(job: FileJob, source: ZoneText): Generator<void, ImageLoad | undefined> {
  const { apex, options } = job
  const { records, owners } = countEntries(source.text)
  const namesCheckedMax = options.namesCheckedMax ?? NAMES_CHECKED_MAX
  if (records <= namesCheckedMax) return undefined
  // Asked now: the image is not needed any more if all records are loaded.
  const memoryMax = options.memoryMax === 'left' ? memoryLeft() : options.memoryMax
  const sink = new DirectSink(apex, new ZoneImage({ names: owners }), options.unlessSerial ?? -1)
  const scanner = new ZoneScanner(apex, sink, options)
  yield* scanner.scan(source)
  const { texts: files, errors, warnings } = scanner
  if (sink.isKnown) return { kind: 'unchanged', files }
  if (!sink.finish() || sink.recordCount <= namesCheckedMax) {
    const problem = memoryProblem(source, memoryMax, true)
    return problem && { kind: 'failed', errors: [problem], files: [] }
  }
  return errors.length > 0 ? { kind: 'failed', errors, files } : plain(job, sink, warnings, files)
}

function* loadTransfer(job: LogJob): Generator<void, ImageLoad | ZoneLoad> {
  const { log, nowSeconds } = job
  return (yield* loadPlainTransfer(job)) ?? (yield* loadLog(log, nowSeconds))
}

/** As `loadPlainFile`. */
function* loadPlainTransfer(job: LogJob): Generator<void, ImageLoad | undefined> {
  const { log } = job
  const sink = new DirectSink(log.zone, newImage(log.ownerCount, log.octetCount), -1)
  yield* readLog(log, sink)
  return sink.finish() ? plain(job, sink, [], []) : undefined
}

/** Returns the load of a zone that no check of all records complains of, and that is not signed. */
function plain(
  job: ImageJob,
  { image, serial }: DirectSink,
  warnings: readonly InputError[],
  files: readonly FileStamp[],
): ImageLoad {
  const signatures = { warning: undefined, expiry: undefined }
  const captured = isFile(job) ? finished(image) : image.capture()
  return { kind: 'loaded', image: captured, serial, warnings, signatures, files }
}

function isFile(job: ImageJob): job is FileJob {
  return 'path' in job
}

/** Converts a failed allocation to an error for the operator; rethrows anything else. */
export function outOfMemory(error: unknown, job: ImageJob): InputError {
  if (!isOutOfMemory(error)) throw error
  const file = isFile(job) ? job.path : job.log.origin
  const message = 'not enough memory for this zone; split it, or give the server more'
  return new InputError({ file, line: 1 }, message, error)
}

function isOutOfMemory(error: unknown): boolean {
  if (error instanceof RangeError) return true
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
}
