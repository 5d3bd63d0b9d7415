import type { DrainSelector } from './selector.ts'

/** Takes endpoints out of service until an operator or a time ends it. Immutable. */
export interface EndpointDrain {
  readonly selector: DrainSelector
  /** Why; '' = not given. */
  readonly reason: string
  /** Who drained; '' = not given. */
  readonly actor: string
  /** Milliseconds since the epoch; undefined = not given. */
  readonly createdMs: number | undefined
  /** When it ends, in milliseconds since the epoch; undefined = when an operator ends it. */
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
export function printDrain({ selector, actor, untilMs, reason }: EndpointDrain): string {
  const by = actor === '' ? '' : ` by ${actor}`
  const until = untilMs === undefined ? '' : ` until ${printTime(untilMs)}`
  return `${selector.text}${by}${until}${reason === '' ? '' : `: ${reason}`}`
}

/** RFC 3339, in UTC and whole seconds. */
export function printTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/

/** Reads a time of RFC 3339; the seconds may be missing. Returns milliseconds since the epoch. */
export function scanTime(text: string): number | undefined {
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
