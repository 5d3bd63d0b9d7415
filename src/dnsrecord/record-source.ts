import type { InputError } from '../base/errors.ts'
import type { HealthProbe } from './dns-record.ts'
import type { PackedRecord } from './pack.ts'

/**
 * A valid record in a source. Immutable: a change creates a new object. A class, so that a hundred
 * thousand records share one object shape.
 */
export class StoredRecord {
  /** `namespace/name`. */
  readonly key: string
  readonly packed: PackedRecord

  constructor(key: string, packed: PackedRecord) {
    this.key = key
    this.packed = packed
  }
}

/**
 * The change of one record: `before` missing = added, `after` missing = removed. The same object
 * twice: the record is unchanged, and what depends on it must be built again.
 */
export interface RecordChange {
  readonly before: StoredRecord | undefined
  readonly after: StoredRecord | undefined
}

/** A source of DNSRecords: manifest files, or the API of a Kubernetes cluster. */
export interface RecordSource {
  /** All records to serve; an invalid one in its last valid version. */
  records(): Iterable<StoredRecord>
  /** Returns the record with that key, `namespace/name`. */
  find(key: string): StoredRecord | undefined
  readonly recordCount: number
  /** All current faults, in order of files and lines. */
  problems(): readonly InputError[]
  /** Why the source as a whole is not ready; '' = it is ready. For the ready page. */
  unreadyReason(): string
  /**
   * True while further changes of the same batch follow; missing = each call of a listener has a
   * whole batch.
   */
  readonly isChanging?: boolean
  /**
   * Calls `listener` once per batch of changes, or part of one; returns the function that
   * unsubscribes it.
   */
  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void
}

/** A source of DNSHealthCheckProbes. */
export interface ProbeSource {
  /** All probes, including those whose status another prober has set. */
  probes(): Iterable<HealthProbe>
  /** Calls `listener` after the probes changed; returns the function that unsubscribes it. */
  onProbes(listener: () => void): () => void
}
