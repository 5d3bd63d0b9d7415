import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import { sameList } from '../dnsrecord/found-addresses.ts'
import { unpackPlace } from '../dnsrecord/pack.ts'
import { SLOW_START_UNITS, type SlowStartUnits } from '../dnsrecord/slow-start-units.ts'
import { OverlaidSource } from '../sources/overlaid-source.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../sources/source.ts'
import { guarding } from '../telemetry/guard.ts'
import type { Logger } from '../telemetry/log.ts'
import { compareServed, readDown, readServed } from './served-addresses.ts'

/** Number of equal steps from the smallest to the full weight. */
export const SLOW_START_STEPS = SLOW_START_UNITS / 2
/**
 * Time for which a new record may still be incomplete, in milliseconds. Addresses that sites or
 * peers add during this time have no slow start. Otherwise the site that is reported first would
 * receive all clients.
 */
export const SETTLE_MS = 30_000
/** Maximum number of milliseconds that a timer may fire early. */
const SLACK_MS = 20
const NOTHING: SinceMs = new Map()

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
  /** Time from the recovery to the full weight. */
  readonly durationMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Slow starts of a previous instance, for example before a reload. */
  readonly known?: Iterable<SlowStartRecord>
  /** Slow starts when an earlier process ended. Their records may arrive later, for example those of peers. */
  readonly kept?: Iterable<SlowStartRecord>
  /** Called after each change of the slow starts, and after each step. */
  readonly onChange?: () => void
}

/** When each address in slow start recovered, in monotonic milliseconds. */
type SinceMs = ReadonlyMap<string, number>

/** Addresses of one record that are in slow start. */
export interface SlowStartRecord {
  readonly key: string
  /** Key of the record's root host. */
  readonly hostKey: string
  readonly sinceMs: SinceMs
}

/**
 * Increases the weight of recovered addresses in steps. Slow start applies to addresses that were
 * down, and to addresses added beside others that are already served. The latter also covers an
 * address that another system removed from its record and added again.
 *
 * All addresses take their steps together, SLOW_START_STEPS in each `durationMs`. Each step is
 * therefore one change of the records, however many addresses are in slow start. An address that
 * recovers between two steps is up to one step late, never early.
 */
export class SlowStart {
  /** The records of the source, with the addresses in slow start. */
  readonly records: OverlaidSource
  readonly #options: SlowStartOptions
  /** Addresses in slow start, by record key. */
  readonly #slowStarted = new Map<string, SlowStartRecord>()
  /** When each new record is regarded as complete, soonest first; except records of the start. */
  readonly #settlesMs = new Map<string, number>()
  readonly #startSettlesMs: number
  /**
   * Slow starts of an earlier process, by host, kept until their records have had time to arrive.
   */
  #kept = new Map<string, SinceMs>()
  #stopStepping: (() => void) | undefined
  readonly #unsubscribe: () => void

  constructor(options: SlowStartOptions) {
    this.#options = options
    this.#startSettlesMs = options.clock.monotonic() + SETTLE_MS
    for (const { hostKey, sinceMs } of options.kept ?? []) {
      this.#kept.set(hostKey, new Map([...(this.#kept.get(hostKey) ?? NOTHING), ...sinceMs]))
    }
    if (this.#kept.size > 0) for (const record of options.source.records()) this.#resume(record)
    this.#recall([...(options.known ?? [])])
    // This listener is subscribed before the overlay's, because the overlay reads what it updates.
    this.#unsubscribe = options.source.subscribe((changes) => this.#take(changes))
    this.records = new OverlaidSource(options.source, ({ key, down }) => {
      const slowStart = this.#slowStartOf(key)
      return slowStart.length === 0 ? undefined : { down, slowStart: slowStart }
    })
    this.#keepStepping()
  }

  /** Number of addresses in slow start. */
  get count(): number {
    let count = 0
    for (const { sinceMs } of this.#slowStarted.values()) count += sinceMs.size
    return count
  }

  close(): void {
    this.#unsubscribe()
    this.#stopStepping?.()
    this.records.close()
  }

  /** The current slow starts, for `known`. */
  slowStarted(): Iterable<SlowStartRecord> {
    return this.#slowStarted.values()
  }

  #recall(known: readonly SlowStartRecord[]): void {
    const { source } = this.#options
    const orphans: SlowStartRecord[] = []
    for (const slowStarted of known) {
      const record = source.find(slowStarted.key)
      if (record === undefined) orphans.push(slowStarted)
      else this.#keep(record, slowStarted.sinceMs)
    }
    if (orphans.length > 0) this.#adopt(orphans, source.records())
  }

  #take(changes: readonly RecordChange[]): void {
    const nowMs = this.#options.clock.monotonic()
    const wasInSlowStart = this.#slowStarted.size > 0
    for (const [key, settlesMs] of this.#settlesMs) {
      if (settlesMs > nowMs) break
      this.#settlesMs.delete(key)
    }
    const orphans: SlowStartRecord[] = []
    const added: StoredRecord[] = []
    for (const { before, after } of changes) {
      if (after === undefined) {
        const slowStarted = this.#forget(before!.key)
        if (slowStarted !== undefined) orphans.push(slowStarted)
      } else if (before === undefined) {
        this.#settlesMs.set(after.key, nowMs + SETTLE_MS)
        added.push(after)
      } else this.#takeChange(before, after, nowMs)
    }
    if (orphans.length > 0) this.#adopt(orphans, added)
    if (nowMs >= this.#startSettlesMs) this.#kept.clear()
    if (this.#kept.size > 0) for (const { after } of changes) if (after) this.#resume(after)
    if (wasInSlowStart || this.#slowStarted.size > 0) this.#options.onChange?.()
    this.#keepStepping()
  }

  /** Continues slow starts from before a restart; those that began since then are not changed. */
  #resume(record: StoredRecord): void {
    const kept = this.#kept.get(hostKeyOf(record))
    if (kept === undefined) return
    const known = this.#slowStarted.get(record.key)?.sinceMs ?? NOTHING
    this.#keep(record, new Map([...kept].filter(([address]) => !known.has(address))))
  }

  #forget(key: string): SlowStartRecord | undefined {
    const slowStarted = this.#slowStarted.get(key)
    this.#slowStarted.delete(key)
    this.#settlesMs.delete(key)
    return slowStarted
  }

  /**
   * Moves slow starts of removed records to the records that now have the same hosts. A host that
   * gets its first peer, or loses its last one, changes to another record.
   */
  #adopt(orphans: readonly SlowStartRecord[], records: Iterable<StoredRecord>): void {
    const byHost = new Map<string, SinceMs>()
    for (const { hostKey, sinceMs } of orphans) {
      byHost.set(hostKey, new Map([...(byHost.get(hostKey) ?? NOTHING), ...sinceMs]))
    }
    for (const record of records) {
      const sinceMs = byHost.get(hostKeyOf(record))
      if (sinceMs !== undefined) this.#keep(record, sinceMs)
    }
  }

