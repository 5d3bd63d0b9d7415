import type { InputError } from '../base/errors.ts'
import type { HealthProbe } from './dns-record.ts'
import type { PackedRecord } from './pack.ts'
import type { SlowStartUnits } from './slow-start.ts'

/** A valid record as a source holds it. Immutable: a change makes a new one. */
export interface StoredRecord {
  /** `namespace/name`. */
  readonly key: string
  readonly packed: PackedRecord
  /** Addresses and host names that the record's health probes found down. */
  readonly down: readonly string[]
  /** Those that they found up, for other sites to know; undefined = none. */
  readonly up?: readonly string[] | undefined
  /** Those that were down and get their weight back step by step; undefined = none. */
  readonly slowStart?: readonly SlowStartUnits[] | undefined
}

/** What became of one record: `before` absent = new, `after` absent = gone. */
export interface RecordChange {
  readonly before: StoredRecord | undefined
  readonly after: StoredRecord | undefined
}

/** Where DNSRecords come from: manifest files, or the API of a Kubernetes cluster. */
export interface RecordSource {
  /** All records to serve, invalid ones in their last good version. */
  records(): Iterable<StoredRecord>
  /** The record with that key, `namespace/name`. */
  find(key: string): StoredRecord | undefined
  readonly recordCount: number
  /** Everything that is wrong just now, in order of files and lines. */
  problems(): readonly InputError[]
  /** Why the source as a whole is not to be trusted just now; '' = it is. For the ready page. */
  unreadyReason(): string
  /** True while further changes of the same batch follow; absent = each call of a listener has a whole batch. */
  readonly isChanging?: boolean
  /** Calls `listener` once per batch of changes, or part of one; returns the function that ends it. */
  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void
}

/** A source that is kept up with what it is of. */
export interface FollowedSource extends RecordSource {
  /** Records whose content is refused. */
  readonly refusedCount: number
  /** Files that are bad as such. */
  readonly badFileCount: number
  /** Begins to read and to follow. Rejects with InputError where that is of no use. */
  start(): Promise<void>
  /** Resolves once everything has been read for the first time; never, if that never comes. */
  synced(): Promise<void>
  /** What is to be known of the age of the records; '' = they are as of now. For the ready page. */
  note(): string
  close(): void
}

/** Where DNSHealthCheckProbes come from. */
export interface ProbeSource {
  /** All there are, also those that somebody has judged. */
  probes(): Iterable<HealthProbe>
  /** Calls `listener` after they changed; returns the function that ends it. */
  onProbes(listener: () => void): () => void
}
