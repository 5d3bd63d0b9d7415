import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import { OverlaidSource } from '../record/overlaid-source.ts'
import { RISE_UNITS, type Rising } from '../record/rising.ts'
import type { RecordChange, RecordSource } from '../record/source.ts'
import { containing } from '../telemetry/contain.ts'
import type { Logger } from '../telemetry/log.ts'

/** From small to full weight in so many steps, each as wide as the next. */
export const RISE_STEPS = RISE_UNITS / 2
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
}

/**
 * Has addresses that were down get their weight back step by step. All that rise take their steps together,
 * RISE_STEPS of them in each `durationMs`, so that each is one change of the records however many rise: one that came back
 * between two steps is up to one step late, never early.
 */
export class RampUp {
  /** The records of the source, with what rises. */
  readonly records: OverlaidSource
  readonly #options: RampUpOptions
  /** When what rises came back, by record key and address; monotonic milliseconds. */
  readonly #risen = new Map<string, Map<string, number>>()
  #stopStepping: (() => void) | undefined
  readonly #unsubscribe: () => void

  constructor(options: RampUpOptions) {
    this.#options = options
    // Before the overlay: what it looks up must be up to date.
    this.#unsubscribe = options.source.subscribe((changes) => this.#take(changes))
    this.records = new OverlaidSource(options.source, ({ key, down }) => {
      const rising = this.#risingOf(key)
      return rising.length === 0 ? undefined : { down, rising }
    })
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

  #take(changes: readonly RecordChange[]): void {
    const { clock, durationMs, timers, log } = this.#options
    const nowMs = clock.monotonic()
    for (const { before, after } of changes) {
      const key = (before ?? after)!.key
      if (after === undefined) this.#risen.delete(key)
      const risen = this.#risen.get(key)
      for (const address of after?.down ?? []) risen?.delete(address)
      if (before === undefined || after === undefined || before.down.length === 0) continue
      const isBack = before.down.filter((address) => !after.down.includes(address))
      const addresses = risen ?? new Map<string, number>()
      for (const address of isBack) addresses.set(address, nowMs)
      if (addresses.size > 0) this.#risen.set(key, addresses)
    }
    if (this.#risen.size === 0) return
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
