import { SITES_ANNOTATION } from '../../dnsrecord/site-facts.ts'
import type { RecordConflicts } from '../conflicts/record-conflicts.ts'
import type { Publishing } from '../plan/decide.ts'
import { type Plan, planStatus } from '../plan/plan.ts'
import type { Write } from '../plan/write.ts'
import { annotationsOf } from '../record/sites-annotation.ts'
import { failedCondition, readyCondition } from '../status/conditions.ts'
import { servedConditions } from '../status/served-conditions.ts'
import { composeStatus, countWrites } from '../status/status.ts'
import { authoritativeLabels } from './authoritative-record.ts'

/** What keeps nameservers from serving a record. */
export interface Obstacles {
  readonly conflicts: RecordConflicts
  /** '' = none. */
  readonly zoneFault: string
}

/**
 * Labels an authoritative record with the provider's zone, so that it is served. Other reconcilers
 * write its endpoints.
 */
export function planServe(
  { record, zone, provider }: Publishing,
  { conflicts, zoneFault }: Obstacles,
  nowMs: number,
): Plan {
  const { namespace, name, rootHost, spec } = record
  const labels = authoritativeLabels({ rootHost, zone })
  const isServed = Object.entries(labels).every(([label, value]) => record.label(label) === value)
  // Server-side apply removes what is missing and was ours.
  const annotations = annotationsOf(record.annotation(SITES_ANNOTATION))
  const desired = { namespace, name, labels, annotations, owner: undefined, spec }
  const relabel: Write[] = isServed ? [] : [{ kind: 'put', record: desired, over: record }]
  const ready = conflicts.isWhole
    ? failedCondition(conflicts.texts.join('; '))
    : readyCondition(zoneFault)
  const changes = {
    writeCounter: countWrites(record, !isServed),
    endpoints: record.endpointObjects.filter(conflicts.isServed),
    ownerID: record.ownerId,
    providerRef: { name: provider.secretName },
    zoneID: zone,
    zoneDomainName: zone,
  }
  const conditions = [ready, ...servedConditions(record, conflicts.texts)]
  const status = composeStatus(record, conditions, changes, nowMs)
  return { writes: [...relabel, ...planStatus(record, status)], ready, isChanged: !isServed }
}
