import type { InputError } from '../base/errors.ts'
import type { HealthProbe } from '../dnsrecord/dns-record.ts'
import type { PackedRecord } from '../dnsrecord/pack.ts'
import type { SlowStartUnits } from '../dnsrecord/slow-start-units.ts'

/** A valid record in a source. Immutable: a change creates a new object. */
export interface StoredRecord {
  /** `namespace/name`. */
  readonly key: string
  readonly packed: PackedRecord
  /** Addresses and host names that the record's health probes found down. */
  readonly down: readonly string[]
  /**
   * Addresses and host names that the probes found up, for export to other sites; undefined = none.
   */
  readonly up?: readonly string[] | undefined
  /** Addresses in slow start after they were down; undefined = none. */
  readonly slowStart?: readonly SlowStartUnits[] | undefined
}

/** The change of one record: `before` missing = added, `after` missing = removed. */
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

/** A source that follows changes of its files or cluster. */
export interface FollowedSource extends RecordSource {
  /** Number of records whose content is refused. */
  readonly refusedCount: number
  /** Number of files with faults of their own. */
  readonly badFileCount: number
  /** Starts to read and to follow. Rejects with InputError if that can't succeed. */
  start(): Promise<void>
  /**
   * Resolves once all data was read for the first time; if that never happens, it never resolves.
   */
  synced(): Promise<void>
  /** Remark on the age of the records; '' = they are current. For the ready page. */
  note(): string
  close(): void
}

/** A source of DNSHealthCheckProbes. */
export interface ProbeSource {
  /** All probes, including those whose status another prober has set. */
  probes(): Iterable<HealthProbe>
  /** Calls `listener` after the probes changed; returns the function that unsubscribes it. */
  onProbes(listener: () => void): () => void
}
