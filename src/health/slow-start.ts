import type { Clock } from '../base/clock.ts'
import { runInSlices } from '../base/slices.ts'
import { guarding } from '../base/telemetry/guard.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import { unpackPlace } from '../records/pack.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../records/record-source.ts'
import { isSameList, type RecordHealth, UNKNOWN_HEALTH } from './address-health.ts'
import { isSameDrains, NO_DRAINS, type RecordDrains } from './drain/drain.ts'
import type { HealthTable } from './health-table.ts'
import { compareServed } from './served-addresses.ts'
import { SETTLE_MS } from './slow-start-bounds.ts'
import { NO_SLOW_STARTS, SLOW_START_UNITS, type SlowStartUnits } from './slow-start-units.ts'
import type { ItemsFile } from './sources-file.ts'

/** Number of equal steps from the smallest to the full weight. */
const SLOW_START_STEPS = SLOW_START_UNITS / 2
/** Maximum number of milliseconds that a timer may fire early. */
const SLACK_MS = 20

/**
 * Returns the part of its weight that an address gets `elapsedMs` after its recovery, in units of
 * 1/SLOW_START_UNITS. The value is the middle of each step, so it differs from a straight line by
 * at most half a step. SLOW_START_UNITS = the full weight.
 */
export function slowStartUnits(elapsedMs: number, durationMs: number): number {
  if (elapsedMs >= durationMs) return SLOW_START_UNITS
  const step = Math.floor((Math.max(0, elapsedMs) / durationMs) * SLOW_START_STEPS)
  return 2 * step + 1
}

export interface SlowStartOptions {
  readonly source: RecordSource
  /** Receives the slow starts of the records. */
  readonly table: HealthTable
  /** Time from the recovery to the full weight. */
  readonly durationMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /**
   * Slow starts of a previous instance, for example before a reload; they are newer than those of the file. Their
   * records may arrive later, for example those of peers.
   */
  readonly known?: Iterable<HostSlowStart>
  /** Stores the slow starts over a restart. */
  readonly file?: ItemsFile<HostSlowStart> | undefined
  /** Called first when this is closed. */
  readonly onClose?: (() => void) | undefined
}

/** Addresses of one host that are in slow start. */
export interface HostSlowStart {
  /** Key of a record of the host; '' = none. */
  readonly key: string
  /** Key of the root host. */
  readonly hostKey: string
  /** When each address recovered, in monotonic milliseconds. */
  readonly sinceMs: ReadonlyMap<string, number>
}

/** The health and drains of a record when it was compared. */
interface Compared {
  readonly health: RecordHealth
  readonly drains: RecordDrains
}

const UNKNOWN: Compared = { health: UNKNOWN_HEALTH, drains: NO_DRAINS }

/** The slow starts of a host, and the keys of its records that they apply to. */
interface Host {
  readonly sinceMs: Map<string, number>
  readonly keys: Set<string>
}

/**
 * Increases the weight of recovered addresses in steps. Slow start applies to addresses that were
 * down or drained, and to addresses added beside others that are already served. The latter also covers an
 * address that another system removed from its record and added again.
 *
 * A slow start belongs to an address of a host, not of a record: a host that gets its first peer,
 * or loses its last one, changes to another record.
 *
 * All addresses take their steps together, SLOW_START_STEPS in each `durationMs`. Each step is
 * therefore one change, however many addresses are in slow start. An address that recovers between
 * two steps is up to one step late, never early.
 */
export class SlowStart {
  /** Resolves once the state of all records is known. */
  readonly ready: Promise<void>
  readonly #options: SlowStartOptions
  /** By key of the root host. */
  readonly #hosts = new Map<string, Host>()
  /** The state of each record when it was last compared; missing = UNKNOWN. */
  readonly #compared = new Map<string, Compared>()
  /** When each new record is regarded as complete, soonest first; except records of the start. */
  readonly #settlesMs = new Map<string, number>()
  readonly #startSettlesMs: number
  #stopStepping: (() => void) | undefined
  readonly #unsubscribe: readonly (() => void)[]

