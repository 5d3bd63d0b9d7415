import { InputError } from '../../base/errors.ts'
import type { HealthProbe } from '../../records/dns-record.ts'
import type { PackedRecord } from '../../records/pack.ts'
import type { IgnoredObject } from '../ignored-index.ts'

/** A record in one document of one file. */
export class HeldRecord {
  readonly key: string
  /** Its content, or that of its last valid version; undefined = it never was valid. */
  readonly packed: PackedRecord | undefined
  /** Why the content in the file is refused. */
  readonly problem: InputError | undefined
  /** Path of the file. */
  readonly file: string
  /** Index of its document in the file; updated when the file is read again. */
  document = 0

  constructor(
    key: string,
    packed: PackedRecord | undefined,
    file: string,
    problem: InputError | undefined = undefined,
  ) {
    this.key = key
    this.packed = packed
    this.problem = problem
    this.file = file
  }
}

/** The content of one document of a file. */
export interface HeldDocument {
  line: number
  readonly digestA: number
  readonly digestB: number
  readonly records: readonly HeldRecord[]
  readonly probes: readonly HealthProbe[]
  /** What nothing reads in its objects; mostly empty. */
  readonly ignored: readonly IgnoredObject[]
}

/** The content of one file; replaced as a whole when the file is read again. */
export interface ManifestFile {
  readonly path: string
  readonly documents: readonly HeldDocument[]
  /**
   * Faults of the file itself: invalid YAML, missing identity. While it has any, its last state is
   * kept.
   */
  readonly errors: readonly InputError[]
}

/** Error for a directory that can't be read. */
export function directoryError(directory: string, cause: Error): InputError {
  const message = `${directory}: cannot be listed: ${cause.message}`
  return new InputError(undefined, message, cause)
}

/** Error with the place and reason of a fault in a manifest. */
export function manifestError(path: string, line: number, message: string): InputError {
  return new InputError({ file: path, line }, message)
}

/**
 * Returns an error for a bug of this program that a file triggered. The other files are still read.
 */
export function unforeseen(path: string, error: unknown): InputError {
  const reason = error instanceof Error ? error.message : String(error)
  const message = `this file cannot be read because of a fault of the server: ${reason}`
  return new InputError({ file: path, line: 1 }, message, error)
}
