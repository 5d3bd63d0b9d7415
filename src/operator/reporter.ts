import { type ApiObject, textOf } from '../kube/api.ts'
import type { EventRecorder } from '../kube/event-recorder.ts'
import type { EventSubject } from '../kube/event-series.ts'
import { keyOf } from '../kube/object-key.ts'
import type { MergeConflict } from '../peering/merge/merged-endpoint.ts'
import { API_VERSION } from '../record/dns-record.ts'
import type { OperatorMetrics } from './metrics.ts'
import { itemsOf, mappingOf, metadataOf } from './object.ts'
import type { Plan } from './plan.ts'
import type { Listener } from './reconcile.ts'

/** Disagreements of one record that are told one by one. */
const CONFLICTS_MAX = 5

/** Tells of what becomes of records, in Events and metrics. */
export class Reporter implements Listener {
  readonly #events: Pick<EventRecorder, 'record'>
  readonly #metrics: OperatorMetrics
  /** What was told of the conflicts of each record that has some. */
  readonly #conflicts = new Map<string, string>()

  constructor(events: Pick<EventRecorder, 'record'>, metrics: OperatorMetrics) {
    this.#events = events
    this.#metrics = metrics
  }

  looked(record: ApiObject, plan: Plan, conflicts: readonly MergeConflict[]): void {
    const { ready } = plan
    if (ready === undefined) return
    this.#metrics.setRecord(record, ready.isTrue)
    if (plan.isNews) this.#metrics.countChange(keyOf(record))
    this.#tellReady(record, ready)
    this.#tellConflicts(record, conflicts)
  }

  forgot(key: string): void {
    this.#metrics.dropRecord(key)
    this.#conflicts.delete(key)
  }

  /** What the record said before is in its status: so a restart tells nothing twice. */
  #tellReady(record: ApiObject, ready: NonNullable<Plan['ready']>): void {
    const conditions = itemsOf(mappingOf(record, 'status'), 'conditions')
    const before = conditions.find(({ type }) => type === 'Ready')
    const isSame = before?.reason === ready.reason
    if (isSame && (ready.isTrue || before?.message === ready.message)) return
    this.#events.record(subjectOf(record), {
      type: ready.isTrue ? 'Normal' : 'Warning',
      reason: ready.reason,
      action: 'Publish',
      note: ready.message,
    })
  }

  #tellConflicts(record: ApiObject, conflicts: readonly MergeConflict[]): void {
    const key = keyOf(record)
    const texts = conflicts.map(({ text }) => text)
    const told = texts.join('\n')
    if (told === (this.#conflicts.get(key) ?? '')) return
    if (told === '') this.#conflicts.delete(key)
    else this.#conflicts.set(key, told)
    for (const note of texts.slice(0, CONFLICTS_MAX)) {
      const happening = { type: 'Warning', reason: 'EndpointConflict', action: 'Merge' } as const
      this.#events.record(subjectOf(record), { ...happening, note })
    }
  }
}

function subjectOf(record: ApiObject): EventSubject {
  const metadata = metadataOf(record)
  return {
    apiVersion: API_VERSION,
    kind: 'DNSRecord',
    namespace: textOf(metadata, 'namespace'),
    name: textOf(metadata, 'name'),
    uid: textOf(metadata, 'uid'),
  }
}
