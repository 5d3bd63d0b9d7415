import type { ApiObject } from '../../kube/api.ts'
import type { SiteFacts } from '../../records/site-facts.ts'
import type { RecordConflicts } from '../conflicts/record-conflicts.ts'
import { groupFields, isPassive, type Membership } from '../groups/membership.ts'
import type { DesiredRecord } from '../record/desired-record.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import {
  activeCondition,
  type Condition,
  type ConditionType,
  failedCondition,
  publishedCondition,
} from '../status/conditions.ts'
import { printCounts, type TargetCounts } from '../status/endpoint-counts.ts'
import { servedConditions } from '../status/served-conditions.ts'
import { composeStatus, countWrites } from '../status/status.ts'
import type { StatusFields } from '../status/status-fields.ts'
import type { Publishing } from './decide.ts'
import { composeLocal, composeMerged, findObstacle, isInPlace } from './desired.ts'
import {
  joinNotes,
  NO_CHANGE,
  type Plan,
  planHold,
  planRefuse,
  planRelease,
  planStatus,
} from './plan.ts'
import type { Write } from './write.ts'

/** The records that were derived from a record. */
export interface Derived {
  readonly local: DnsRecordView | undefined
  readonly merged: DnsRecordView | undefined
}

/** The endpoints to publish, in the form of `spec.endpoints`, and conditions. */
export interface Content {
  readonly local: readonly ApiObject[]
  readonly merged: readonly ApiObject[]
  /** What each record of each site contributes to them. */
  readonly facts: SiteFacts<ApiObject>
  /** For `status.peers`; undefined = the definition has no such field. */
  readonly peers: readonly ApiObject[] | undefined
  /** undefined = the health of the record is not probed. */
  readonly healthy: Condition | undefined
  /** Undefined = this cluster belongs to no group. */
  readonly membership: Membership | undefined
  /** Whether all endpoints that peers report are served. */
  readonly accepted: Condition
  /** Whether data of other sites is missing or contradictory. */
  readonly degraded: Condition
  /** Why no nameserver serves the zone; '' = one does, or it is not known. */
  readonly zoneFault: string
  /** Additional information in the Ready condition; '' = none. */
  readonly note: string
  /** Endpoints that are not served because of other records, and why. */
  readonly conflicts: RecordConflicts
  /** Undefined = the definition has no fields for it. */
  readonly counts: TargetCounts | undefined
}

const NOT_EXPORTED =
  'not exported to other sites: the host is too long for a name in the zone kdrnt'

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
  const { record } = publishing
  const local = composeLocal(publishing, content.local)
  if (typeof local === 'string') return planRefuse(record, failedCondition(local), nowMs)
  const merged = composeMerged(publishing, content.merged, content.facts, present.merged)
  if (typeof merged === 'string') return planRefuse(record, failedCondition(merged), nowMs)
  const foreign = [
    { desired: local, existing: present.local },
    { desired: merged.record, existing: present.merged },
  ].find(({ desired, existing }) => desired && findObstacle(existing, desired) === 'foreign')
  if (foreign !== undefined) {
    const text = `DNSRecord ${foreign.existing?.name} exists and is not derived from this record; rename it`
    return planRefuse(record, failedCondition(text), nowMs)
  }
  const derived = [
    ...(local === undefined ? [] : planDerived(present.local, local)),
    ...planDerived(present.merged, merged.record),
  ]
  const isChanged = derived.length > 0
  const notes = joinNotes(content.note, merged.note, local === undefined ? NOT_EXPORTED : '')
  const ready = decideReady(publishing, content, notes)
  const status = composePublishedStatus(publishing, content, { ready, isChanged, nowMs })
  return {
    writes: [...planHold(record), ...derived, ...planStatus(record, status)],
    ready,
    isChanged,
  }
}

function decideReady(
  { rootHost }: Publishing,
  { merged, membership, conflicts, zoneFault }: Content,
  notes: string,
): Condition {
  if (merged.length === 0) return failedCondition(`no endpoints discovered for ${rootHost}`)
  const { isWhole, texts, ofSites } = conflicts
  if (isWhole) return failedCondition([...texts, ...ofSites].join('; '))
  return publishedCondition({ isPassive: isPassive(membership), zoneFault }, notes)
}

/**
 * Deletes everything that was derived from a record that is being deleted, and releases the record.
 * Needs no provider and no peer.
 */
export function planRemove(record: DnsRecordView, present: Derived, nowMs: number): Plan {
  return planRelease(record, deleteDerived(record, present), nowMs)
}

/**
 * Deletes everything that was derived from a record that now belongs to another provider. Objects
 * of that provider are not touched.
 */
export function planHandOver(record: DnsRecordView, present: Derived): Plan {
  if (!record.isManaged) return NO_CHANGE
  const writes: Write[] = [
    ...deleteDerived(record, present),
    { kind: 'status', record, status: {} },
    { kind: 'leave', record },
  ]
  return { writes, ready: undefined, isChanged: true }
}

/** Deletes everything that was derived from a record whose names belong to other namespaces. `texts`: why. */
export function planDisown(
  record: DnsRecordView,
  present: Derived,
  texts: readonly string[],
  nowMs: number,
): Plan {
  const removals = deleteDerived(record, present)
  const ready = failedCondition(texts.join('; '))
  const conditions = [ready, ...servedConditions(record, texts)]
  const status = composeStatus(record, conditions, { endpoints: [] }, nowMs)
  const writes = [...removals, ...planStatus(record, status)]
  return { writes, ready, isChanged: removals.length > 0 }
}

function planDerived(existing: DnsRecordView | undefined, desired: DesiredRecord): Write[] {
  if (isInPlace(existing, desired)) return []
  const apply: Write = { kind: 'apply', record: desired }
  if (existing === undefined || findObstacle(existing, desired) === 'none') return [apply]
  return [{ kind: 'delete', record: existing }, apply]
}

function deleteDerived(record: DnsRecordView, { local, merged }: Derived): Write[] {
  return [local, merged]
    .filter((one) => one !== undefined)
    .filter((one) => one.role === 'derived' && one.isOwnedBy(record))
    .map((one) => ({ kind: 'delete', record: one }))
}

function composePublishedStatus(
  { record, zone, provider }: Publishing,
  { merged, peers, healthy, membership, accepted, degraded, counts, conflicts }: Content,
  { ready, isChanged, nowMs }: { ready: Condition; isChanged: boolean; nowMs: number },
): ApiObject {
  const changes: StatusFields = {
    writeCounter: countWrites(record, isChanged),
    endpoints: merged.filter(conflicts.isServed),
    ownerID: record.ownerId,
    providerRef: { name: provider.secretName },
    zoneID: zone,
    zoneDomainName: zone,
    ...groupFields(membership),
    ...(peers === undefined ? {} : { peers }),
    ...(counts === undefined ? {} : printCounts(counts)),
  }
  const conditions: (Condition | ConditionType)[] = [ready, healthy ?? 'Healthy']
  if (membership !== undefined) conditions.push(activeCondition(membership))
  conditions.push(...servedConditions(record, conflicts.texts))
  // Both conditions are absent until they first report something.
  const isKnown = ({ type }: Condition): boolean => record.condition(type) !== undefined
  if (isKnown(accepted) || !accepted.isTrue) conditions.push(accepted)
  if (isKnown(degraded) || degraded.isTrue) conditions.push(degraded)
  return composeStatus(record, conditions, changes, nowMs)
}
