import { printTime } from '../../base/rfc3339.ts'
import { type DrainReport, printDrainReport } from '../../base/telemetry/drain-report.ts'
import type { DrainSelector } from './selector.ts'

/** Takes endpoints out of service until a person or a time ends it. Immutable. */
export interface EndpointDrain {
  readonly selector: DrainSelector
  /** Why; '' = not given. */
  readonly reason: string
  /** Who drained; '' = not given. */
  readonly actor: string
  /** Milliseconds since the epoch; undefined = not given. */
  readonly createdMs: number | undefined
  /** When it ends, in milliseconds since the epoch; undefined = when a person ends it. */
  readonly untilMs: number | undefined
}

/** The drained targets of one record. Immutable. */
export interface RecordDrains {
  /** By endpoint, in the record's order: the drain of each drained target, by its index. */
  readonly endpoints: readonly ReadonlyMap<number, EndpointDrain>[]
}

/** No target is drained. */
export const NO_DRAINS: RecordDrains = { endpoints: [] }

export function isActive({ untilMs }: EndpointDrain, nowMs: number): boolean {
  return untilMs === undefined || nowMs < untilMs
}

export function isSameDrain(a: EndpointDrain, b: EndpointDrain): boolean {
  return (
    a === b ||
    (a.selector.text === b.selector.text &&
      a.reason === b.reason &&
      a.actor === b.actor &&
      a.createdMs === b.createdMs &&
      a.untilMs === b.untilMs)
  )
}

export function isSameDrains(a: RecordDrains, b: RecordDrains): boolean {
  if (a === b) return true
  return (
    a.endpoints.length === b.endpoints.length &&
    a.endpoints.every((drains, i) => isSameMap(drains, b.endpoints[i]!))
  )
}

function isSameMap(
  a: ReadonlyMap<number, EndpointDrain>,
  b: ReadonlyMap<number, EndpointDrain>,
): boolean {
  return a.size === b.size && [...a].every(([index, drain]) => b.get(index) === drain)
}

/** Prints a drain for people: `site:dublin by ops until 2026-11-24T18:00:00Z: racks move`. */
export function printDrain(drain: EndpointDrain): string {
  return printDrainReport(reportDrain(drain))
}

/** Returns a drain as JSON. */
export function reportDrain(drain: EndpointDrain): DrainReport {
  const { selector, untilMs, actor, reason, createdMs } = drain
  return {
    id: selector.id,
    selector: selector.text,
    reason,
    actor,
    ...(createdMs === undefined ? {} : { created: printTime(createdMs) }),
    ...(untilMs === undefined ? {} : { until: printTime(untilMs) }),
  }
}
