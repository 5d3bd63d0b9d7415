import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import { itemsOf, textsOf } from '../record/fields.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { endpointKey, readSpecEndpoints, type SpecEndpoint } from '../record/spec-endpoint.ts'
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
  /** Endpoints of the record that the cluster serves. */
  readonly endpoints: readonly SpecEndpoint[]
}

/**
 * True for a record whose own operator holds it until other clusters have removed what they derived
 * from it.
 */
export function isReadyForDelegation(record: DnsRecordView): boolean {
  return record.condition('ReadyForDelegation')?.status === 'True'
}

/**
 * Combines the reports of all clusters that work on a record: it is ready once all of them have its
 * current generation.
 */
export function decideRemotes(record: DnsRecordView): {
  ready: Condition
  owners: readonly string[]
  /** The endpoints with the targets that all of these clusters serve. */
  served: readonly SpecEndpoint[]
} {
  const statuses = readStatuses(record)
  const owners = [...new Set(statuses.flatMap((one) => one.owners))].sort()
  const served =
    statuses.length === 0
      ? []
      : record.endpoints.map((endpoint) => {
          const key = endpointKey(endpoint)
          const isServed = (target: string): boolean =>
            statuses.every(({ endpoints }) => {
              return endpoints.some(
                (one) => endpointKey(one) === key && one.targets.includes(target),
              )
            })
          return { ...endpoint, targets: endpoint.targets.filter(isServed) }
        })
  return { ready: decideReady(record, statuses), owners, served }
}

/** Whether a record that is being deleted may be removed, with regard to other clusters. */
export type Removal =
  /** `note`: clusters that were not waited for, and why; '' = none. */
  | { readonly kind: 'free'; readonly note: string }
  | { readonly kind: 'waiting'; readonly clusters: string; readonly untilMs: number }

export function decideRemoval(record: DnsRecordView, timeoutMs: number, nowMs: number): Removal {
  const waiting = readStatuses(record).filter(({ ready }) => ready?.reason !== REASONS.removed)
  if (waiting.length === 0) return { kind: 'free', note: '' }
  const clusters = nameClusters(waiting)
  if (record.annotation(LET_GO_ANNOTATION) === 'true') {
    return { kind: 'free', note: `annotation ${LET_GO_ANNOTATION}: not waiting for ${clusters}` }
  }
  const untilMs = (Date.parse(record.deletionTimestamp) || 0) + timeoutMs
  if (nowMs >= untilMs) return { kind: 'free', note: `timed out waiting for ${clusters}` }
  return { kind: 'waiting', clusters, untilMs }
}

function decideReady({ generation }: DnsRecordView, statuses: readonly RemoteStatus[]): Condition {
  if (statuses.length === 0) return awaitingCondition('no other cluster has reconciled it')
  const behind = statuses.filter((one) => one.observedGeneration !== generation)
  if (behind.length > 0) return awaitingCondition(`not yet reconciled by ${nameClusters(behind)}`)
  const unready = statuses.find(({ ready }) => ready?.status !== 'True')
  if (unready === undefined) return readyCondition()
  const { ready } = unready
  const text = textOf(ready, 'message') || 'no message'
  return foreignCondition(textOf(ready, 'reason'), `${nameClusters([unready])}: ${text}`)
}

function readStatuses(record: DnsRecordView): RemoteStatus[] {
  const { remoteRecordStatuses } = record.status
  if (!isObject(remoteRecordStatuses)) return []
  return Object.keys(remoteRecordStatuses)
    .sort()
    .map((cluster) => {
      const status = record.remoteStatus(cluster)
      const { observedGeneration } = status
      return {
        cluster,
        ready: itemsOf(status, 'conditions').find(({ type }) => type === 'Ready'),
        observedGeneration: typeof observedGeneration === 'number' ? observedGeneration : 0,
        owners: textsOf(status, 'domainOwners'),
        endpoints: readSpecEndpoints(itemsOf(status, 'endpoints')),
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
  const noun = statuses.length === 1 ? 'cluster' : 'clusters'
  return `${noun} ${names.join(', ')}${more === 0 ? '' : ` and ${more} more`}`
}
