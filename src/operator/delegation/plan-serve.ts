import type { ApiObject } from '../../kube/api.ts'
import { printProbed } from '../../peering/to-peer-endpoint.ts'
import { outOf, SITES_ANNOTATION } from '../../records/site-facts.ts'
import type { RecordConflicts } from '../conflicts/record-conflicts.ts'
import type { Publishing } from '../plan/decide.ts'
import { joinNotes, type Plan, planStatus } from '../plan/plan.ts'
import type { Write } from '../plan/write.ts'
import { annotationsOf } from '../record/sites-annotation.ts'
import { readSpecEndpoints, type SpecEndpoint } from '../record/spec-endpoint.ts'
import { failedCondition, publishedCondition } from '../status/conditions.ts'
import { countEndpoints, printCounts, type TargetCounts } from '../status/endpoint-counts.ts'
import { servedConditions } from '../status/served-conditions.ts'
import { composeStatus, countWrites } from '../status/status.ts'
import type { StatusFields } from '../status/status-fields.ts'
import type { ZoneState } from '../zones/zone-state.ts'
import { authoritativeLabels } from './authoritative-record.ts'
import { isRegistryNote } from './registry.ts'
import { readOwnedParts } from './whole.ts'

/** What keeps nameservers from serving a record, and what its status can have. */
interface ServeFacts {
  readonly conflicts: RecordConflicts
  readonly zone: ZoneState
  /** Whether the installed definition has the fields of `TargetCounts`. */
  readonly hasCounts: boolean
  /** Other clusters that are silent; undefined = none, or the definition has no field for them. */
  readonly peers: readonly ApiObject[] | undefined
  /** More for the Ready condition; '' = nothing. */
  readonly note: string
}

/**
 * Labels an authoritative record with the provider's zone, so that it is served. Other reconcilers
 * write its endpoints.
 */
export function planServe(
  publishing: Publishing,
  { conflicts, zone: known, hasCounts, peers, note }: ServeFacts,
  nowMs: number,
): Plan {
  const { record, zone, provider } = publishing
  const { namespace, name, rootHost, spec } = record
  const labels = authoritativeLabels({ rootHost, zone })
  const isServed = Object.entries(labels).every(([label, value]) => record.label(label) === value)
  // Server-side apply removes what is missing and was ours.
  const annotations = annotationsOf(record.annotation(SITES_ANNOTATION))
  const desired = { namespace, name, labels, annotations, owner: undefined, spec }
  const relabel: Write[] = isServed ? [] : [{ kind: 'put', record: desired, over: record }]
  const ready = conflicts.isWhole
    ? failedCondition(conflicts.texts.join('; '))
    : publishedCondition({ isPassive: false, zoneFault: known.fault }, joinNotes(known.note, note))
  const changes: StatusFields = {
    writeCounter: countWrites(record, !isServed),
    endpoints: record.endpointObjects.filter(conflicts.isServed),
    ownerID: record.ownerId,
    providerRef: { name: provider.secretName },
    zoneID: zone,
    zoneDomainName: zone,
    peers,
    ...(hasCounts ? printCounts(countParts(publishing, conflicts)) : {}),
  }
  const conditions = [ready, ...servedConditions(record, conflicts.texts)]
  const status = composeStatus(record, conditions, changes, nowMs)
  return { writes: [...relabel, ...planStatus(record, status)], ready, isChanged: !isServed }
}

/** Counts the targets that its owners contribute. A target is down if all owners that have it report that. */
function countParts({ record }: Publishing, { isServed }: RecordConflicts): TargetCounts {
  const known = new Set<string>()
  const working = new Set<string>()
  const reported: SpecEndpoint[] = []
  for (const part of readOwnedParts(record)) {
    const isDown = new Set(printProbed(Object.keys(outOf(part))))
    for (const endpoint of readSpecEndpoints(part.endpoints)) {
      reported.push(endpoint)
      for (const target of printProbed(endpoint.targets)) {
        known.add(target)
        if (!isDown.has(target)) working.add(target)
      }
    }
  }
  const split = (endpoint: SpecEndpoint) => {
    const targets = printProbed(endpoint.targets)
    const down = targets.filter((target) => known.has(target) && !working.has(target))
    const rest = targets.filter((target) => !down.includes(target))
    return [
      { ...endpoint, targets: rest, health: 'unknown' as const },
      { ...endpoint, targets: down, health: 'down' as const },
    ]
  }
  const served = record.endpoints.filter((one) => !isRegistryNote(one) && isServed(one.object))
  return countEndpoints(reported.flatMap(split), served.flatMap(split))
}
