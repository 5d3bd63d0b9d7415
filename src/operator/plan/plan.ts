import type { ApiObject } from '../../kube/api.ts'
import { SITES_ANNOTATION } from '../../records/site-facts.ts'
import { RECORD_FINALIZER } from '../record/labels.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { type Condition, removedCondition } from '../status/conditions.ts'
import { composeStatus, isStatusInPlace } from '../status/status.ts'
import type { StatusFields } from '../status/status-fields.ts'
import type { Write } from './write.ts'

/** The writes for a record, in this order, and its new Ready condition. */
export interface Plan {
  readonly writes: readonly Write[]
  readonly ready: Condition | undefined
  /** True if the published endpoints change. */
  readonly isChanged: boolean
}

export const NO_CHANGE: Plan = { writes: [], ready: undefined, isChanged: false }

/** Joins notes for the Ready condition; '' notes are skipped. */
export function joinNotes(...notes: readonly string[]): string {
  return notes.filter((note) => note !== '').join('; ')
}

/**
 * Adds the finalizer if it is missing. `report`: the annotation for other clusters, which is written with it; '' =
 * none.
 */
export function planHold(record: DnsRecordView, report = ''): Write[] {
  const isReported = report === '' || record.annotation(SITES_ANNOTATION) === report
  return record.isHeld && isReported ? [] : [{ kind: 'hold', record, report }]
}

/** Writes the status if it differs. */
export function planStatus(record: DnsRecordView, status: ApiObject): Write[] {
  return isStatusInPlace(record, status) ? [] : [{ kind: 'status', record, status }]
}

/** Reports why a record can't be published. Endpoints that are already published are kept. */
export function planRefuse(record: DnsRecordView, condition: Condition, nowMs: number): Plan {
  const status = composeStatus(record, [condition], {}, nowMs)
  return { writes: planStatus(record, status), ready: condition, isChanged: false }
}

/**
 * Releases a record that is being deleted, after `removals` have deleted what was derived from it.
 */
export function planRelease(
  record: DnsRecordView,
  removals: readonly Write[],
  nowMs: number,
): Plan {
  const hasPeers = record.status.peers !== undefined
  const cleared: StatusFields = { endpoints: [], ...(hasPeers ? { peers: [] } : {}) }
  const status = composeStatus(record, [removedCondition()], cleared, nowMs)
  // If the record is removed at once, no reader can see a status.
  const isKept = record.finalizers.some((one) => one !== RECORD_FINALIZER)
  const writes: Write[] = [
    ...removals,
    ...(isKept ? [{ kind: 'status', record, status } as const] : []),
    { kind: 'unhold', record },
  ]
  return { writes, ready: undefined, isChanged: true }
}
