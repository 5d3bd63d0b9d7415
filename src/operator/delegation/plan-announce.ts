import { type Plan, planHold, planStatus } from '../plan/plan.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { type Condition, heldCondition } from '../status/conditions.ts'
import { composeStatus, type StatusFields } from '../status/status.ts'
import { decideRemotes } from './remote-statuses.ts'

/**
 * Adds the finalizer to a delegating record for other clusters, marks it as ready for them, and
 * reports their results. It has no zone of its own: each of these clusters chooses one. `group`: the
 * group of this cluster, which they read in the status; '' = none. `report`: the annotation with what this operator
 * found, which they read too.
 */
export function planAnnounce(
  record: DnsRecordView,
  healthy: Condition | undefined,
  { group, report }: { readonly group: string; readonly report: string },
  nowMs: number,
): Plan {
  const { ready, owners } = decideRemotes(record)
  const changes: StatusFields = {
    ownerID: record.ownerId,
    domainOwners: owners,
    zoneID: undefined,
    zoneDomainName: undefined,
    group: group === '' ? undefined : group,
    activeGroups: undefined,
    ...(ready.isTrue ? { endpoints: record.endpointObjects } : {}),
  }
  const conditions = [ready, heldCondition(), healthy ?? ('Healthy' as const)]
  const status = composeStatus(record, conditions, changes, nowMs)
  return {
    writes: [...planHold(record, report), ...planStatus(record, status)],
    ready,
    isChanged: false,
  }
}
