import type { EndpointReport } from '../../../../../plugin/admin-health.ts'

export type SpanState = EndpointReport['state'] | 'unknown'

/** A time in which an endpoint had one state. */
export interface StateSpan {
  readonly state: SpanState
  readonly fromMs: number
  readonly toMs: number
  readonly reason: string
  /** What caused it: `probe default/www`; '' = unknown. */
  readonly actor: string
}

export const DAY_MS = 24 * 3600_000
/** Narrower spans could not be seen. */
const PERCENT_MIN = 0.5

type Timeline = Pick<EndpointReport, 'state' | 'before' | 'transitions'>

/** Returns the states of the day before `nowMs`, the oldest first. `noteMs`: since when the server notes changes. */
export function spansOf(
  { state, before, transitions }: Timeline,
  noteMs: number,
  nowMs: number,
): readonly StateSpan[] {
  const beginMs = nowMs - DAY_MS
  const known = transitions.length === 0 ? state : before || 'unknown'
  const starts = [
    { state: 'unknown' as SpanState, atMs: beginMs, reason: '', actor: '' },
    { state: known as SpanState, atMs: noteMs, reason: '', actor: '' },
    ...transitions.map(({ time, state, reason, actor }) => {
      return { state, atMs: Date.parse(time), reason, actor: `${actor.kind} ${actor.name}`.trim() }
    }),
  ]
  const spans: StateSpan[] = []
  for (const [i, { state, atMs, reason, actor }] of starts.entries()) {
    const fromMs = Math.max(beginMs, atMs)
    const toMs = Math.min(nowMs, starts[i + 1]?.atMs ?? nowMs)
    if (toMs > fromMs || (i === starts.length - 1 && i > 0)) {
      spans.push({ state, fromMs, toMs: Math.max(fromMs, toMs), reason, actor })
    }
  }
  return spans
}

/** Returns where a span is drawn, in percent of the day before `nowMs`. */
export function placeOf({ fromMs, toMs }: StateSpan, nowMs: number): { x: number; width: number } {
  const percent = (ms: number): number => (100 * (ms - nowMs + DAY_MS)) / DAY_MS
  const width = Math.max(PERCENT_MIN, percent(toMs) - percent(fromMs))
  const x = Math.min(percent(fromMs), 100 - width)
  return { x: round(Math.max(0, x)), width: round(width) }
}

function round(percent: number): number {
  return Math.round(percent * 100) / 100
}

/** Returns how long the endpoint was not up, and how often it changed, for readers who do not see the picture. */
export function describeSpans(
  spans: readonly StateSpan[],
  print: (seconds: number) => string,
): string {
  const byState = new Map<SpanState, number>()
  for (const { state, fromMs, toMs } of spans) {
    byState.set(state, (byState.get(state) ?? 0) + toMs - fromMs)
  }
  return [...byState].map(([state, ms]) => `${state} ${print(ms / 1000)}`).join(', ')
}
