import { InputError } from '../../base/errors.ts'
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
import { type PlainRecordLog, readLog } from './record-log.ts'
import { ZoneScanner } from './scanner.ts'
import type { FileStamp } from './text.ts'

/** Loads a zone file. */
export interface FileJob {
  readonly path: string
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly options: ZoneLoadOptions
}

/** Loads the records of a transfer. */
export interface LogJob {
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
  const { records, owners } = countEntries(source.text)
  const namesCheckedMax = options.namesCheckedMax ?? NAMES_CHECKED_MAX
  if (records > namesCheckedMax) {
    const image = new ZoneImage({ names: owners })
    const sink = new DirectSink(apex, image, options.unlessSerial ?? -1)
    const scanner = new ZoneScanner(apex, sink, options)
    yield* scanner.scan(source)
    const { texts: files, errors, warnings } = scanner
    if (sink.isKnown) return { kind: 'unchanged', files }
    if (sink.finish() && sink.recordCount > namesCheckedMax) {
      return errors.length > 0
        ? { kind: 'failed', errors, files }
        : plain(job, sink, warnings, files)
    }
  }
  return yield* loadZoneText(source, apex, options)
}

function* loadTransfer(job: LogJob): Generator<void, ImageLoad | ZoneLoad> {
  const { log, nowSeconds } = job
  const sink = new DirectSink(log.zone, newImage(log.ownerCount, log.octetCount), -1)
  yield* readLog(log, sink)
  return sink.finish() ? plain(job, sink, [], []) : yield* loadLog(log, nowSeconds)
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
