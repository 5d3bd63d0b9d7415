import { type ApiObject, textOf } from '../kube/api.ts'
import { type Condition, failedCondition, readyCondition, removedCondition } from './conditions.ts'
import { isDerived, type Publishing } from './decide.ts'
import { composeLocal, composeMerged, findObstacle, isInPlace } from './desired.ts'
import { RECORD_FINALIZER } from './labels.ts'
import { finalizersOf, isManaged, isOwnedBy, itemsOf, mappingOf, metadataOf } from './object.ts'
import { composeStatus, isStatusInPlace, ownerIdOf, type StatusFields } from './status.ts'
import type { Write } from './write.ts'

/** What of a record is in the cluster beside itself. */
export interface Derived {
  readonly local: ApiObject | undefined
  readonly merged: ApiObject | undefined
}

/** What is to be published, as `spec.endpoints` has endpoints. */
export interface Content {
  readonly local: readonly ApiObject[]
  readonly merged: readonly ApiObject[]
  /** For `status.peers`; undefined = there is no such field. */
  readonly peers: readonly ApiObject[] | undefined
  /** undefined = nobody looks after the health of the record. */
  readonly healthy: Condition | undefined
  /** Whether all that peers report is served. */
  readonly accepted: Condition
  /** What a reader of the Ready condition should know beside; '' = nothing. */
  readonly note: string
}

/** What is to be done for a record, in this order, and what its Ready condition comes to. */
export interface Plan {
  readonly writes: readonly Write[]
  readonly ready: Condition | undefined
  /** True if what is published changes. */
  readonly isChanged: boolean
}

const NOTHING: Plan = { writes: [], ready: undefined, isChanged: false }

/**
 * Publishes a record: the finalizer first, so that nothing is left behind; what peers ask for; what is served; and the
 * status last. What is there as it should be is not written.
 */
export function planPublish(
  publishing: Publishing,
  present: Derived,
  content: Content,
  nowMs: number,
): Plan {
  const { object } = publishing
  const local = composeLocal(publishing, content.local)
  const merged = composeMerged(publishing, content.merged)
  const problem = [local, merged].find((one) => typeof one === 'string')
  const foreign = [
    { wanted: local, there: present.local },
    { wanted: merged, there: present.merged },
  ].find(({ wanted, there }) => {
    return typeof wanted === 'object' && findObstacle(there, wanted) === 'foreign'
  })
  if (problem !== undefined) return planRefuse(object, failedCondition(problem), nowMs)
  if (foreign !== undefined) {
    const name = textOf(metadataOf(foreign.there ?? {}), 'name')
    const text = `a DNSRecord ${name}, which was not made of this one, is in the way; rename it`
    return planRefuse(object, failedCondition(text), nowMs)
  }
  const derived = [
    ...(local === undefined ? [] : planDerived(present.local, local as ApiObject)),
    ...planDerived(present.merged, merged as ApiObject),
  ]
  const isChanged = derived.length > 0
  const ready =
    content.merged.length === 0
      ? failedCondition(`no endpoints discovered for ${publishing.rootHost}`)
      : readyCondition(joinNotes(content.note, local === undefined ? UNTOLD : ''))
  const status = composePublishedStatus(publishing, content, { ready, isChanged: isChanged, nowMs })
  return {
    writes: [...planHold(object), ...derived, ...planStatus(object, status)],
    ready,
    isChanged: isChanged,
  }
}

const UNTOLD = 'other sites are not told of it: its host is too long for a name in the zone kdrnt'

/** Notes for the Ready condition; '' says nothing. */
export function joinNotes(...notes: readonly string[]): string {
  return notes.filter((note) => note !== '').join('; ')
}

/** The finalizer, where it is missing. */
export function planHold(object: ApiObject): Write[] {
  const isHeld = finalizersOf(object).includes(RECORD_FINALIZER)
  return isHeld ? [] : [{ kind: 'hold', record: object }]
}

