import { SITES_ANNOTATION } from '../../dnsrecord/site-facts.ts'
import type { Publishing } from '../plan/decide.ts'
import { type Plan, planStatus } from '../plan/plan.ts'
import type { Write } from '../plan/write.ts'
import { annotationsOf } from '../record/sites-annotation.ts'
import { readyCondition } from '../status/conditions.ts'
import { composeStatus, countWrites } from '../status/status.ts'
import { authoritativeLabels } from './authoritative-record.ts'

/**
 * Labels an authoritative record with the provider's zone, so that it is served. Other reconcilers
 * write its endpoints.
 */
export function planServe({ record, zone, provider }: Publishing, nowMs: number): Plan {
  const { namespace, name, rootHost, spec } = record
  const labels = authoritativeLabels({ rootHost, zone })
  const isServed = Object.entries(labels).every(([label, value]) => record.label(label) === value)
  // Server-side apply removes what is missing and was ours.
  const annotations = annotationsOf(record.annotation(SITES_ANNOTATION))
  const desired = { namespace, name, labels, annotations, owner: undefined, spec }
  const relabel: Write[] = isServed ? [] : [{ kind: 'put', record: desired, over: record }]
  const ready = readyCondition()
  const changes = {
    writeCounter: countWrites(record, !isServed),
    endpoints: record.endpointObjects,
    ownerID: record.ownerId,
    providerRef: { name: provider.secretName },
    zoneID: zone,
    zoneDomainName: zone,
  }
  const status = composeStatus(record, [ready], changes, nowMs)
  return { writes: [...relabel, ...planStatus(record, status)], ready, isChanged: !isServed }
}
