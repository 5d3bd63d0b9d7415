import { printTime } from '../../base/rfc3339.ts'
import { type Plan, planRelease, planStatus } from '../plan/plan.ts'
import type { Write } from '../plan/write.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { removedCondition, removingCondition } from '../status/conditions.ts'
import { composeStatus } from '../status/status.ts'
import type { StatusFields } from '../status/status-fields.ts'
import {
  type Departure,
  findObstacle,
  planRemoval,
  writeAuthoritative,
} from './change-authoritative.ts'
import { decideRemoval, LET_GO_ANNOTATION, type Removal } from './remote-statuses.ts'

/**
 * Writes for a record that is being deleted. `againMs`: longest time until the next reconcile;
 * undefined = the record may be removed.
 */
interface FinalizePlan extends Plan {
  readonly againMs: number | undefined
}

/**
 * Removes the endpoints of a record that is being deleted, and releases the record once all other
 * clusters that used it have removed theirs, or `timeoutMs` has passed.
 */
export function planFinalize(
  record: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  timeoutMs: number,
  nowMs: number,
): FinalizePlan {
  const removals = removeContribution(record, authoritative, nowMs)
  const removal = decideRemoval(record, timeoutMs, nowMs)
  if (removal.kind === 'waiting') return planWait(record, removals, removal, nowMs)
  const plan = planRelease(record, removals, nowMs)
  // The condition reports the clusters that were not waited for.
  const ready = removal.note === '' ? undefined : removedCondition(removal.note)
  return { ...plan, ready, againMs: undefined }
}

/**
 * Removes the endpoints of a record that is being deleted in another cluster, and reports this in
 * its status. `record`: as `asSeenByCluster` returns it.
 */
export function planUndelegate(
  record: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  nowMs: number,
): Plan {
  const removals = removeContribution(record, authoritative, nowMs)
  const isKnown = Object.keys(record.status).length > 0
  const cleared: StatusFields = { endpoints: [], domainOwners: [] }
  const status = composeStatus(record, [removedCondition()], cleared, nowMs)
  // The other cluster does not wait for a record on which this cluster never reported.
  const report = isKnown || removals.length > 0 ? planStatus(record, status) : []
  return { writes: [...removals, ...report], ready: undefined, isChanged: removals.length > 0 }
}

/** Removes what owners have in an authoritative record after their delegating records are gone. */
export function planDepartures(
  authoritative: DnsRecordView,
  owners: readonly string[],
  timeMs: number,
): Write[] {
  return planLeave(
    authoritative,
    owners.map((owner) => ({ owner, previous: [] })),
    timeMs,
  )
}

function planLeave(
  authoritative: DnsRecordView,
  departures: readonly Departure[],
  timeMs: number,
): Write[] {
  if (departures.length === 0) return []
  const plan = planRemoval(authoritative, departures, { site: '', timeMs })
  return writeAuthoritative(authoritative, authoritative, plan)
}

function removeContribution(
  record: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  timeMs: number,
): Write[] {
  if (authoritative === undefined || findObstacle(record, authoritative) !== '') return []
  const { ownerId: owner, publishedEndpoints: previous } = record
  return planLeave(authoritative, [{ owner, previous }], timeMs)
}

function planWait(
  record: DnsRecordView,
  removals: readonly Write[],
  { clusters, untilMs }: Extract<Removal, { kind: 'waiting' }>,
  nowMs: number,
): FinalizePlan {
  const until = `${printTime(untilMs)}, or at once with the annotation ${LET_GO_ANNOTATION}: "true"`
  const removing = removingCondition(`waiting for ${clusters} until ${until}`)
  const status = composeStatus(record, [removing], { endpoints: [] }, nowMs)
  const writes = [...removals, ...planStatus(record, status)]
  return { writes, ready: undefined, isChanged: removals.length > 0, againMs: untilMs - nowMs }
}
