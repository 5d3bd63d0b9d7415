import { InputError } from '../../base/errors.ts'
import type { SignatureReport } from './check-signatures.ts'
import { finishImage } from './fill.ts'
import { loadZone, type ZoneLoad, type ZoneLoadOptions } from './load.ts'
import type { FileStamp } from './text.ts'

/** The result of loading a zone file into an image. Plain data, except its errors. */
export type ImageLoad =
  | {
      readonly kind: 'loaded'
      /** The arena of the image, which has one version. */
      readonly buffer: SharedArrayBuffer
      readonly serial: number
      readonly warnings: readonly InputError[]
      readonly signatures: SignatureReport
      readonly files: readonly FileStamp[]
    }
  | Exclude<ZoneLoad, { readonly kind: 'loaded' }>

/** As `loadZone`, and fills an image of its own with the zone. */
export function* loadImage(
  path: string,
  apex: Uint8Array,
  options: ZoneLoadOptions,
): Generator<void, ImageLoad> {
  let files: readonly FileStamp[] = []
  try {
    const load = yield* loadZone(path, apex, options)
    if (load.kind !== 'loaded') return load
    const { kind, serial, warnings, signatures } = load
    files = load.files
    const buffer = yield* finishImage(load.records, apex)
    return { kind, buffer, serial, warnings, signatures, files }
  } catch (error) {
    const reason = error instanceof InputError ? error : outOfMemory(error, path)
    return { kind: 'failed', errors: [reason], files }
  }
}

/** Converts a failed allocation to an error for the operator; rethrows anything else. */
export function outOfMemory(error: unknown, file: string): InputError {
  if (!isOutOfMemory(error)) throw error
  const message = 'not enough memory for this zone; split it, or give the server more'
  return new InputError({ file, line: 1 }, message, error)
}

function isOutOfMemory(error: unknown): boolean {
  if (error instanceof RangeError) return true
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
}
