import { type ApiObject, textOf } from '../../kube/api.ts'
import { RECORD_FINALIZER } from '../record/labels.ts'
import {
  finalizersOf,
  isManaged,
  isOwnedBy,
  itemsOf,
  mappingOf,
  metadataOf,
} from '../record/object.ts'
import {
  type Condition,
  failedCondition,
  readyCondition,
  removedCondition,
} from '../status/conditions.ts'
import { composeStatus, isStatusInPlace, ownerIdOf, type StatusFields } from '../status/status.ts'
import { isDerived, type Publishing } from './decide.ts'
import { composeLocal, composeMerged, findObstacle, isInPlace } from './desired.ts'
import type { Write } from './write.ts'

/** The records that were derived from a record. */
export interface Derived {
  readonly local: ApiObject | undefined
  readonly merged: ApiObject | undefined
}

/** The endpoints to publish, in the form of `spec.endpoints`, and conditions. */
export interface Content {
  readonly local: readonly ApiObject[]
  readonly merged: readonly ApiObject[]
  /** For `status.peers`; undefined = the definition has no such field. */
  readonly peers: readonly ApiObject[] | undefined
  /** undefined = the health of the record is not probed. */
  readonly healthy: Condition | undefined
  /** Whether all endpoints that peers report are served. */
  readonly accepted: Condition
  /** Additional information in the Ready condition; '' = none. */
  readonly note: string
}

/** The writes for a record, in this order, and its new Ready condition. */
export interface Plan {
  readonly writes: readonly Write[]
  readonly ready: Condition | undefined
  /** True if the published endpoints change. */
  readonly isChanged: boolean
}

const NOTHING: Plan = { writes: [], ready: undefined, isChanged: false }

/**
 * Publishes a record. The finalizer is written first, so that nothing is left behind; then the
 * records that peers query and that are served; the status last. Whatever is already in place is
 * not written.
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

const UNTOLD =
  'it is not exported to other sites: its host is too long for a name in the zone kdrnt'

/** Joins notes for the Ready condition; '' notes are skipped. */
export function joinNotes(...notes: readonly string[]): string {
  return notes.filter((note) => note !== '').join('; ')
}

/** Adds the finalizer if it is missing. */
export function planHold(object: ApiObject): Write[] {
  const isHeld = finalizersOf(object).includes(RECORD_FINALIZER)
  return isHeld ? [] : [{ kind: 'hold', record: object }]
}

/** Writes the status if it differs. */
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

/** Number of changes to the published endpoints of a record. */
export function countWrites(object: ApiObject, isChanged: boolean): number {
  const { writeCounter } = mappingOf(object, 'status')
  const count = typeof writeCounter === 'number' ? writeCounter : 0
  return isChanged ? count + 1 : count
}

/** Reports why a record can't be published. Endpoints that are already published are kept. */
export function planRefuse(object: ApiObject, condition: Condition, nowMs: number): Plan {
  const status = composeStatus(object, [condition], {}, nowMs)
  return { writes: planStatus(object, status), ready: condition, isChanged: false }
}

/**
 * Deletes everything that was derived from a record that is being deleted, and releases the record.
 * Needs no provider and no peer.
 */
export function planRemove(object: ApiObject, present: Derived, nowMs: number): Plan {
  return planRelease(object, deleteDerived(object, present), nowMs)
}

/**
 * Releases a record that is being deleted, after the writes in `taken` have deleted what was
 * derived from it.
 */
export function planRelease(object: ApiObject, taken: readonly Write[], nowMs: number): Plan {
  const removed = removedCondition()
  const hasPeers = mappingOf(object, 'status').peers !== undefined
  const gone: StatusFields = { endpoints: [], ...(hasPeers ? { peers: [] } : {}) }
  const status = composeStatus(object, [removed], gone, nowMs)
  // If the record is removed at once, no reader can see a status.
  const stays = finalizersOf(object).some((one) => one !== RECORD_FINALIZER)
  const writes: Write[] = [
    ...taken,
    ...(stays ? [{ kind: 'status', record: object, status } as const] : []),
    { kind: 'unhold', record: object },
  ]
  return { writes, ready: undefined, isChanged: true }
}

/**
 * Deletes everything that was derived from a record that now belongs to another provider. Objects
 * of that provider are not touched.
 */
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
