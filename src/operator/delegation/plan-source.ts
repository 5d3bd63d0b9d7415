import { DERIVED_ENDPOINTS_MAX } from '../../dnsrecord/dns-record.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { isAuthoritative, type Publishing } from '../plan/decide.ts'
import {
  countWrites,
  type Plan,
  planHold,
  planRefuse,
  planRelease,
  planStatus,
} from '../plan/plan.ts'
import type { Write } from '../plan/write.ts'
import { ZONE_LABEL } from '../record/labels.ts'
import { itemsOf, labelOf, mappingOf, metadataOf } from '../record/object.ts'
import {
  type Condition,
  failedCondition,
  heldCondition,
  printTime,
  readyCondition,
  removedCondition,
  removingCondition,
} from '../status/conditions.ts'
import { composeStatus, ownerIdOf, type StatusFields } from '../status/status.ts'
import {
  authoritativeHost,
  authoritativeName,
  composeAuthoritative,
} from './authoritative-record.ts'
import { type EndpointPlan, planEndpoints } from './plan-endpoints.ts'
import { decideRemoval, LET_GO_ANNOTATION, type Removal } from './remote-statuses.ts'

/** What exists for a delegating record, and what it contributes. */
export interface Delegation {
  readonly authoritative: ApiObject | undefined
  /** What the record wants in the authoritative record. */
  readonly endpoints: readonly ApiObject[]
  /** undefined = the health of the record is not probed. */
  readonly healthy: Condition | undefined
  /** Short id of the record's cluster; '' = this one. */
  readonly cluster: string
}

/**
 * Puts the endpoints of a delegating record into the authoritative record. The finalizer is written
 * first, so that nothing is left behind, and the status last. Whatever is already in place is not
 * written. For a record of another cluster, which that cluster's operator holds, `publishing` has
 * the form that `asSeenByCluster` returns.
 */
export function planDelegate(
  publishing: Publishing,
  { authoritative, endpoints, healthy, cluster }: Delegation,
  nowMs: number,
): Plan {
  const { object, zone } = publishing
  const isOurs = cluster === ''
  const problem = findObstacle(object, authoritative)
  if (problem !== '') return planRefuse(object, failedCondition(problem), nowMs)
  const plan = planShare(object, authoritative, endpoints, cluster)
  if (plan.endpoints.length > DERIVED_ENDPOINTS_MAX) {
    const name = authoritativeName(hostOf(object))
    const text = `with its notes of ownership ${name} would have ${plan.endpoints.length} endpoints, of which a record can have ${DERIVED_ENDPOINTS_MAX}`
    return planRefuse(object, failedCondition(text), nowMs)
  }
  const shared = writeShared(object, authoritative, { plan, zone })
  const isChanged = shared.length > 0
  const ready = decideEndpoints(publishing, plan, endpoints)
  const conditions = [
    ready,
    ...(isOurs ? [heldCondition()] : []),
    ...(healthy === undefined ? [] : [healthy]),
  ]
  const changes: StatusFields = {
    writeCounter: countWrites(object, isChanged),
    ownerID: ownerIdOf(object),
    domainOwners: plan.owners,
    zoneID: authoritativeName(hostOf(object)),
    zoneDomainName: authoritativeHost(hostOf(object)),
    ...(plan.conflicts.length === 0 ? { endpoints } : {}),
  }
  const status = composeStatus(object, conditions, changes, nowMs)
  const hold = isOurs ? planHold(object) : []
  const writes = [...hold, ...shared, ...planStatus(object, status)]
  return { writes, ready, isChanged: isChanged }
}

/**
 * Writes for a record that is being deleted. `againMs`: longest time until the next reconcile;
 * undefined = the record may be removed.
 */
export interface FinalizePlan extends Plan {
  readonly againMs: number | undefined
}

/**
 * Removes the endpoints of a record that is being deleted, and releases the record once all other
 * clusters that used it have removed theirs, or `timeoutMs` has passed.
 */
export function planFinalize(
  object: ApiObject,
  authoritative: ApiObject | undefined,
  timeoutMs: number,
  nowMs: number,
): FinalizePlan {
  const taken = removeOwnedEndpoints(object, authoritative)
  const removal = decideRemoval(object, timeoutMs, nowMs)
  if (removal.kind === 'waiting') return planWait(object, taken, { ...removal, nowMs })
  const plan = planRelease(object, taken, nowMs)
  // The condition reports the clusters that were not waited for.
  const ready = removal.note === '' ? undefined : removedCondition(removal.note)
  return { ...plan, ready, againMs: undefined }
}

