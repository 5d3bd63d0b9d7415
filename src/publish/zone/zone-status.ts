import type {
  EndpointStatus,
  PeerReport,
  StatusPart,
  ZoneStatus,
} from '../../base/telemetry/status.ts'
import { type PeerStatus, wasHeard } from '../../peering/peer-status.ts'
import { printAllDown, printOut } from '../build/all-down.ts'
import type { DownReasons } from '../build/down-reason.ts'
import { factsOf, impairmentOf, printImpairment } from '../build/endpoint-state.ts'
import type { Contribution } from '../build/owner-set.ts'
import type { PublishedZones } from './zones.ts'

/** Endpoints that a status lists one by one. */
const LISTED_MAX = 1000
/** Records that are decoded for a status. */
const DECODED_MAX = 20_000
/** Names and types that a status lists of each zone. */
const NAMED_MAX = 100

type Zone = PublishedZones['zones'][number]

/** An endpoint that is not served in full. */
interface Impaired {
  readonly contribution: Contribution
  readonly state: EndpointStatus['state']
}

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
    for (const impaired of impairedOf(published, zone)) {
      const { state } = impaired
      if (state === 'down') counts.down++
      else if (state === 'slow start') counts.slowStart++
      if (endpoints.length < LISTED_MAX) {
        endpoints.push(printEndpoint(text, impaired, downReasons))
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
function* impairedOf(published: PublishedZones, { records }: Zone): Generator<Impaired> {
  let decoded = 0
  for (const key of records.impairedKeys()) {
    const record = published.findRecord(key)
    if (record === undefined || !records.has(record)) continue
    if (decoded++ === DECODED_MAX) return
    for (const { contributions } of records.endpointsOf(record)) {
      for (const contribution of contributions) {
        const state = impairmentOf(contribution)
        if (state !== undefined) yield { contribution, state }
      }
    }
  }
}

function printEndpoint(
  zone: string,
  { contribution, state }: Impaired,
  downReasons: DownReasons,
): EndpointStatus {
  const { site: _, ...facts } = factsOf(contribution, zone)
  const detail = printImpairment(contribution, facts.targets, state, downReasons)
  return { ...facts, state, detail }
}
