import { InputError } from '../../base/errors.ts'
import type { HealthProbe } from '../dns-record.ts'
import type { PackedRecord } from '../pack.ts'

/** A record as one document of one file has it. */
export class HeldRecord {
  readonly key: string
  /** Its content, or that of its last good version; undefined = it never had a good one. */
  readonly packed: PackedRecord | undefined
  /** Why the content in the file is refused. */
  readonly problem: InputError | undefined
  /** Path of the file. */
  readonly file: string
  /** Which of the file's documents it is in; brought up to date when the file is read again. */
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

/** What one document of a file holds. */
export interface HeldDocument {
  line: number
  readonly digestA: number
  readonly digestB: number
  readonly records: readonly HeldRecord[]
  readonly probes: readonly HealthProbe[]
}

/** What one file holds; replaced as a whole when it is read again. */
export interface ManifestFile {
  readonly path: string
  readonly documents: readonly HeldDocument[]
  /** Faults of the file itself: no YAML, no identity. While there are any, its last state is kept. */
  readonly errors: readonly InputError[]
}

/** Why the directory itself can't be read. */
export function directoryError(directory: string, cause: Error): InputError {
  const message = `${directory}: can't be listed: ${cause.message}`
  return new InputError('MANIFEST', undefined, message, cause)
}

/** Place and reason of a fault in a manifest. */
export function manifestError(path: string, line: number, message: string): InputError {
  return new InputError('MANIFEST', { file: path, line }, message)
}
