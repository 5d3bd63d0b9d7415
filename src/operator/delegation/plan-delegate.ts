import { DERIVED_ENDPOINTS_MAX } from '../../dnsrecord/dns-record.ts'
import type { Publishing } from '../plan/decide.ts'
import { type Plan, planHold, planRefuse, planStatus } from '../plan/plan.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import {
  type Condition,
  failedCondition,
  heldCondition,
  readyCondition,
} from '../status/conditions.ts'
import { composeStatus, countWrites, type StatusFields } from '../status/status.ts'
import { authoritativeHost, authoritativeName } from './authoritative-record.ts'
import {
  type DelegatedEndpoints,
  findObstacle,
  planContribution,
  writeAuthoritative,
} from './change-authoritative.ts'
import type { EndpointPlan } from './plan-endpoints.ts'

/** What exists for a delegating record, and what it contributes. */
export interface Delegation extends DelegatedEndpoints {
  readonly authoritative: DnsRecordView | undefined
  /** undefined = the health of the record is not probed. */
  readonly healthy: Condition | undefined
}

/**
 * Puts the endpoints of a delegating record into the authoritative record. The finalizer is written
 * first, so that nothing is left behind, and the status last. Whatever is already in place is not
 * written. A record of another cluster, which that cluster's operator holds, has the form that
 * `asSeenByCluster` returns.
 */
export function planDelegate(publishing: Publishing, delegation: Delegation, nowMs: number): Plan {
  const { record, zone } = publishing
  const { authoritative, endpoints, healthy, cluster } = delegation
  const problem = findObstacle(record, authoritative)
  if (problem !== '') return planRefuse(record, failedCondition(problem), nowMs)
  const plan = planContribution(record, authoritative, delegation)
  const name = authoritativeName(record.rootHost)
  if (plan.endpoints.length > DERIVED_ENDPOINTS_MAX) {
    const text = `DNSRecord ${name} would have ${plan.endpoints.length} endpoints with its registry notes, at most ${DERIVED_ENDPOINTS_MAX} are allowed`
    return planRefuse(record, failedCondition(text), nowMs)
  }
  const change = writeAuthoritative(record, authoritative, plan, zone)
  const isChanged = change.length > 0
  const isOurs = cluster === ''
  const ready = decideReady(publishing, plan, endpoints.length)
  const conditions = [
    ready,
    ...(isOurs ? [heldCondition()] : []),
    ...(healthy === undefined ? [] : [healthy]),
  ]
  const hasAll = plan.conflicts.length === 0
  const changes: StatusFields = {
    writeCounter: countWrites(record, isChanged),
    ownerID: record.ownerId,
    domainOwners: plan.owners,
    zoneID: name,
    zoneDomainName: authoritativeHost(record.rootHost),
    ...(hasAll ? { endpoints: endpoints.map(({ object }) => object) } : {}),
  }
  const status = composeStatus(record, conditions, changes, nowMs)
  const hold = isOurs ? planHold(record) : []
  return { writes: [...hold, ...change, ...planStatus(record, status)], ready, isChanged }
}

function decideReady(
  { rootHost }: Publishing,
  { conflicts }: EndpointPlan,
  endpoints: number,
): Condition {
  if (conflicts.length > 0) return failedCondition(conflicts.join('; '))
  return endpoints === 0
    ? failedCondition(`no endpoints discovered for ${rootHost}`)
    : readyCondition()
}