  /** Continues the slow start of those addresses that the record serves. */
  #keep(record: StoredRecord, sinceMs: SinceMs): void {
    const served = readServed(record)
    const kept = [...sinceMs].filter(([address]) => served.has(address))
    this.#set(
      record,
      new Map([...(this.#slowStarted.get(record.key)?.sinceMs ?? NOTHING), ...kept]),
    )
  }

  #set(record: StoredRecord, sinceMs: SinceMs): void {
    const { key } = record
    if (sinceMs.size === 0) this.#slowStarted.delete(key)
    else this.#slowStarted.set(key, { key, hostKey: hostKeyOf(record), sinceMs })
  }

  #takeChange(before: StoredRecord, after: StoredRecord, nowMs: number): void {
    const { key, packed, down } = after
    if (packed === before.packed && sameList(down, before.down)) return
    const isSettled = nowMs >= this.#startSettlesMs && !this.#settlesMs.has(key)
    const { were, are, isWeighted } = compareServed(before, after)
    const wereDown = readDown(before)
    const known = this.#slowStarted.get(key)?.sinceMs ?? NOTHING
    const sinceMs = new Map([...known].filter(([address]) => are.has(address)))
    const isBeside = isSettled && isWeighted && [...are].some((address) => were.has(address))
    for (const address of are) {
      const isNew = isBeside && !were.has(address)
      if (isNew || wereDown.has(address)) sinceMs.set(address, nowMs)
    }
    this.#set(after, sinceMs)
  }

  #keepStepping(): void {
    if (this.#slowStarted.size === 0) return
    const { durationMs, timers, log } = this.#options
    const guarded = guarding(log, 'Raising weights')
    this.#stopStepping ??= timers.every(
      durationMs / SLOW_START_STEPS,
      () => void guarded(() => this.#step()),
    )
  }

  #slowStartOf(key: string): readonly SlowStartUnits[] {
    const slowStarted = this.#slowStarted.get(key)
    if (slowStarted === undefined) return []
    const { clock, durationMs } = this.#options
    const nowMs = clock.monotonic() + SLACK_MS
    return [...slowStarted.sinceMs]
      .map(([address, sinceMs]) => ({
        address,
        units: slowStartUnits(nowMs - sinceMs, durationMs),
      }))
      .filter(({ units }) => units < SLOW_START_UNITS)
      .sort((a, b) => (a.address < b.address ? -1 : 1))
  }

  #step(): void {
    const keys = [...this.#slowStarted.keys()]
    for (const key of keys) {
      const slowStarted = this.#slowStarted.get(key)!
      const slowStart = new Set(this.#slowStartOf(key).map(({ address }) => address))
      const sinceMs = new Map(
        [...slowStarted.sinceMs].filter(([address]) => slowStart.has(address)),
      )
      if (sinceMs.size === 0) this.#slowStarted.delete(key)
      else this.#slowStarted.set(key, { ...slowStarted, sinceMs })
    }
    if (this.#slowStarted.size === 0) {
      this.#stopStepping?.()
      this.#stopStepping = undefined
    }
    this.records.refresh(keys)
    this.#options.onChange?.()
  }
}

function hostKeyOf({ packed }: StoredRecord): string {
  return unpackPlace(packed).rootHostKey
}