  constructor(options: SlowStartOptions) {
    const { source, table, clock, log, file, known = [] } = options
    this.#options = options
    this.#startSettlesMs = clock.monotonic() + SETTLE_MS
    for (const { hostKey, sinceMs } of [...(file?.known ?? []), ...known]) {
      const host = this.#hostOf(hostKey)
      for (const [address, ms] of sinceMs) host.sinceMs.set(address, ms)
    }
    if (this.#hosts.size > 0) for (const record of source.records()) this.#join(record)
    const guarded = guarding(log, 'Applying slow start')
    this.#unsubscribe = [
      source.subscribe((changes) => this.#apply(changes)),
      table.follow((keys) => void guarded(() => this.#takeFacts(keys))),
      file?.add(() => this.slowStarts()) ?? (() => {}),
    ]
    this.ready = runInSlices(this.#noteKnown(), clock)
    this.#keepStepping()
  }

  /** Number of addresses in slow start. */
  get count(): number {
    let count = 0
    for (const { sinceMs } of this.#hosts.values()) count += sinceMs.size
    return count
  }

  slowStartOf(record: StoredRecord): readonly SlowStartUnits[] {
    if (this.#hosts.size === 0) return NO_SLOW_STARTS
    const host = this.#hosts.get(hostKeyOf(record))
    return host?.keys.has(record.key) === true ? this.#unitsOf(host) : NO_SLOW_STARTS
  }

  close(): void {
    // Releases the file, which is written once more before these slow starts are removed from it.
    this.#options.onClose?.()
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#stopStepping?.()
  }

  /** The current slow starts, for `known`. */
  *slowStarts(): Iterable<HostSlowStart> {
    for (const [hostKey, { sinceMs, keys }] of this.#hosts) {
      const [key = ''] = keys
      yield { key, hostKey, sinceMs }
    }
  }

  #apply(changes: readonly RecordChange[]): void {
    const nowMs = this.#options.clock.monotonic()
    const wasInSlowStart = this.#hosts.size > 0
    for (const [key, settlesMs] of this.#settlesMs) {
      if (settlesMs > nowMs) break
      this.#settlesMs.delete(key)
    }
    for (const { before, after } of changes) {
      if (after === undefined) this.#forget(before!)
      else if (before === undefined) this.#add(after, nowMs)
      else this.#compare(before, after, nowMs)
    }
    this.#noteChange(wasInSlowStart)
  }

  #takeFacts(keys: ReadonlySet<string>): void {
    const { source, clock } = this.#options
    const nowMs = clock.monotonic()
    const wasInSlowStart = this.#hosts.size > 0
    for (const key of keys) {
      const record = source.find(key)
      if (record !== undefined) this.#compare(record, record, nowMs)
    }
    this.#noteChange(wasInSlowStart)
  }

  #noteChange(wasInSlowStart: boolean): void {
    if (wasInSlowStart || this.#hosts.size > 0) this.#options.file?.noteChange()
    this.#keepStepping()
  }

  #add(record: StoredRecord, nowMs: number): void {
    const { key } = record
    this.#settlesMs.set(key, nowMs + SETTLE_MS)
    this.#noteCompared(key, this.#stateOf(record))
    this.#join(record)
  }

  /** The slow starts of its host continue, because another record may have replaced this one. */
  #forget(record: StoredRecord): void {
    const { key } = record
    this.#settlesMs.delete(key)
    this.#compared.delete(key)
    if (this.#hosts.size > 0) this.#hosts.get(hostKeyOf(record))?.keys.delete(key)
  }

  /** Applies the slow starts of the host to a new record of the host. */
  #join(record: StoredRecord): void {
    if (this.#hosts.size > 0) this.#hosts.get(hostKeyOf(record))?.keys.add(record.key)
  }

  #stateOf(record: StoredRecord): Compared {
    const { health, drains } = this.#options.table.rowOf(record)
    return { health, drains }
  }

  /** Notes the state of the records at the start, except those that were compared meanwhile. */
  *#noteKnown(): Generator<void, void> {
    const { source, table } = this.#options
    for (const key of table.recordKeys()) {
      const record = this.#compared.has(key) ? undefined : source.find(key)
      if (record !== undefined) this.#noteCompared(key, this.#stateOf(record))
      yield
    }
  }

  #noteCompared(key: string, state: Compared): void {
    const { health, drains } = state
    if (health === UNKNOWN_HEALTH && drains === NO_DRAINS) this.#compared.delete(key)
    else this.#compared.set(key, state)
  }

