import { type Plan, planHold, planStatus } from '../plan/plan.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { type Condition, heldCondition } from '../status/conditions.ts'
import { countTargets, printCounts, type TargetCounts } from '../status/endpoint-counts.ts'
import { composeStatus } from '../status/status.ts'
import type { StatusFields } from '../status/status-fields.ts'
import { decideRemotes } from './remote-statuses.ts'

interface Announcement {
  readonly group: string
  readonly report: string
  readonly counts: Pick<TargetCounts, 'down'> | undefined
}

/**
 * Adds the finalizer to a delegating record for other clusters, marks it as ready for them, and
 * reports their results. It has no zone of its own: each of these clusters chooses one. `group`: the
 * group of this cluster, which they read in the status; '' = none. `report`: the annotation with what this operator
 * found, which they read too. `counts`: undefined = the definition has no fields for them.
 */
export function planAnnounce(
  record: DnsRecordView,
  healthy: Condition | undefined,
  { group, report, counts }: Announcement,
  nowMs: number,
): Plan {
  const { ready, owners, served } = decideRemotes(record)
  const total = countTargets(record.endpoints)
  const changes: StatusFields = {
    ownerID: record.ownerId,
    domainOwners: owners,
    zoneID: undefined,
    zoneDomainName: undefined,
    group: group === '' ? undefined : group,
    activeGroups: undefined,
    ...(counts && printCounts({ ...counts, total, served: countTargets(served) })),
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
