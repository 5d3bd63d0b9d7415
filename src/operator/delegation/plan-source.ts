import { type ApiObject, textOf } from '../../kube/api.ts'
import { DERIVED_ENDPOINTS_MAX } from '../../record/dns-record.ts'
import { type Condition, failedCondition, heldCondition, readyCondition } from '../conditions.ts'
import { isAuthoritative, type Publishing } from '../judge.ts'
import { ZONE_LABEL } from '../labels.ts'
import { itemsOf, labelOf, mappingOf, metadataOf } from '../object.ts'
import { countWrites, type Plan, planHold, planRefuse, planRelease, planStatus } from '../plan.ts'
import { composeStatus, ownerIdOf, type StatusFields } from '../status.ts'
import type { Write } from '../write.ts'
import { authoritativeName, composeAuthoritative, sharedHost } from './authoritative-record.ts'
import { type EndpointPlan, planEndpoints } from './plan-endpoints.ts'

/** What is there for a delegating record, and what it has to say. */
export interface Delegation {
  readonly authoritative: ApiObject | undefined
  /** What it wants in there. */
  readonly endpoints: readonly ApiObject[]
  /** undefined = nobody looks after the health of the record. */
  readonly healthy: Condition | undefined
}

/**
 * Puts the endpoints of a delegating record into the authoritative one: the finalizer first, so that nothing is left
 * behind, and the status last. What is there as it should be is not written.
 */
export function planDelegate(
  publishing: Publishing,
  { authoritative, endpoints, healthy }: Delegation,
  nowMs: number,
): Plan {
  const { object, zone } = publishing
  const problem = findObstacle(object, authoritative)
  if (problem !== '') return planRefuse(object, failedCondition(problem), nowMs)
  const plan = planShare(object, authoritative, endpoints)
  if (plan.endpoints.length > DERIVED_ENDPOINTS_MAX) {
    const name = authoritativeName(hostOf(object))
    const text = `with its notes of ownership ${name} would have ${plan.endpoints.length} endpoints, of which a record can have ${DERIVED_ENDPOINTS_MAX}`
    return planRefuse(object, failedCondition(text), nowMs)
  }
  const shared = writeShared(object, authoritative, { plan, zone })
  const isNews = shared.length > 0
  const ready = judgeShare(publishing, plan, endpoints)
  const conditions = [ready, heldCondition(), ...(healthy === undefined ? [] : [healthy])]
  const changes: StatusFields = {
    writeCounter: countWrites(object, isNews),
    ownerID: ownerIdOf(object),
    domainOwners: plan.owners,
    zoneID: authoritativeName(hostOf(object)),
    zoneDomainName: sharedHost(hostOf(object)),
    ...(plan.conflicts.length === 0 ? { endpoints } : {}),
  }
  const status = composeStatus(object, conditions, changes, nowMs)
  const writes = [...planHold(object), ...shared, ...planStatus(object, status)]
  return { writes, ready, isNews }
}

/** Takes the endpoints of a record that is being deleted back, and lets it go. */
export function planWithdraw(
  object: ApiObject,
  authoritative: ApiObject | undefined,
  nowMs: number,
): Plan {
  const isOurs = authoritative !== undefined && findObstacle(object, authoritative) === ''
  if (!isOurs) return planRelease(object, [], nowMs)
  const plan = planShare(object, authoritative, [])
  return planRelease(object, writeShared(object, authoritative, { plan, zone: '' }), nowMs)
}

function planShare(
  object: ApiObject,
  authoritative: ApiObject | undefined,
  desired: readonly ApiObject[],
): EndpointPlan {
  const present = itemsOf(mappingOf(authoritative ?? {}, 'spec'), 'endpoints')
  return planEndpoints(present, {
    owner: ownerIdOf(object),
    group: '',
    rootHost: hostOf(object),
    desired,
    previous: itemsOf(mappingOf(object, 'status'), 'endpoints'),
  })
}

/** `zone`: '' = as it is. */
function writeShared(
  object: ApiObject,
  present: ApiObject | undefined,
  { plan, zone }: { readonly plan: EndpointPlan; readonly zone: string },
): Write[] {
  if (plan.endpoints.length === 0) {
    return present === undefined ? [] : [{ kind: 'drop', object: present }]
  }
  if (!plan.isChanged) return []
  const facts = {
    namespace: textOf(metadataOf(object), 'namespace'),
    rootHost: hostOf(object),
    provider: textOf(mappingOf(present ?? {}, 'spec').providerRef, 'name'),
    // What we said of it and don't repeat would go.
    zone: zone === '' ? labelOf(present ?? {}, ZONE_LABEL) : zone,
  }
  return [{ kind: 'put', object: composeAuthoritative(facts, plan.endpoints), over: present }]
}

function judgeShare(
  { rootHost }: Publishing,
  { conflicts }: EndpointPlan,
  endpoints: readonly ApiObject[],
): Condition {
  if (conflicts.length > 0) return failedCondition(conflicts.join('; '))
  if (endpoints.length === 0) return failedCondition(`no endpoints discovered for ${rootHost}`)
  return readyCondition()
}

/** Why what is there is not to be written to; '' = it is. */
function findObstacle(object: ApiObject, authoritative: ApiObject | undefined): string {
  if (authoritative === undefined) return ''
  const there = textOf(mappingOf(authoritative, 'spec'), 'rootHost')
  const isOfHost = there === sharedHost(hostOf(object))
  if (isAuthoritative(authoritative) && isOfHost) return ''
  const name = authoritativeName(hostOf(object))
  return isOfHost || !isAuthoritative(authoritative)
    ? `a DNSRecord ${name}, which no delegating record made, is in the way; rename it`
    : `${name} is of the host ${there}, which has the same hash`
}

function hostOf(object: ApiObject): string {
  return textOf(mappingOf(object, 'spec'), 'rootHost')
}
