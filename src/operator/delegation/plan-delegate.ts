import { DERIVED_ENDPOINTS_MAX } from '../../records/dns-record.ts'
import type { RecordConflicts } from '../conflicts/record-conflicts.ts'
import { groupFields, isPassive, type Membership } from '../groups/membership.ts'
import type { Publishing } from '../plan/decide.ts'
import { joinNotes, type Plan, planHold, planRefuse, planStatus } from '../plan/plan.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { readSpecEndpoints } from '../record/spec-endpoint.ts'
import {
  activeCondition,
  type Condition,
  failedCondition,
  heldCondition,
  publishedCondition,
} from '../status/conditions.ts'
import { countTargets, printCounts, type TargetCounts } from '../status/endpoint-counts.ts'
import { servedConditions } from '../status/served-conditions.ts'
import { composeStatus, countWrites } from '../status/status.ts'
import type { StatusFields } from '../status/status-fields.ts'
import { unservedZoneOf } from '../zones/zone-state.ts'
import { authoritativeHost, authoritativeName } from './authoritative-record.ts'
import {
  type ContributionPlan,
  type DelegatedEndpoints,
  findObstacle,
  planContribution,
  writeAuthoritative,
} from './change-authoritative.ts'
import { selectPublished } from './contribution.ts'
import { readOwners } from './whole.ts'

/** What exists for a delegating record, and what it contributes. */
export interface Delegation extends Omit<DelegatedEndpoints, 'group'> {
  readonly authoritative: DnsRecordView | undefined
  /** Undefined = the record's cluster belongs to no group. */
  readonly membership: Membership | undefined
  /** undefined = the health of the record is not probed. */
  readonly healthy: Condition | undefined
  /** Our own site. */
  readonly site: string
  /** What other clusters read on a record of this cluster; undefined = it is one of another cluster. */
  readonly report: string | undefined
  /** Endpoints that are not served because of other records, and why. */
  readonly conflicts: RecordConflicts
  /** Additional information for the Ready condition; '' = none. */
  readonly note: string
  /**
   * Of its own targets; `served` is counted here. Undefined = it is a record of another cluster, or the definition has
   * no fields for it.
   */
  readonly counts: Omit<TargetCounts, 'served'> | undefined
}

/**
 * Puts the endpoints of a delegating record into the authoritative record. The finalizer is written
 * first, so that nothing is left behind, and the status last. Whatever is already in place is not
 * written. A record of another cluster, which that cluster's operator holds, has the form that
 * `asSeenByCluster` returns. A passive cluster contributes nothing while an owner is active.
 */
export function planDelegate(publishing: Publishing, delegation: Delegation, nowMs: number): Plan {
  const { record, zone } = publishing
  const { authoritative, membership, healthy, cluster, facts, site, report, counts } = delegation
  const yields = isPassive(membership) && hasActiveOwner(authoritative, record.ownerId, membership!)
  const endpoints = yields ? [] : delegation.endpoints
  const problem = findObstacle(record, authoritative)
  if (problem !== '') return planRefuse(record, failedCondition(problem), nowMs)
  const wanted = { endpoints, facts, cluster, group: membership?.group ?? '' }
  const plan = planContribution(record, authoritative, wanted, { site, timeMs: nowMs })
  const name = authoritativeName(record.rootHost)
  if (plan.count > DERIVED_ENDPOINTS_MAX) {
    const text = `DNSRecord ${name} would have ${plan.count} endpoints with its registry notes, at most ${DERIVED_ENDPOINTS_MAX} are allowed`
    return planRefuse(record, failedCondition(text), nowMs)
  }
  const change = writeAuthoritative(record, authoritative, plan, zone)
  const isChanged = change.length > 0
  const isOurs = report !== undefined
  const ready = decideReady(publishing, plan, delegation)
  const conditions = [
    ready,
    ...(isOurs ? [heldCondition()] : []),
    ...(membership === undefined ? [] : [activeCondition(membership)]),
    healthy ?? ('Healthy' as const),
    ...servedConditions(record, delegation.conflicts.texts),
  ]
  const hasAll = plan.conflicts.length === 0
  const { isServed } = delegation.conflicts
  const published = selectPublished(endpoints, plan.endpoints).filter(isServed)
  const changes: StatusFields = {
    writeCounter: countWrites(record, isChanged),
    ownerID: record.ownerId,
    domainOwners: plan.owners,
    zoneID: name,
    zoneDomainName: authoritativeHost(record.rootHost),
    ...groupFields(membership),
    ...(counts && hasAll
      ? printCounts({ ...counts, served: countTargets(readSpecEndpoints(published)) })
      : {}),
    ...(hasAll ? { endpoints: published } : {}),
  }
  const status = composeStatus(record, conditions, changes, nowMs)
  const hold = isOurs ? planHold(record, report) : []
  return { writes: [...hold, ...change, ...planStatus(record, status)], ready, isChanged }
}

function decideReady(
  { rootHost }: Publishing,
  plan: ContributionPlan,
  { authoritative, endpoints, membership, conflicts, note }: Delegation,
): Condition {
  const notes = joinNotes(...plan.disputes, plan.note, note)
  if (plan.conflicts.length > 0) return failedCondition(plan.conflicts.join('; '))
  if (endpoints.length === 0) return failedCondition(`no endpoints discovered for ${rootHost}`)
  if (conflicts.isWhole) return failedCondition(conflicts.texts.join('; '))
  const zoneFault = authoritative === undefined ? '' : unservedZoneOf(authoritative)
  return publishedCondition({ isPassive: isPassive(membership), zoneFault }, notes)
}

/** True if another owner belongs to an active group, or to none. */
function hasActiveOwner(
  authoritative: DnsRecordView | undefined,
  ownerId: string,
  { active = [] }: Membership,
): boolean {
  if (authoritative === undefined) return false
  const others = readOwners(authoritative).filter(({ id }) => id !== ownerId)
  return others.some(({ group }) => group === '' || active.includes(group))
}
