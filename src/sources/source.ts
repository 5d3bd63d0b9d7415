import type { ProblemGroup } from '../base/telemetry/problems.ts'
import type { AddressHealth } from '../health/address-health.ts'
import type { DrainFeed } from '../health/drain/drain-schedule.ts'
import type { ListWatch } from '../kube/list-watch.ts'
import type { ProbeSource, RecordSource } from '../records/record-source.ts'
import type { HeldPlace } from './manifests/manifest-store.ts'

/** A source that follows changes of its files or cluster. */
export interface FollowedSource extends RecordSource {
  /**
   * Health of the addresses of the records. The source writes what its DNSHealthCheckProbes report.
   * It publishes a change after the changes of records in the same batch.
   */
  readonly health: AddressHealth
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
  /** What is wrong with the records. `of`: name of the source. */
  problemGroups(of: string): readonly ProblemGroup[]
  /** Where a served record comes from: `file:line`, or `kubernetes`. */
  printPlace(key: string): string
  /** Remark on the age of the records; '' = they are current. For the ready page. */
  note(): string
  close(): void
  /** The DNSHealthCheckProbes of the source, for this server's probes; missing = another program probes. */
  readonly probed?: FollowedSource & ProbeSource
  /** Returns where files have a record; missing = the records are not in files. */
  placeOf?(key: string): HeldPlace | undefined
  /** Missing = no cluster is followed. */
  readonly cluster?: FollowedCluster
}

/** The cluster that a source follows. */
export interface FollowedCluster {
  readonly watches: readonly ListWatch[]
  /** Age of the oldest watch of records in milliseconds; 0 while all watches are connected. */
  readonly ageMs: number
  /** Drains that the cluster has. */
  readonly drainFeeds: readonly DrainFeed[]
}
