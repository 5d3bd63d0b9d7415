import { textOf } from '../../kube/api.ts'
import type { Publishing } from '../plan/decide.ts'
import { countWrites, type Plan, planStatus } from '../plan/plan.ts'
import type { Write } from '../plan/write.ts'
import { itemsOf, labelOf, mappingOf, metadataOf } from '../record/object.ts'
import { readyCondition } from '../status/conditions.ts'
import { composeStatus, ownerIdOf } from '../status/status.ts'
import { authoritativeLabels, composeAuthoritative } from './authoritative-record.ts'

/**
 * Labels an authoritative record with the provider's zone, so that it is served. Other reconcilers
 * write its endpoints.
 */
export function planServe(publishing: Publishing, nowMs: number): Plan {
  const { object, rootHost, zone, provider } = publishing
  const spec = mappingOf(object, 'spec')
  const endpoints = itemsOf(spec, 'endpoints')
  const labels = Object.entries(authoritativeLabels({ rootHost, zone }))
  const isServed = labels.every(([label, value]) => labelOf(object, label) === value)
  const served: Write[] = isServed
    ? []
    : [{ kind: 'put', object: relabel(publishing, endpoints), over: object }]
  const ready = readyCondition()
  const status = composeStatus(
    object,
    [ready],
    {
      writeCounter: countWrites(object, !isServed),
      endpoints,
      ownerID: ownerIdOf(object),
      providerRef: { name: provider.secretName },
      zoneID: zone,
      zoneDomainName: zone,
    },
    nowMs,
  )
  return { writes: [...served, ...planStatus(object, status)], ready, isChanged: !isServed }
}

/** The record with the desired labels. */
function relabel({ object, zone }: Publishing, endpoints: ReturnType<typeof itemsOf>) {
  const spec = mappingOf(object, 'spec')
  const metadata = metadataOf(object)
  const facts = {
    namespace: textOf(metadata, 'namespace'),
    rootHost: textOf(spec, 'rootHost'),
    provider: textOf(spec.providerRef, 'name'),
    zone,
  }
  const wanted = composeAuthoritative(facts, endpoints)
  return { ...wanted, metadata: { ...metadataOf(wanted), name: textOf(metadata, 'name') }, spec }
}
