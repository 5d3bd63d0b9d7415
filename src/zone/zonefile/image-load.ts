import { InputError } from '../../base/errors.ts'
import type { CapturedImage, ZoneImage } from '../image/writer.ts'
import type { SignatureReport } from './check-signatures.ts'
import { fillImage } from './fill.ts'
import { loadLog, loadZone, type ZoneLoad, type ZoneLoadOptions } from './load.ts'
import type { PlainRecordLog } from './record-log.ts'
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
    const load = yield* loadOf(job)
    if (load.kind !== 'loaded') return load
    const { kind, serial, warnings, signatures } = load
    files = load.files
    const filled = yield* fillImage(load.records, apexOf(job))
    const image = isFile(job) ? finished(filled) : filled.capture()
    return { kind, image, serial, warnings, signatures, files }
  } catch (error) {
    const reason = error instanceof InputError ? error : outOfMemory(error, job)
    return { kind: 'failed', errors: [reason], files }
  }
}

function loadOf(job: ImageJob): Generator<void, ZoneLoad> {
  return isFile(job) ? loadZone(job.path, job.apex, job.options) : loadLog(job.log, job.nowSeconds)
}

function isFile(job: ImageJob): job is FileJob {
  return 'path' in job
}

function apexOf(job: ImageJob): Uint8Array {
  return isFile(job) ? job.apex : job.log.zone
}

function finished(image: ZoneImage): CapturedImage {
  return { ...image.capture(), buffer: image.finish() }
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
