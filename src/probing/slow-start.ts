import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import { sameList } from '../record/found-addresses.ts'
import { OverlaidSource } from '../record/overlaid-source.ts'
import { unpackPlace } from '../record/pack.ts'
import { SLOW_START_UNITS, type SlowStartUnits } from '../record/slow-start.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../record/source.ts'
import { guarding } from '../telemetry/guard.ts'
import type { Logger } from '../telemetry/log.ts'
import { compareServed, readDown, readServed } from './served-addresses.ts'

/** From small to full weight in so many steps, each as wide as the next. */
export const SLOW_START_STEPS = SLOW_START_UNITS / 2
/**
 * A record that was first seen less than that ago is still being put together: what one site or peer after
 * the other adds to it does not rise, or whoever is told of first would have it all.
 */
export const SETTLE_MS = 30_000
/** A timer may be that early. */
const SLACK_MS = 20
const NOTHING: SinceMs = new Map()

/**
 * How much of its weight an address gets that came back `elapsedMs` ago, in RISE_UNITS: the middle of each
 * step, so that it is never further than half a step from a straight line. RISE_UNITS = all of it.
 */
export function slowStartUnits(elapsedMs: number, durationMs: number): number {
  if (elapsedMs >= durationMs) return SLOW_START_UNITS
  const step = Math.floor((Math.max(0, elapsedMs) / durationMs) * SLOW_START_STEPS)
  return 2 * step + 1
}

export interface SlowStartOptions {
  readonly source: RecordSource
  /** Until an address has its full weight again. */
  readonly durationMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** What another one, as before a reload, knows to rise. */
  readonly known?: Iterable<SlowStartRecord>
  /** Slow starts when an earlier process ended. Their records may arrive later, for example those of peers. */
  readonly kept?: Iterable<SlowStartRecord>
  /** Called after each change of the slow starts, and after each step. */
  readonly onChange?: () => void
}

/** When each address that rises came back; monotonic milliseconds. */
type SinceMs = ReadonlyMap<string, number>

/** What rises of one record. */
export interface SlowStartRecord {
  readonly key: string
  /** Of its root host. */
  readonly hostKey: string
  readonly sinceMs: SinceMs
}

/**
 * Has addresses get their weight step by step: those that were down, and those that come beside others that
 * are served already, as what comes back does wherever somebody else takes it out of its record. All that
 * rise take their steps together, RISE_STEPS of them in each `durationMs`, so that each is one change of the
 * records however many rise: one that came back between two steps is up to one step late, never early.
 */
export class SlowStart {
  /** The records of the source, with what rises. */
  readonly records: OverlaidSource
  readonly #options: SlowStartOptions
  /** What rises, by record key. */
  readonly #slowStarted = new Map<string, SlowStartRecord>()
  /** When records will be whole that were first seen a moment ago, soonest first; those of the start. */
  readonly #settlesMs = new Map<string, number>()
  readonly #startSettlesMs: number
  /** By host: slow starts of an earlier process, until their records have had time to arrive. */
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
    // Before the overlay: what it looks up must be up to date.
    this.#unsubscribe = options.source.subscribe((changes) => this.#take(changes))
    this.records = new OverlaidSource(options.source, ({ key, down }) => {
      const slowStart = this.#slowStartOf(key)
      return slowStart.length === 0 ? undefined : { down, slowStart: slowStart }
    })
    this.#keepStepping()
  }

  /** Addresses on their way. */
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

  /** What rises, for `known`. */
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

  /** Continues slow starts of before a restart; those that began since then are not changed. */
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
   * Has what rose in records that are gone go on in those that have their hosts instead: a host that gets its
   * first peer, or loses its last one, has another record from then on.
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

  /** Has those of these addresses rise that the record serves. */
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
