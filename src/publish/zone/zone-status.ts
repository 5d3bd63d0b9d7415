import type {
  EndpointStatus,
  PeerReport,
  StatusPart,
  ZoneStatus,
} from '../../base/telemetry/status.ts'
import { printType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { printDrain } from '../../health/drain/drain.ts'
import { SLOW_START_UNITS } from '../../health/slow-start-units.ts'
import { type PeerStatus, wasHeard } from '../../peering/peer-status.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import { printAllDown, printOut } from '../build/all-down.ts'
import { type DownReasons, downReasonOf } from '../build/down-reason.ts'
import type { Contribution } from '../build/owner-set.ts'
import type { PublishedZones } from './zones.ts'

/** Endpoints that a status lists one by one. */
const LISTED_MAX = 1000
/** Records that are decoded for a status. */
const DECODED_MAX = 20_000
/** Names and types that a status lists of each zone. */
const NAMED_MAX = 100

type Zone = PublishedZones['zones'][number]

/** Most reasons that the detail of one endpoint has. */
const REASONS_MAX = 3

/** Returns the status of zones that are served from records. `source`: what the records are read from. */
export function statusOfZones(
  published: PublishedZones,
  source: string,
  downReasons: DownReasons,
): Required<Pick<StatusPart, 'zones' | 'endpoints' | 'endpointsOmitted'>> {
  const endpoints: EndpointStatus[] = []
  let endpointsOmitted = 0
  const zones = published.zones.map((zone): ZoneStatus => {
    const { records, text, serial } = zone
    const counts = { slowStart: 0, down: 0 }
    for (const contribution of impairedOf(published, zone)) {
      const state = stateOf(contribution)
      if (state === 'down') counts.down++
      else if (state === 'slow start') counts.slowStart++
      if (endpoints.length < LISTED_MAX) {
        endpoints.push(printEndpoint(text, contribution, state, downReasons))
      } else endpointsOmitted++
    }
    const { out, tally } = records
    const { served, standby } = tally
    return {
      ...{ zone: text, directive: 'kuadrant', source, serial },
      records: records.recordCount,
      rrsets: records.rrsetCount,
      conflicts: records.conflicts.count,
      allDown: out.allDown.slice(0, NAMED_MAX).map(({ set, allDown }) => {
        return `${set}: ${printAllDown(allDown)}`
      }),
      exhausted: out.exhausted.slice(0, NAMED_MAX).map((one) => `${one.set}: ${printOut(one)}`),
      endpoints: { served, standby, drained: out.drainedCount, ...counts },
    }
  })
  return { zones, endpoints, endpointsOmitted }
}

/** `nowMs`: monotonic. */
export function reportPeer(status: PeerStatus, nowMs: number): PeerReport {
  const { address, site, isUp, lastSeenMs, serial = null, endpoints, refused, error } = status
  const ageSeconds = wasHeard(lastSeenMs) ? Math.round((nowMs - lastSeenMs) / 100) / 10 : null
  return { peer: address, site, isUp, ageSeconds, serial, endpoints, refused, error }
}

/** Endpoints of a zone that are not served in full. */
function* impairedOf(published: PublishedZones, { records }: Zone): Generator<Contribution> {
  let decoded = 0
  for (const key of records.impairedKeys()) {
    const record = published.findRecord(key)
    if (record === undefined || !records.has(record)) continue
    if (decoded++ === DECODED_MAX) return
    yield* records.impaired(record)
  }
}

function stateOf({ endpoint, down, drained }: Contribution): EndpointStatus['state'] {
  const { length } = endpoint.rdata
  const drainedSize = drained?.size ?? 0
  if (down.size === 0 && drainedSize === 0) return 'slow start'
  // A target can be both.
  const outSize = new Set([...down, ...(drained?.keys() ?? [])]).size
  if (outSize < length) return 'partly down'
  return drainedSize > 0 ? 'drained' : 'down'
}

function printEndpoint(
  zone: string,
  contribution: Contribution,
  state: EndpointStatus['state'],
  downReasons: DownReasons,
): EndpointStatus {
  const { key, endpoint } = contribution
  const { owner, type, setIdentifier, rdata } = endpoint
  const targets = rdata.map((target) => printTarget(type, target))
  const detail = printDetail(contribution, targets, state, downReasons)
  const name = printName(owner)
  return { zone, name, type: printType(type), setIdentifier, targets, state, detail, record: key }
}

function printDetail(
  { key, endpoint, down, drained = new Map(), units = SLOW_START_UNITS }: Contribution,
  targets: readonly string[],
  state: EndpointStatus['state'],
  downReasons: DownReasons,
): string {
  if (state === 'slow start')
    return `${Math.round((100 * units) / SLOW_START_UNITS)} % of its weight`
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
