import { printDuration } from '../base/duration.ts'
import { printTime } from '../base/rfc3339.ts'
import type { RecordSettings } from './settings.ts'

/**
 * Returns the annotations that set these settings, by name without the prefix `sextant.io/`: the inverse of
 * `scanSettings`. Equal settings have equal texts.
 */
export function printSettings(settings: RecordSettings | undefined): Record<string, string> {
  const { allDown, sticky, failover, drain, shift } = settings ?? {}
  const texts: Record<string, string> = {}
  if (allDown !== undefined) texts['all-down'] = allDown
  if (sticky === 'off') texts.sticky = 'false'
  else if (sticky !== undefined) texts.sticky = `${sticky.ipv4Bits} ${sticky.ipv6Bits}`
  if (failover !== undefined) {
    texts.failover = failover
      .map(({ code, entries }) => `${code}: ${entries.join(', ')}`)
      .join('\n')
  }
  if (drain !== undefined) texts.drain = drain.reason
  if (drain?.untilMs !== undefined) texts['drain-until'] = printTime(drain.untilMs)
  if (shift !== undefined) {
    const steps = shift.steps.map((step) => `${step}%`).join(',')
    texts.shift = `to=${shift.to} steps=${steps} bake=${printDuration(shift.bakeMs)}`
  }
  return texts
}
