import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import { sameList } from '../record/found-addresses.ts'
import { OverlaidSource } from '../record/overlaid-source.ts'
import { RISE_UNITS, type Rising } from '../record/rising.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../record/source.ts'
import { containing } from '../telemetry/contain.ts'
import type { Logger } from '../telemetry/log.ts'
import { compareServed, readDown, readServed } from './served-addresses.ts'

/** From small to full weight in so many steps, each as wide as the next. */
export const RISE_STEPS = RISE_UNITS / 2
/**
 * A record that was first seen less than that ago is still being put together: what one site or peer after
 * the other adds to it does not rise, or whoever is told of first would have it all.
 */
export const SETTLE_MS = 30_000
/** A timer may be that early. */
const SLACK_MS = 20

/**
 * How much of its weight an address gets that came back `elapsedMs` ago, in RISE_UNITS: the middle of each
 * step, so that it is never further than half a step from a straight line. RISE_UNITS = all of it.
 */
export function risenUnits(elapsedMs: number, durationMs: number): number {
  if (elapsedMs >= durationMs) return RISE_UNITS
  const step = Math.floor((Math.max(0, elapsedMs) / durationMs) * RISE_STEPS)
  return 2 * step + 1
}

export interface RampUpOptions {
  readonly source: RecordSource
  /** Until an address has its full weight again. */
  readonly durationMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** What another one, as before a reload, knows to rise. */
  readonly known?: Iterable<RisenRecord>
}

/** A record key, and when what rises of it came back: monotonic milliseconds by address. */
export type RisenRecord = readonly [key: string, addresses: ReadonlyMap<string, number>]

/**
 * Has addresses get their weight step by step: those that were down, and those that come beside others that
 * are served already, as what comes back does wherever somebody else takes it out of its record. All that
 * rise take their steps together, RISE_STEPS of them in each `durationMs`, so that each is one change of the
 * records however many rise: one that came back between two steps is up to one step late, never early.
 */
export class RampUp {
  /** The records of the source, with what rises. */
  readonly records: OverlaidSource
  readonly #options: RampUpOptions
  /** When what rises came back, by record key and address; monotonic milliseconds. */
  readonly #risen = new Map<string, Map<string, number>>()
  /** When records will be whole that were first seen a moment ago, soonest first; those of the start. */
  readonly #settlesMs = new Map<string, number>()
  readonly #startSettlesMs: number
  #stopStepping: (() => void) | undefined
  readonly #unsubscribe: () => void

  constructor(options: RampUpOptions) {
    this.#options = options
    this.#startSettlesMs = options.clock.monotonic() + SETTLE_MS
    for (const risen of options.known ?? []) this.#recall(risen)
    // Before the overlay: what it looks up must be up to date.
    this.#unsubscribe = options.source.subscribe((changes) => this.#take(changes))
    this.records = new OverlaidSource(options.source, ({ key, down }) => {
      const rising = this.#risingOf(key)
      return rising.length === 0 ? undefined : { down, rising }
    })
    this.#keepStepping()
  }

  /** Addresses on their way. */
  get count(): number {
    let count = 0
    for (const addresses of this.#risen.values()) count += addresses.size
    return count
  }

  close(): void {
    this.#unsubscribe()
    this.#stopStepping?.()
    this.records.close()
  }

  /** What rises, for `known`. */
  risen(): Iterable<RisenRecord> {
    return this.#risen
  }

  #recall([key, known]: RisenRecord): void {
    const record = this.#options.source.find(key)
    if (record === undefined) return
    const served = readServed(record)
    const risen = [...known].filter(([address]) => served.has(address))
    if (risen.length > 0) this.#risen.set(key, new Map(risen))
  }

  #take(changes: readonly RecordChange[]): void {
    const nowMs = this.#options.clock.monotonic()
    for (const [key, settlesMs] of this.#settlesMs) {
      if (settlesMs > nowMs) break
      this.#settlesMs.delete(key)
    }
    for (const { before, after } of changes) {
      if (after === undefined) this.#forget(before!.key)
      else if (before === undefined) this.#settlesMs.set(after.key, nowMs + SETTLE_MS)
      else this.#takeChange(before, after, nowMs)
    }
    this.#keepStepping()
  }

  #forget(key: string): void {
    this.#risen.delete(key)
    this.#settlesMs.delete(key)
  }

  #takeChange(before: StoredRecord, after: StoredRecord, nowMs: number): void {
    const { key, packed, down } = after
    if (packed === before.packed && sameList(down, before.down)) return
    const isSettled = nowMs >= this.#startSettlesMs && !this.#settlesMs.has(key)
    const { were, are, isWeighted } = compareServed(before, after)
    const wereDown = readDown(before)
    const risen = this.#risen.get(key) ?? new Map<string, number>()
    for (const address of risen.keys()) if (!are.has(address)) risen.delete(address)
    const isBeside = isSettled && isWeighted && [...are].some((address) => were.has(address))
    for (const address of are) {
      const isNew = isBeside && !were.has(address)
      if (isNew || wereDown.has(address)) risen.set(address, nowMs)
    }
    if (risen.size > 0) this.#risen.set(key, risen)
    else this.#risen.delete(key)
  }

  #keepStepping(): void {
    if (this.#risen.size === 0) return
    const { durationMs, timers, log } = this.#options
    const contained = containing(log, 'Raising weights')
    this.#stopStepping ??= timers.every(
      durationMs / RISE_STEPS,
      () => void contained(() => this.#step()),
    )
  }

  #risingOf(key: string): readonly Rising[] {
    const risen = this.#risen.get(key)
    if (risen === undefined) return []
    const { clock, durationMs } = this.#options
    const nowMs = clock.monotonic() + SLACK_MS
    return [...risen]
      .map(([address, sinceMs]) => ({ address, units: risenUnits(nowMs - sinceMs, durationMs) }))
      .filter(({ units }) => units < RISE_UNITS)
      .sort((a, b) => (a.address < b.address ? -1 : 1))
  }

  #step(): void {
    const keys = [...this.#risen.keys()]
    for (const key of keys) {
      const risen = this.#risen.get(key)!
      const rising = new Set(this.#risingOf(key).map(({ address }) => address))
      for (const address of risen.keys()) if (!rising.has(address)) risen.delete(address)
      if (risen.size === 0) this.#risen.delete(key)
    }
    if (this.#risen.size === 0) {
      this.#stopStepping?.()
      this.#stopStepping = undefined
    }
    this.records.refresh(keys)
  }
}
