import type { EndpointHistory } from '../../base/telemetry/endpoint-history.ts'
import type {
  EndpointList,
  EndpointQuery,
  ServedEndpoint,
} from '../../base/telemetry/endpoint-lists.ts'
import { printType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { isFollowed } from '../../health/down-targets.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import type { DownReasons } from '../build/down-reason.ts'
import { factsOf, impairmentOf, percentOf, printImpairment } from '../build/endpoint-state.ts'
import { endpointId, historyKey } from '../build/endpoint-states.ts'
import type { Contribution } from '../build/owner-set.ts'
import type { PublishedZones } from './zones.ts'

type Zone = PublishedZones['zones'][number]

/** Where an endpoint is. */
interface ListedAt {
  readonly zone: string
  readonly name: string
  /** Key of its owner in the history. */
  readonly owner: string
}

interface EndpointListOptions {
  readonly place: string
  readonly zones: PublishedZones
  readonly downReasons: DownReasons
}

/** Returns the list of the endpoints of a publisher. */
export function listEndpoints({ place, zones, downReasons }: EndpointListOptions): EndpointList {
  const served = zones.zones.filter(({ apex }) => !isLocalZone(apex))
  return {
    place,
    get size() {
      return served.reduce((sum, { records }) => sum + records.recordCount, 0)
    },
    *walk(query, history, reads, visit) {
      for (const zone of served) {
        for (const record of recordsOf(zones, zone, query)) {
          if (reads.left-- <= 0) return
          yield
          for (const { key, owner, contributions } of zone.records.endpointsOf(record)) {
            const at = {
              zone: zone.text,
              name: printName(owner),
              owner: historyKey(place, zone.text, key),
            }
            for (const one of contributions) visitOne(one, at, { history, downReasons, visit })
          }
        }
      }
    },
  }
}

/** Yields the records of a zone that the query may select, each once, those with impaired endpoints first. */
function* recordsOf(
  zones: PublishedZones,
  zone: Zone,
  query: EndpointQuery,
): Generator<StoredRecord> {
  const { records } = zone
  const seen = new Set<string>()
  for (const key of [...records.impairedKeys()]) {
    const record = zones.findRecord(key)
    if (record === undefined || !records.has(record)) continue
    seen.add(key)
    yield record
  }
  if (query.state !== undefined && query.state !== 'up') return
  for (const record of records.holders.records()) if (!seen.has(record.key)) yield record
}

interface VisitParts {
  readonly history: EndpointHistory | undefined
  readonly downReasons: DownReasons
  readonly visit: (endpoint: ServedEndpoint) => void
}

function visitOne(
  one: Contribution,
  { zone, name, owner }: ListedAt,
  { history, downReasons, visit }: VisitParts,
): void {
  const impairment = impairmentOf(one)
  if (impairment === undefined && !isFollowed(one.endpoint.type)) return
  const isNoted = history?.has(owner) === true
  const timeline = isNoted ? history.find(owner, endpointId(one)) : undefined
  const last = timeline?.transitions.at(-1)
  const isShifted = impairment === undefined && last?.state === 'shifted'
  const { type, setIdentifier } = one.endpoint
  visit({
    ...{ zone, name, type: printType(type), setIdentifier },
    state: impairment ?? (isShifted ? 'shifted' : 'up'),
    timeline,
    describe: () => {
      const facts = factsOf(one, zone, name)
      const out =
        impairment === undefined ? '' : printImpairment(one, facts.targets, impairment, downReasons)
      const weightPercent = impairment === 'slow start' ? percentOf(one.units) : 100
      return { ...facts, detail: isShifted ? last.reason : out, weightPercent }
    },
  })
}
