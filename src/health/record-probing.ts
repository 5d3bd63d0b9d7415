import type { Clock } from '../base/clock.ts'
import { StateFile } from '../base/persist/state-file.ts'
import type { Random } from '../base/random.ts'
import { guarding } from '../base/telemetry/guard.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { ProblemGroup } from '../base/telemetry/problems.ts'
import type { Timers } from '../base/timers.ts'
import { type DnsRecord, type HealthProbe, recordKey } from '../records/dns-record.ts'
import type { ProbeAt } from '../records/health-check.ts'
import { isChecked, unpackRecord } from '../records/pack.ts'
import type {
  ProbeSource,
  RecordChange,
  RecordSource,
  StoredRecord,
} from '../records/record-source.ts'
import type { AddressHealth } from './address-health.ts'
import { Findings } from './findings.ts'
import {
  OBSERVED_ADDRESSES_MAX,
  ObservedAddresses,
  type PeerObserver,
} from './observed-addresses.ts'
import { findChange, logChange } from './probes/print-change.ts'
import type { Probe, Prober } from './probes/probe.ts'
import { type ProbeResult, ProbeRunner } from './probes/probe-runner.ts'
import type { ProbeState } from './probes/probe-state.ts'
import { PROBE_STATES, printStates } from './probes/state-text.ts'
import {
  findLeaves,
  type Leaf,
  placeOfResource,
  probeOfLeaf,
  probeOfResource,
} from './record-probes.ts'

/** Results within this time are published as one change. */
const GATHER_MS = 50
/** Maximum number of changes per batch that are logged one by one. */
const LOGGED_MAX = 20

/** Returns what of a record is probed with its health check. */
export type ProbedLeaves = (
  record: StoredRecord,
  content: Pick<DnsRecord, 'endpoints'>,
) => readonly Leaf[]

export interface RecordProbingOptions {
  readonly records: Pick<RecordSource, 'records' | 'find' | 'subscribe'>
  readonly source: ProbeSource
  /** The table that receives the results. */
  readonly health: AddressHealth
  readonly probe: Prober
  /** Missing = all that the health check covers. */
  readonly leavesOf?: ProbedLeaves | undefined
  /** Maximum number of probes with the health checks of records; missing = no limit. */
  readonly probesMax?: number | undefined
  /** Absolute path of the file that stores states; '' = none. */
  readonly file: string
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** Called with every attempt, for metrics. */
  readonly onResult: (result: ProbeResult) => void
  /** States that another probing in this process has. A state in the file takes precedence. */
  readonly known: Iterable<readonly [id: string, state: ProbeState]>
}

/**
 * Runs the probes that the records and DNSHealthCheckProbes of one source request, and writes
 * their results to the table of address health:
 *
 *     records with a health check ─┐
 *     probes without a status     ─┴─▶ runner ─▶ results ─▶ table
 *
 * A DNSHealthCheckProbe takes precedence over the record's own check of the same address, whether
 * or not it has a status.
 */
export class RecordProbing {
  readonly #options: RecordProbingOptions
  readonly #runner: ProbeRunner
  /** The results up and down as written to the table. */
  readonly #findings: Findings
  readonly #file: StateFile<ReadonlyMap<string, ProbeState>> | undefined
  /** States from an earlier process whose probes have not been added yet. */
  readonly #known: Map<string, ProbeState>
  /** Ids of each record's probes, by record key; and the record key of each probe, by probe id. */
  readonly #idsByRecord = new Map<string, Set<string>>()
  readonly #recordById = new Map<string, string>()
  /** Where the DNSHealthCheckProbes probe, by probe id. */
  readonly #placeById = new Map<string, ProbeAt>()
  /** DNSHealthCheckProbes by the key of their record. */
  #resources = new Map<string, HealthProbe[]>()
  /** Ids of probes whose health changed since the last publication. */
  readonly #changed = new Set<string>()
  /** Addresses of peers to probe, and ids of the probes of such addresses. */
  readonly #observedAddresses = new ObservedAddresses()
  readonly #observedIds = new Set<string>()
  #isFull = false
  #changesLogged = 0
  #isClosed = false
  #cancelReport: (() => void) | undefined
  readonly #unsubscribe: readonly (() => void)[]