/** The status, where it is another. */
export function planStatus(object: ApiObject, status: ApiObject): Write[] {
  return isStatusInPlace(object, status) ? [] : [{ kind: 'status', record: object, status }]
}

function planDerived(present: ApiObject | undefined, wanted: ApiObject): Write[] {
  if (isInPlace(present, wanted)) return []
  const apply: Write = { kind: 'apply', object: wanted }
  if (present === undefined || findObstacle(present, wanted) === 'none') return [apply]
  return [{ kind: 'delete', object: present }, apply]
}

function composePublishedStatus(
  { object, zone, provider }: Publishing,
  { merged, peers, healthy, accepted }: Content,
  { ready, isChanged, nowMs }: { ready: Condition; isChanged: boolean; nowMs: number },
): ApiObject {
  const changes: StatusFields = {
    writeCounter: countWrites(object, isChanged),
    endpoints: merged,
    ownerID: ownerIdOf(object),
    providerRef: { name: provider.secretName },
    zoneID: zone,
    zoneDomainName: zone,
    ...(peers === undefined ? {} : { peers }),
  }
  const conditions = healthy === undefined ? [ready] : [ready, healthy]
  // The condition is absent until the first conflict or refusal.
  const isKnown = itemsOf(mappingOf(object, 'status'), 'conditions').some(
    ({ type }) => type === accepted.type,
  )
  if (isKnown || !accepted.isTrue) conditions.push(accepted)
  return composeStatus(object, conditions, changes, nowMs)
}

/** How often what is published of a record has changed. */
export function countWrites(object: ApiObject, isChanged: boolean): number {
  const { writeCounter } = mappingOf(object, 'status')
  const count = typeof writeCounter === 'number' ? writeCounter : 0
  return isChanged ? count + 1 : count
}

/** Says why a record can't be published. What is published of it stays. */
export function planRefuse(object: ApiObject, condition: Condition, nowMs: number): Plan {
  const status = composeStatus(object, [condition], {}, nowMs)
  return { writes: planStatus(object, status), ready: condition, isChanged: false }
}

/** Takes back all that was made of a record that is being deleted, and lets it go. Needs no provider and no peer. */
export function planRemove(object: ApiObject, present: Derived, nowMs: number): Plan {
  return planRelease(object, deleteDerived(object, present), nowMs)
}

/** Lets go a record that is being deleted, once `taken` has taken back what was made of it. */
export function planRelease(object: ApiObject, taken: readonly Write[], nowMs: number): Plan {
  const removed = removedCondition()
  const hasPeers = mappingOf(object, 'status').peers !== undefined
  const gone: StatusFields = { endpoints: [], ...(hasPeers ? { peers: [] } : {}) }
  const status = composeStatus(object, [removed], gone, nowMs)
  // Nobody gets to see it where the record goes at once.
  const stays = finalizersOf(object).some((one) => one !== RECORD_FINALIZER)
  const writes: Write[] = [
    ...taken,
    ...(stays ? [{ kind: 'status', record: object, status } as const] : []),
    { kind: 'unhold', record: object },
  ]
  return { writes, ready: undefined, isChanged: true }
}

/** Takes back all that was made of a record that is another provider's now, and nothing that is of that one. */
export function planHandOver(object: ApiObject, present: Derived): Plan {
  if (!isManaged(object)) return NOTHING
  return {
    writes: [
      ...deleteDerived(object, present),
      { kind: 'status', record: object, status: {} },
      { kind: 'leave', record: object },
    ],
    ready: undefined,
    isChanged: true,
  }
}

function deleteDerived(object: ApiObject, { local, merged }: Derived): Write[] {
  return [local, merged]
    .filter((one) => one !== undefined)
    .filter((one) => isDerived(one) && isOwnedBy(one, object))
    .map((one) => ({ kind: 'delete', object: one }))
}
