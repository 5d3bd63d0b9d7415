import type { EndpointFacts, TimelineState } from '../../base/telemetry/endpoint-history.ts'
import type { EndpointStatus } from '../../base/telemetry/status.ts'
import { printType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { printDrain } from '../../health/drain/drain.ts'
import type { ShiftState } from '../../health/shift/shift.ts'
import { SLOW_START_UNITS } from '../../health/slow-start-units.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import { type DownReasons, downReasonOf } from './down-reason.ts'
import type { Contribution } from './owner-set.ts'

/** Most reasons that the detail of one endpoint has. */
const REASONS_MAX = 3

/** Returns why an endpoint is not served in full; undefined = it is. */
export function impairmentOf({
  endpoint,
  down,
  drained,
  units = SLOW_START_UNITS,
}: Contribution): EndpointStatus['state'] | undefined {
  const drainedSize = drained?.size ?? 0
  if (down.size === 0 && drainedSize === 0) {
    return units < SLOW_START_UNITS ? 'slow start' : undefined
  }
  // A target can be both.
  const outSize = new Set([...down, ...(drained?.keys() ?? [])]).size
  if (outSize < endpoint.rdata.length) return 'partly down'
  return drainedSize > 0 ? 'drained' : 'down'
}

/** `shift`: of the RRset; undefined = none. */
export function stateOf(contribution: Contribution, shift: ShiftState | undefined): TimelineState {
  return impairmentOf(contribution) ?? (shift?.percent === undefined ? 'up' : 'shifted')
}

export function factsOf(
  { key, site, endpoint }: Contribution,
  zone: string,
  name = printName(endpoint.owner),
): EndpointFacts {
  const { type, setIdentifier, rdata } = endpoint
  const targets = rdata.map((target) => printTarget(type, target))
  return { zone, name, type: printType(type), setIdentifier, site, targets, record: key }
}

/** Returns what is out and why, the drain, or the part of the weight. `state`: result of `impairmentOf`. */
export function printImpairment(
  { key, endpoint, down, drained = new Map(), units = SLOW_START_UNITS }: Contribution,
  targets: readonly string[],
  state: EndpointStatus['state'],
  downReasons: DownReasons,
): string {
  if (state === 'slow start') return `${percentOf(units)} % of its weight`
  const [drain] = drained.values()
  const reasons = [...down].map((index) => downReasonOf({ key, endpoint }, index, downReasons))
  const parts = [
    ...(drain === undefined ? [] : [printDrain(drain)]),
    ...[...new Set(reasons)].slice(0, REASONS_MAX),
  ]
  if (state !== 'partly down') return parts.join('; ')
  const out = targets.filter((_, i) => down.has(i) || drained.has(i))
  return [`out: ${out.join(', ')}`, ...parts].join('; ')
}

/** Returns the percent of its weight that an endpoint in slow start gets. */
export function percentOf(units = SLOW_START_UNITS): number {
  return Math.round((100 * units) / SLOW_START_UNITS)
}