  /** Starts and ends slow starts after a change of a record or of its health. */
  #compare(before: StoredRecord, after: StoredRecord, nowMs: number): void {
    const { key, packed } = after
    const was = this.#compared.get(key) ?? UNKNOWN
    const state = this.#stateOf(after)
    const { down } = state.health
    this.#noteCompared(key, state)
    const isSame = isSameList(down, was.health.down) && isSameDrains(state.drains, was.drains)
    if (packed === before.packed && isSame) return
    const isSettled = nowMs >= this.#startSettlesMs && !this.#settlesMs.has(key)
    const { were, are, wereOut, isWeighted } = compareServed(
      { packed: before.packed, down: was.health.down, drains: was.drains },
      { packed, down, drains: state.drains },
    )
    const isBeside = isSettled && isWeighted && [...are].some((address) => were.has(address))
    const started = [...are].filter((address) => {
      return wereOut.has(address) || (isBeside && !were.has(address))
    })
    const ended = [...were].filter((address) => !are.has(address))
    this.#change(after, started, ended, nowMs)
  }

  #change(
    record: StoredRecord,
    started: readonly string[],
    ended: readonly string[],
    nowMs: number,
  ): void {
    if (started.length === 0 && this.#hosts.size === 0) return
    const hostKey = hostKeyOf(record)
    const host = started.length === 0 ? this.#hosts.get(hostKey) : this.#hostOf(hostKey)
    if (host === undefined) return
    for (const address of ended) host.sinceMs.delete(address)
    for (const address of started) host.sinceMs.set(address, nowMs)
    if (started.length > 0) host.keys.add(record.key)
    if (host.sinceMs.size === 0) this.#hosts.delete(hostKey)
  }

  /** Returns the host, created if it is missing. */
  #hostOf(hostKey: string): Host {
    let host = this.#hosts.get(hostKey)
    if (host === undefined) {
      host = { sinceMs: new Map(), keys: new Set() }
      this.#hosts.set(hostKey, host)
    }
    return host
  }

  #keepStepping(): void {
    if (this.#hosts.size === 0) return
    const { durationMs, timers, log } = this.#options
    const guarded = guarding(log, 'Raising weights')
    this.#stopStepping ??= timers.every(
      durationMs / SLOW_START_STEPS,
      () => void guarded(() => this.#step()),
    )
  }

  #unitsOf({ sinceMs }: Host): readonly SlowStartUnits[] {
    const { clock, durationMs } = this.#options
    const nowMs = clock.monotonic() + SLACK_MS
    return [...sinceMs]
      .map(([address, ms]) => ({ address, units: slowStartUnits(nowMs - ms, durationMs) }))
      .filter(({ units }) => units < SLOW_START_UNITS)
      .sort((a, b) => (a.address < b.address ? -1 : 1))
  }

  #step(): void {
    const { clock, durationMs } = this.#options
    const endedMs = clock.monotonic() + SLACK_MS - durationMs
    const changed = new Set<string>()
    for (const [hostKey, { sinceMs, keys }] of this.#hosts) {
      for (const [address, ms] of sinceMs) if (ms <= endedMs) sinceMs.delete(address)
      if (sinceMs.size === 0) this.#hosts.delete(hostKey)
      for (const key of keys) changed.add(key)
    }
    if (this.#hosts.size === 0) {
      this.#stopStepping?.()
      this.#stopStepping = undefined
    }
    this.#options.table.announce(changed)
    this.#options.file?.noteChange()
  }
}

function hostKeyOf({ packed }: StoredRecord): string {
  return unpackPlace(packed).rootHostKey
}
