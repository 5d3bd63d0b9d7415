import type { ApiObject } from '../../kube/api.ts'
import { type Plan, planHold, planStatus } from '../plan/plan.ts'
import { itemsOf, mappingOf } from '../record/object.ts'
import { type Condition, heldCondition } from '../status/conditions.ts'
import { composeStatus, ownerIdOf, type StatusFields } from '../status/status.ts'
import { decideRemotes } from './remote-statuses.ts'

/**
 * Adds the finalizer to a delegating record for other clusters, marks it as ready for them, and
 * reports their results. It has no zone of its own: each of these clusters chooses one.
 */
export function planAnnounce(
  object: ApiObject,
  healthy: Condition | undefined,
  nowMs: number,
): Plan {
  const { ready, owners } = decideRemotes(object)
  const endpoints = itemsOf(mappingOf(object, 'spec'), 'endpoints')
  const changes: StatusFields = {
    ownerID: ownerIdOf(object),
    domainOwners: owners,
    zoneID: undefined,
    zoneDomainName: undefined,
    ...(ready.isTrue ? { endpoints } : {}),
  }
  const conditions = [ready, heldCondition(), ...(healthy === undefined ? [] : [healthy])]
  const status = composeStatus(object, conditions, changes, nowMs)
  return { writes: [...planHold(object), ...planStatus(object, status)], ready, isChanged: false }
}
