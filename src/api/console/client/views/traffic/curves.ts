import type { TrafficReport } from '../../../../../plugin/admin-traffic.ts'

/** One line of a chart. Null = no value at that time. */
interface Curve {
  readonly label: string
  readonly values: readonly (number | null)[]
}

/** Lines over the same times, in seconds since the epoch. */
export interface CurveSet {
  readonly seconds: readonly number[]
  readonly curves: readonly Curve[]
}

const RCODE_LABELS: Readonly<Record<string, string>> = {
  none: 'no reply',
  other: 'other codes',
}

/** Returns the time at which each step of a report began. */
function secondsOf({ start, stepSeconds, queries }: TrafficReport): number[] {
  const first = Date.parse(start) / 1000
  return queries.map((_, i) => first + i * stepSeconds)
}

export function rateCurves(report: TrafficReport): CurveSet {
  const { queries, dropped } = report
  const curves = [{ label: 'queries', values: queries }]
  if (dropped.some((rate) => rate > 0)) curves.push({ label: 'dropped', values: dropped })
  return { seconds: secondsOf(report), curves }
}

export function rcodeCurves(report: TrafficReport): CurveSet {
  const curves = report.rcodes.map(({ rcode, rates }) => {
    return { label: RCODE_LABELS[rcode] ?? rcode, values: rates }
  })
  return { seconds: secondsOf(report), curves }
}

export function latencyCurves(report: TrafficReport): CurveSet {
  const { p50, p90, p99 } = report.latencyMs
  const curves = [
    { label: '50 %', values: p50 },
    { label: '90 %', values: p90 },
    { label: '99 %', values: p99 },
  ]
  return { seconds: secondsOf(report), curves }
}

/** Prints a rate or a latency; null = no value. */
export function printValue(value: number | null | undefined): string {
  if (value === null || value === undefined) return '-'
  if (value === 0) return '0'
  if (value >= 1000) return Math.round(value).toLocaleString('en').replaceAll(',', '\u202f')
  return String(Number(value.toPrecision(3)))
}
