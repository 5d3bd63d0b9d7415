import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import { itemsOf, mappingOf, metadataOf } from '../record/object.ts'
import {
  awaitingCondition,
  type Condition,
  foreignCondition,
  REASONS,
  readyCondition,
} from '../status/conditions.ts'

/** Annotation that removes the finalizer at once, without waiting for other clusters. */
export const LET_GO_ANNOTATION = 'sextant.io/let-go'
/** Clusters that one message names. */
const NAMED_MAX = 5
/** Characters of a cluster's id in a message. */
const ID_CHARACTERS = 8

/** What another cluster reports on a record that it works on. */
interface RemoteStatus {
  /** UID of the namespace kube-system in that cluster. */
  readonly cluster: string
  readonly ready: ApiObject | undefined
  readonly observedGeneration: number
  readonly owners: readonly string[]
}

/** What the cluster `id` wrote into the status of a record; empty = nothing. */
export function remoteStatusOf(record: ApiObject, id: string): ApiObject {
  return mappingOf(mappingOf(mappingOf(record, 'status'), 'remoteRecordStatuses'), id)
}

/** The record as the cluster `id` sees it: with that cluster's status in place of its own. */
export function asSeenByCluster(record: ApiObject, id: string): ApiObject {
  return { ...record, status: remoteStatusOf(record, id) }
}

/**
 * True for a record whose own operator holds it until other clusters have removed what they derived
 * from it.
 */
export function isReadyForDelegation(record: ApiObject): boolean {
  return itemsOf(mappingOf(record, 'status'), 'conditions').some(
    ({ type, status }) => type === 'ReadyForDelegation' && status === 'True',
  )
}

/**
 * Combines the reports of all clusters that work on a record: it is ready once all of them have its
 * current generation.
 */
export function decideRemotes(record: ApiObject): { ready: Condition; owners: readonly string[] } {
  const statuses = readStatuses(record)
  const owners = [...new Set(statuses.flatMap((one) => one.owners))].sort()
  return { ready: decideStatuses(record, statuses), owners }
}

/** Whether a record that is being deleted may be removed, with regard to other clusters. */
export type Removal =
  /** `note`: clusters that were not waited for, and why; '' = none. */
  | { readonly kind: 'free'; readonly note: string }
  | { readonly kind: 'waiting'; readonly clusters: string; readonly untilMs: number }

export function decideRemoval(record: ApiObject, timeoutMs: number, nowMs: number): Removal {
  const waiting = readStatuses(record).filter(({ ready }) => ready?.reason !== REASONS.removed)
  if (waiting.length === 0) return { kind: 'free', note: '' }
  const clusters = nameClusters(waiting)
  const metadata = metadataOf(record)
  if (textOf(metadata.annotations, LET_GO_ANNOTATION) === 'true') {
    return { kind: 'free', note: `not waited for, by its annotation: ${clusters}` }
  }
  const sinceMs = Date.parse(textOf(metadata, 'deletionTimestamp')) || 0
  const untilMs = sinceMs + timeoutMs
  if (nowMs >= untilMs) return { kind: 'free', note: `waited for in vain: ${clusters}` }
  return { kind: 'waiting', clusters, untilMs }
}

function decideStatuses(record: ApiObject, statuses: readonly RemoteStatus[]): Condition {
  if (statuses.length === 0) return awaitingCondition('no other cluster has taken it up')
  const { generation } = metadataOf(record)
  const behind = statuses.filter((one) => one.observedGeneration !== generation)
  if (behind.length > 0) return awaitingCondition(`not looked at yet by ${nameClusters(behind)}`)
  const unready = statuses.find(({ ready }) => ready?.status !== 'True')
  if (unready === undefined) return readyCondition()
  const { ready } = unready
  const text = textOf(ready, 'message') || 'says nothing of it'
  return foreignCondition(textOf(ready, 'reason'), `${nameClusters([unready])}: ${text}`)
}

function readStatuses(record: ApiObject): RemoteStatus[] {
  const { remoteRecordStatuses } = mappingOf(record, 'status')
  if (!isObject(remoteRecordStatuses)) return []
  return Object.keys(remoteRecordStatuses)
    .sort()
    .map((cluster) => {
      const status = mappingOf(remoteRecordStatuses, cluster)
      const { observedGeneration, domainOwners } = status
      const owners = Array.isArray(domainOwners) ? domainOwners : []
      return {
        cluster,
        ready: itemsOf(status, 'conditions').find(({ type }) => type === 'Ready'),
        observedGeneration: typeof observedGeneration === 'number' ? observedGeneration : 0,
        owners: owners.filter((one) => typeof one === 'string'),
      }
    })
}

/** `cluster 1c2d3e4f…`, `clusters 1c2d3e4f…, 5a6b7c8d… and 3 more`. */
function nameClusters(statuses: readonly RemoteStatus[]): string {
  const names = statuses.slice(0, NAMED_MAX).map(({ cluster }) => {
    const id = cluster.replace(/[^\w.-]/g, '?')
    return id.length <= ID_CHARACTERS ? id : `${id.slice(0, ID_CHARACTERS)}…`
  })
  const more = statuses.length - names.length
  const word = statuses.length === 1 ? 'cluster' : 'clusters'
  return `${word} ${names.join(', ')}${more === 0 ? '' : ` and ${more} more`}`
}
