import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { ApiError } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { NotLeadingError } from '../cluster/api-writer.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import type { KeyedMutex } from '../delegation/keyed-mutex.ts'
import { planDepartures } from '../delegation/plan-finalize.ts'
import { readOwners } from '../delegation/whole.ts'
import type { Writer } from '../plan/write.ts'
import { roleOf } from '../record/record-view.ts'

/** Longest time between two checks, in milliseconds. */
const CHECK_MAX_MS = 60_000
/** Checks within `leaveMs`. */
const CHECKS = 4

interface OrphanCollectorParts {
  readonly view: ClusterView
  /** The records of this cluster. */
  readonly records: Pick<Informer, 'subscribe'>
  readonly writer: Writer
  readonly mutex: KeyedMutex
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** How long the endpoints of an unknown cluster are kept. */
  readonly leaveMs: number
  /** Short ids of the known clusters; undefined = the list is incomplete just now. */
  readonly known: () => ReadonlySet<string> | undefined
}

/**
 * Removes the endpoints of clusters that have left from authoritative records. A cluster has left
 * if it has had no Secret for `leaveMs`; no other component removes its endpoints. The time starts
 * anew with each leader session, and while the list of known clusters is incomplete.
 */
export class OrphanCollector {
  readonly #parts: OrphanCollectorParts
  readonly #authoritative = new Set<string>()
  /** Monotonic time since which each of them has been unknown. */
  readonly #sinceMs = new Map<string, number>()
  #stops: (() => void)[] = []
  #sweeping: Promise<void> = Promise.resolve()
  #isSweeping = false

  constructor(parts: OrphanCollectorParts) {
    this.#parts = parts
  }

  start(): void {
    const { records, timers, leaveMs } = this.#parts
    this.#stops = [
      records.subscribe({
        onAdd: (key, record) => {
          if (roleOf(record) === 'authoritative') this.#authoritative.add(key)
        },
        onUpdate: (key, record) => {
          if (roleOf(record) === 'authoritative') this.#authoritative.add(key)
          else this.#authoritative.delete(key)
        },
        onDelete: (key) => this.#authoritative.delete(key),
      }),
      timers.every(Math.min(Math.ceil(leaveMs / CHECKS), CHECK_MAX_MS), () => this.#check()),
    ]
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) stop()
    await this.#sweeping
  }

  #check(): void {
    if (this.#isSweeping) return
    const { clock, leaveMs } = this.#parts
    const unknown = this.#findUnknown()
    for (const cluster of this.#sinceMs.keys()) {
      if (!unknown.has(cluster)) this.#sinceMs.delete(cluster)
    }
    const nowMs = clock.monotonic()
    const left = new Set<string>()
    for (const cluster of unknown) {
      const sinceMs = this.#sinceMs.get(cluster) ?? nowMs
      this.#sinceMs.set(cluster, sinceMs)
      if (nowMs - sinceMs >= leaveMs) left.add(cluster)
    }
    if (left.size > 0) this.#sweeping = this.#sweep(left)
  }

  /** Clusters that own endpoints and have no Secret; empty while the list of Secrets is incomplete. */
  #findUnknown(): ReadonlySet<string> {
    const known = this.#parts.known()
    const unknown = new Set<string>()
    if (known === undefined) return unknown
    for (const key of this.#authoritative) {
      for (const cluster of this.#clustersOf(key)) {
        if (cluster !== '' && !known.has(cluster)) unknown.add(cluster)
      }
    }
    return unknown
  }

  /** Never rejects: the next check finds what has failed. */
  async #sweep(left: ReadonlySet<string>): Promise<void> {
    const { log, mutex } = this.#parts
    this.#isSweeping = true
    try {
      for (const key of this.#authoritative)
        await mutex.take(key, () => this.#removeOwnedEndpoints(key, left))
    } catch (error) {
      const isKnown = error instanceof ApiError || error instanceof NotLeadingError
      const cause = error instanceof Error ? error.message : String(error)
      const text = `removing endpoints of clusters without a Secret failed, retrying: ${cause}`
      if (isKnown) log.debug(text, 'orphan-sweep-failed')
      else log.error(text, 'orphan-sweep-failed')
    }
    this.#isSweeping = false
  }

  async #removeOwnedEndpoints(key: string, left: ReadonlySet<string>): Promise<void> {
    const { view, writer, log, clock } = this.#parts
    const record = view.record(key)
    if (record?.role !== 'authoritative') return
    const owners = readOwners(record).filter(({ cluster }) => left.has(cluster))
    if (owners.length === 0) return
    const clusters = [...new Set(owners.map(({ cluster }) => cluster))].join(', ')
    log.info(
      `dnsrecords ${key}: removing endpoints of cluster ${clusters}: it has no Secret`,
      'orphan-endpoints-removed',
    )
    const ids = owners.map(({ id }) => id)
    for (const write of planDepartures(record, ids, clock.now())) await writer.write(write)
  }

  /** Short ids of the clusters that own endpoints of the record `key`. */
  #clustersOf(key: string): Iterable<string> {
    const record = this.#parts.view.record(key)
    return record === undefined ? [] : readOwners(record).map(({ cluster }) => cluster)
  }
}