/**
 * Removes the endpoints of a record that is being deleted in another cluster, and reports this in
 * its status.
 */
export function planUndelegate(
  seenObject: ApiObject,
  authoritative: ApiObject | undefined,
  nowMs: number,
): Plan {
  const taken = removeOwnedEndpoints(seenObject, authoritative)
  const isKnown = Object.keys(mappingOf(seenObject, 'status')).length > 0
  const gone: StatusFields = { endpoints: [], domainOwners: [] }
  const status = composeStatus(seenObject, [removedCondition()], gone, nowMs)
  // The other cluster does not wait for a record on which this cluster never reported.
  const reported = isKnown || taken.length > 0 ? planStatus(seenObject, status) : []
  return { writes: [...taken, ...reported], ready: undefined, isChanged: taken.length > 0 }
}

/** Removes what owners have in an authoritative record after their delegating records are gone. */
export function planDepartures(authoritative: ApiObject, owners: readonly string[]): Write[] {
  const rootHost = hostOf(authoritative)
  let plan: EndpointPlan | undefined
  for (const owner of owners) {
    const endpoints = plan?.endpoints ?? itemsOf(mappingOf(authoritative, 'spec'), 'endpoints')
    const wanted = { owner, group: '', cluster: '', rootHost, desired: [], previous: [] }
    const next = planEndpoints(endpoints, wanted)
    plan = { ...next, isChanged: next.isChanged || plan?.isChanged === true }
  }
  return plan === undefined ? [] : writeShared(authoritative, authoritative, { plan, zone: '' })
}

function removeOwnedEndpoints(object: ApiObject, authoritative: ApiObject | undefined): Write[] {
  if (authoritative === undefined || findObstacle(object, authoritative) !== '') return []
  const plan = planShare(object, authoritative, [])
  return writeShared(object, authoritative, { plan, zone: '' })
}

function planWait(
  object: ApiObject,
  taken: readonly Write[],
  { clusters, untilMs, nowMs }: Extract<Removal, { kind: 'waiting' }> & { nowMs: number },
): FinalizePlan {
  const until = `${printTime(untilMs)}, or at once with the annotation ${LET_GO_ANNOTATION}: "true"`
  const removing = removingCondition(`waiting for ${clusters} until ${until}`)
  const status = composeStatus(object, [removing], { endpoints: [] }, nowMs)
  const writes = [...taken, ...planStatus(object, status)]
  return { writes, ready: undefined, isChanged: taken.length > 0, againMs: untilMs - nowMs }
}

function planShare(
  object: ApiObject,
  authoritative: ApiObject | undefined,
  desired: readonly ApiObject[],
  cluster = '',
): EndpointPlan {
  const present = itemsOf(mappingOf(authoritative ?? {}, 'spec'), 'endpoints')
  return planEndpoints(present, {
    owner: ownerIdOf(object),
    group: '',
    cluster,
    rootHost: hostOf(object),
    desired,
    previous: itemsOf(mappingOf(object, 'status'), 'endpoints'),
  })
}

/** `zone`: '' = unchanged. */
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
    // Server-side apply removes fields that were ours and are missing from the new object.
    zone: zone === '' ? labelOf(present ?? {}, ZONE_LABEL) : zone,
  }
  return [{ kind: 'put', object: composeAuthoritative(facts, plan.endpoints), over: present }]
}

function decideEndpoints(
  { rootHost }: Publishing,
  { conflicts }: EndpointPlan,
  endpoints: readonly ApiObject[],
): Condition {
  if (conflicts.length > 0) return failedCondition(conflicts.join('; '))
  if (endpoints.length === 0) return failedCondition(`no endpoints discovered for ${rootHost}`)
  return readyCondition()
}

/** Why the existing object must not be written to; '' = it may be. */
function findObstacle(object: ApiObject, authoritative: ApiObject | undefined): string {
  if (authoritative === undefined) return ''
  const there = textOf(mappingOf(authoritative, 'spec'), 'rootHost')
  const isOfHost = there === authoritativeHost(hostOf(object))
  if (isAuthoritative(authoritative) && isOfHost) return ''
  const name = authoritativeName(hostOf(object))
  return isOfHost || !isAuthoritative(authoritative)
    ? `a DNSRecord ${name}, which no delegating record made, is in the way; rename it`
    : `${name} is of the host ${there}, which has the same hash`
}

function hostOf(object: ApiObject): string {
  return textOf(mappingOf(object, 'spec'), 'rootHost')
}