  constructor(options: RecordProbingOptions) {
    const { records, source, file: path, log, clock, timers } = options
    this.#options = options
    this.#findings = new Findings(options.health)
    this.#runner = new ProbeRunner({ ...options, onResult: (result) => this.#note(result) })
    const print = (): Iterable<string> => printStates(this.states())
    const parts = { path, kind: PROBE_STATES, log, clock, timers, print }
    this.#file = path === '' ? undefined : new StateFile(parts)
    this.#known = new Map([...options.known, ...(this.#file?.open() ?? [])])
    this.#readResources()
    for (const { key, packed } of records.records()) if (isChecked(packed)) this.#probeRecord(key)
    for (const key of this.#resources.keys()) this.#probeRecord(key)
    const guarded = guarding(log, 'Applying changed probes')
    this.#unsubscribe = [
      records.subscribe((changes) => this.#takeRecords(changes)),
      source.onProbes(() => void guarded(() => this.#takeResources())),
    ]
    options.health.publish()
  }

  /** Why the states are not stored. */
  get problems(): readonly ProblemGroup[] {
    return this.#file?.problems ?? []
  }

  /** The runner, for metrics. */
  get runner(): ProbeRunner {
    return this.#runner
  }

  /** `namespace/name` of the probe's record; '' = the probe has no record. */
  recordOf(id: string): string {
    return this.#recordById.get(id) ?? ''
  }

  /** Opens a user that requests probes of peers' addresses; at most 38 000 over all users. */
  openObserver(): PeerObserver {
    return this.#observedAddresses.open((recordKey) => {
      if (this.#isClosed) return
      this.#probeRecord(recordKey)
      this.#publishSoon()
    })
  }

  /**
   * Our own addresses that are down, each with its record and the reason, for the ready page.
   * Returns at most `countMax` texts.
   */
  reasons(countMax: number): { readonly downCount: number; readonly texts: readonly string[] } {
    const texts: string[] = []
    let downCount = 0
    for (const { probe, state } of this.#runner.states()) {
      if (state.health !== 'down' || this.#observedIds.has(probe.id)) continue
      if (++downCount > countMax) continue
      texts.push(`${probe.address} of ${this.recordOf(probe.id)} (${state.reason})`)
    }
    return { downCount, texts }
  }

  /** Addresses that are served because their last attempts could not be made, with the reason. */
  *unprobed(): Iterable<{ readonly probe: Probe; readonly key: string; readonly reason: string }> {
    for (const { probe, state } of this.#runner.states()) {
      const { health, skips = 0, reason } = state
      if (health === 'unknown' && skips > 0) yield { probe, key: this.recordOf(probe.id), reason }
    }
  }

  close(): void {
    this.#isClosed = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#cancelReport?.()
    this.#file?.close()
    this.#runner.close()
    this.#findings.clear()
    this.#options.health.publish()
  }

  /** The known states, by probe id. */
  *states(): Iterable<readonly [string, ProbeState]> {
    for (const { probe, state } of this.#runner.states()) yield [probe.id, state]
  }

  #takeRecords(changes: readonly RecordChange[]): void {
    for (const { before, after } of changes) {
      // Most records have no probes.
      const isConcerned = [before, after].some((record) => record && isChecked(record.packed))
      const key = (before ?? after)!.key
      if (!isConcerned && !this.#resources.has(key)) continue
      this.#probeRecord(key)
      this.#publishSoon()
    }
  }

  #takeResources(): void {
    const before = new Set(this.#resources.keys())
    this.#readResources()
    const keys = new Set([...before, ...this.#resources.keys()])
    for (const key of keys) this.#probeRecord(key)
    this.#options.health.publish()
  }

  #readResources(): void {
    this.#resources = new Map()
    for (const resource of this.#options.source.probes()) {
      const key = recordKey(resource.namespace, resource.recordName)
      const known = this.#resources.get(key)
      if (known === undefined) this.#resources.set(key, [resource])
      else known.push(resource)
    }
  }

  /** Updates the probes of a record. */
  #probeRecord(key: string): void {
    for (const id of this.#idsByRecord.get(key) ?? []) this.#placeById.delete(id)
    const wanted = this.#wantedFor(key)
    const before = this.#idsByRecord.get(key) ?? new Set<string>()
    for (const id of before) {
      if (wanted.has(id)) continue
      this.#runner.remove(id)
      this.#recordById.delete(id)
      this.#observedIds.delete(id)
      this.#writeFinding(id)
      this.#file?.noteChange()
    }
    for (const [id, probe] of wanted) {
      this.#recordById.set(id, key)
      this.#runner.put(probe, this.#known.get(id))
      this.#known.delete(id)
      this.#writeFinding(id)
    }
    if (wanted.size === 0) this.#idsByRecord.delete(key)
    else this.#idsByRecord.set(key, new Set(wanted.keys()))
  }

  /** Writes the result of a probe to the table; none if the probe was removed. */
  #writeFinding(id: string): void {
    const recordKey = this.#recordById.get(id)
    const health = this.#runner.stateOf(id)?.health ?? 'unknown'
    const isFound = recordKey !== undefined && health !== 'unknown'
    const address = this.#runner.probeOf(id)?.address ?? ''
    const isObserved = this.#observedIds.has(id)
    const sinceMs = this.#runner.stateOf(id)?.sinceMs ?? 0
    const observedSeconds = isObserved ? Math.floor(sinceMs / 1000) : undefined
    const probeAt = this.#placeById.get(id)
    const reason = health === 'down' && !isObserved ? () => this.#reasonOf(id) : undefined
    const about = { address, observedSeconds, probeAt, reason }
    this.#findings.set(id, isFound ? { recordKey, health, ...about } : undefined)
  }

  /**
   * Why a probe found its address down: `3 checks in a row failed, last: status 503`. Names the test address, if the
   * probe has one.
   */
  #reasonOf(id: string): string {
    const state = this.#runner.stateOf(id)
    const probe = this.#runner.probeOf(id)
    if (state?.health !== 'down' || probe === undefined) return ''
    if (state.failures === 0) return 'a check succeeded, but not enough in a row'
    const checks = state.failures === 1 ? '1 check' : `${state.failures} checks`
    const place = probe.testAddress === undefined ? '' : ` of ${probe.testAddress}`
    return `${checks}${place} in a row failed, last: ${state.reason}`
  }

  #wantedFor(key: string): ReadonlyMap<string, Probe> {
    const wanted = new Map<string, Probe>()
    const record = this.#options.records.find(key)
    if (record === undefined) return wanted
    const decided = new Set<string>()
    const content = isChecked(record.packed) ? unpackRecord(record.packed) : undefined
    for (const resource of this.#resources.get(key) ?? []) {
      decided.add(resource.address)
      if (resource.check === undefined) continue
      const id = this.#want(probeOfResource(resource, resource.check), key, wanted)
      const place = placeOfResource(resource, resource.check, content?.healthCheck)
      if (place !== undefined) this.#placeById.set(id, place)
    }
    if (content === undefined) return wanted
    const [namespace = '', name = ''] = key.split('/')
    const place = { namespace, name }
    for (const leaf of this.#leavesFor(record, content, decided, wanted.size)) {
      this.#want(probeOfLeaf(place, content, content.healthCheck!, leaf), key, wanted)
      decided.add(leaf.address)
    }
    for (const id of wanted.keys()) this.#observedIds.delete(id)
    for (const leaf of this.#observedAddresses.of(key)) {
      if (decided.has(leaf.address)) continue
      const probe = probeOfLeaf(place, content, content.healthCheck!, leaf)
      if (!this.#hasRoomToObserve(probe.id)) break
      this.#observedIds.add(this.#want(probe, key, wanted))
    }
    return wanted
  }

  /** Returns what is probed with the health check of a record, beside `decided`: `count` addresses. */
  #leavesFor(
    record: StoredRecord,
    content: Pick<DnsRecord, 'endpoints'>,
    decided: ReadonlySet<string>,
    count: number,
  ): readonly Leaf[] {
    const { leavesOf, probesMax = Number.POSITIVE_INFINITY } = this.#options
    const covered = leavesOf?.(record, content) ?? findLeaves(content.endpoints)
    const leaves = covered.filter(({ address }) => !decided.has(address))
    const before = this.#idsByRecord.get(record.key)?.size ?? 0
    const room = Math.max(0, probesMax - (this.#recordById.size - before + count))
    if (leaves.length > room) this.#warnFull(`probe: more than ${probesMax} addresses`)
    return leaves.slice(0, room)
  }

  #hasRoomToObserve(id: string): boolean {
    if (this.#observedIds.has(id) || this.#observedIds.size < OBSERVED_ADDRESSES_MAX) return true
    this.#warnFull(`probe-peers: more than ${OBSERVED_ADDRESSES_MAX} addresses`)
    return false
  }

  #warnFull(text: string): void {
    const { log } = this.#options
    if (!this.#isFull) log.warning(`${text}; the rest is not probed`, 'probes-limit')
    this.#isFull = true
  }

  /**
   * Adds a probe unless another record has its name. Record `a` with leaf `b-c` and record `a-b`
   * with leaf `c` have the same probe name: the first keeps it. Returns the id.
   */
  #want(probe: Probe, key: string, wanted: Map<string, Probe>): string {
    const owner = this.#recordById.get(probe.id)
    const isFree = (owner === undefined || owner === key) && !wanted.has(probe.id)
    const id = isFree ? probe.id : `${probe.id}@${key}@${probe.address}`
    wanted.set(id, { ...probe, id })
    return id
  }

  #note(result: ProbeResult): void {
    this.#options.onResult(result)
    const { probe, before, after } = result
    // Also if the health stays unknown: an address that is not probed is in no other place.
    this.#log(result)
    if (before.health === after.health && before.sinceMs === after.sinceMs) return
    this.#file?.noteChange()
    this.#changed.add(probe.id)
    this.#publishSoon()
  }

  #publishSoon(): void {
    this.#cancelReport ??= this.#options.timers.after(GATHER_MS, () => this.#publish())
  }

  #publish(): void {
    const { log } = this.#options
    this.#cancelReport = undefined
    for (const id of this.#changed) this.#writeFinding(id)
    this.#changed.clear()
    if (this.#changesLogged > LOGGED_MAX) {
      log.warning(
        `and ${this.#changesLogged - LOGGED_MAX} more addresses went up or down`,
        'address-changes-more',
      )
    }
    this.#changesLogged = 0
    void guarding(log, 'Applying probe results')(() => this.#options.health.publish())
  }

  #log({ probe, before, after }: ProbeResult): void {
    const { log } = this.#options
    if (findChange(before, after) === undefined) return
    // Ends the count of lines.
    this.#publishSoon()
    if (this.#changesLogged++ >= LOGGED_MAX) return
    const of = this.#observedIds.has(probe.id) ? 'of a peer, for' : 'of'
    logChange(log, `${probe.address} ${of} ${this.recordOf(probe.id)}`, after)
  }
}
