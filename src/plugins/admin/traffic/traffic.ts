import type { Clock } from '../../../base/clock.ts'
import type { Random } from '../../../base/random.ts'
import { printRcode } from '../../../dns/iana/rcodes.ts'
import { printType } from '../../../dns/iana/types.ts'
import { printName } from '../../../dns/name/name.ts'
import type { TopName, TrafficPeriod, TrafficReport } from '../../../plugin/admin-traffic.ts'
import type { CounterSlots } from '../../../plugin/counter-slots.ts'
import type { ServerCounters } from '../../../plugin/server-counters.ts'
import { COLUMNS, DROPPED, NO_REPLY, percentile, RCODES } from './columns.ts'
import { DroppedQueries } from './dropped-queries.ts'
import { readKind, readSamples } from './sample.ts'
import { StepRing } from './step-ring.ts'
import { TopHistory } from './top-history.ts'

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const STEP_MS = 10 * SECOND_MS
/** A step that was counted for less time has no rate yet. */
const RATE_MS_MIN = SECOND_MS
const TOP_NAMES = 50
export const PERIOD_MS: Readonly<Record<TrafficPeriod, number>> = {
  '10m': 10 * MINUTE_MS,
  '1h': HOUR_MS,
  '24h': 24 * HOUR_MS,
}

type OwnReport = Omit<TrafficReport, 'endpoints' | 'endpointsOmitted'>

interface TrafficParts {
  readonly clock: Clock
  readonly random: Random
  readonly server: ServerCounters
}

/**
 * What the server counted of its queries in the last 24 hours. One per process: a reload adds the counters of its
 * threads. Uses 1.1 MB, and for names at most 4 MB.
 */
export class Traffic {
  readonly #clock: Clock
  readonly #startedMs: number
  readonly #sinceMs: number
  readonly #slots = new Set<CounterSlots>()
  readonly #dropped: DroppedQueries
  readonly #short: StepRing
  readonly #long: StepRing
  readonly #minutes: TopHistory
  readonly #hours: TopHistory

  constructor({ clock, random, server }: TrafficParts) {
    const nowMs = clock.monotonic()
    this.#clock = clock
    this.#startedMs = clock.now()
    this.#sinceMs = nowMs
    this.#dropped = new DroppedQueries(server)
    this.#short = new StepRing(STEP_MS, HOUR_MS / STEP_MS, COLUMNS, nowMs)
    this.#long = new StepRing(MINUTE_MS, (24 * HOUR_MS) / MINUTE_MS, COLUMNS, nowMs)
    this.#minutes = new TopHistory(MINUTE_MS, HOUR_MS / MINUTE_MS, random)
    this.#hours = new TopHistory(HOUR_MS, 24, random)
  }

  /** Adds the counters of all threads of an instance. Returns the function that ends this. */
  include(slots: CounterSlots): () => void {
    this.#slots.add(slots)
    return () => {
      this.collect()
      this.#slots.delete(slots)
    }
  }

  /** Accepts samples of threads. */
  receive(octets: Uint8Array): void {
    const nowMs = this.#clock.monotonic()
    readSamples(octets, (kind, weight) => {
      this.#minutes.add(nowMs, kind, weight)
      this.#hours.add(nowMs, kind, weight)
    })
  }

  /** Call it at least once per 10 seconds, so that the growth is that of one step. */
  collect(): void {
    const nowMs = this.#clock.monotonic()
    const growth = new Float64Array(COLUMNS)
    for (const slots of this.#slots) {
      slots.forEach((counts) => {
        for (let i = 0; i < COLUMNS; i++) growth[i]! += counts.take(i)
      })
    }
    this.#dropped.addTo(growth)
    this.#short.add(nowMs, growth)
    this.#long.add(nowMs, growth)
  }

  report(period: TrafficPeriod): OwnReport {
    this.collect()
    const now = this.#clock.now()
    const nowMs = this.#clock.monotonic()
    const ring = period === '24h' ? this.#long : this.#short
    const { stepMs } = ring
    const steps = ring.last(PERIOD_MS[period] / stepMs).filter(({ ms }) => ms >= RATE_MS_MIN)
    const startMs = (steps[0]?.index ?? Math.floor(nowMs / stepMs)) * stepMs
    const rates = (of: (row: Float64Array) => number): number[] => {
      return steps.map(({ row, ms }) => round((of(row) * SECOND_MS) / ms))
    }
    const latencies = (part: number): (number | null)[] => {
      return steps.map(({ row }) => {
        const ms = percentile(row, part)
        return ms === undefined ? null : round(ms)
      })
    }
    return {
      now: printTime(now),
      since: printTime(this.#startedMs),
      period,
      start: printTime(now - nowMs + startMs),
      stepSeconds: stepMs / SECOND_MS,
      queries: rates(repliesOf),
      dropped: rates((row) => row[DROPPED]!),
      rcodes: outcomesIn(steps.map(({ row }) => row)).map((outcome) => {
        return { rcode: printOutcome(outcome), rates: rates((row) => row[outcome]!) }
      }),
      latencyMs: { p50: latencies(0.5), p90: latencies(0.9), p99: latencies(0.99) },
      ...this.#countNames(nowMs, period),
    }
  }

  #countNames(
    nowMs: number,
    period: TrafficPeriod,
  ): Pick<OwnReport, 'topNames' | 'countedSeconds'> {
    const history = period === '24h' ? this.#hours : this.#minutes
    const { stepMs } = history
    const count = PERIOD_MS[period] / stepMs
    const { total, weights } = history.last(nowMs, count)
    const topNames = [...weights]
      .sort(([, a], [, b]) => b - a)
      .slice(0, TOP_NAMES)
      .map(([kind, weight]) => printTopName(kind, weight / total))
    const firstMs = (Math.floor(nowMs / stepMs) - count + 1) * stepMs
    const countedSeconds = Math.round((nowMs - Math.max(this.#sinceMs, firstMs)) / SECOND_MS)
    return { topNames, countedSeconds }
  }
}

function repliesOf(row: Float64Array): number {
  let sum = 0
  for (let i = 0; i <= NO_REPLY; i++) sum += row[i]!
  return sum
}

/** Returns the rcodes, or NO_REPLY, that the rows count. */
function outcomesIn(rows: readonly Float64Array[]): number[] {
  const all = Array.from({ length: NO_REPLY + 1 }, (_, outcome) => outcome)
  return all.filter((outcome) => rows.some((row) => row[outcome]! > 0))
}

function printOutcome(outcome: number): string {
  if (outcome === NO_REPLY) return 'none'
  return outcome === RCODES - 1 ? 'other' : printRcode(outcome)
}

function printTopName(kind: string, share: number): TopName {
  const { outcome, type, name } = readKind(kind)
  return {
    name: printName(name),
    type: printType(type),
    rcode: printOutcome(outcome),
    share: round(share),
  }
}

/** Rounds to four decimals, so that replies are short. */
function round(value: number): number {
  return Math.round(value * 10_000) / 10_000
}

function printTime(ms: number): string {
  return new Date(ms).toISOString()
}
