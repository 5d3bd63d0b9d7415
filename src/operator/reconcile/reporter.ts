import { API_VERSION } from '../../dnsrecord/dns-record.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import type { EventRecorder } from '../../kube/event-recorder.ts'
import type { EventSubject } from '../../kube/event-series.ts'
import { keyOf } from '../../kube/object-key.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { OperatorMetrics } from '../metrics.ts'
import type { Plan } from '../plan/plan.ts'
import { itemsOf, mappingOf, metadataOf } from '../record/object.ts'
import { shortHash } from '../record/short-hash.ts'
import type { ReconcileListener, Troubles } from './reconciler.ts'

/** Lines about one record that are reported one by one. */
const TEXTS_MAX = 5
const CONFLICT = 'EndpointConflict'
const REFUSED = 'EndpointRefused'

/** Reports the results of reconciles in Events, metrics and the log. */
export class Reporter implements ReconcileListener {
  readonly #events: Pick<EventRecorder, 'record'>
  readonly #metrics: OperatorMetrics
  readonly #log: Logger
  /** By reason and record: hash of the last report. */
  readonly #reported = new Map<string, string>()

  constructor(events: Pick<EventRecorder, 'record'>, metrics: OperatorMetrics, log: Logger) {
    this.#events = events
    this.#log = log
    this.#metrics = metrics
  }

  reconciled(record: ApiObject, plan: Plan, { conflicts, leftOut, refused }: Troubles): void {
    const { ready } = plan
    if (ready === undefined) return
    this.#metrics.setRecord(record, ready.isTrue)
    const missing = leftOut.reduce((sum, { endpoints }) => sum + endpoints, 0)
    this.#metrics.setLeftOut(keyOf(record), missing)
    this.#metrics.setDisputes(keyOf(record), conflicts.length, refused.length)
    if (plan.isChanged) this.#metrics.countChange(keyOf(record))
    this.#reportReady(record, ready)
    const texts = conflicts.map(({ text }) => text)
    this.#reportOnce(record, CONFLICT, texts)
    this.#reportOnce(record, REFUSED, refused)
  }

  forgot(key: string): void {
    this.#metrics.dropRecord(key)
    for (const reason of [CONFLICT, REFUSED]) this.#reported.delete(`${reason} ${key}`)
  }

  /** Compares with the condition in the record's status, so that a restart repeats no report. */
  #reportReady(record: ApiObject, ready: NonNullable<Plan['ready']>): void {
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

  /** Reports each set of lines once, until it changes. */
  #reportOnce(record: ApiObject, reason: string, texts: readonly string[]): void {
    const key = `${reason} ${keyOf(record)}`
    const reported = texts.length === 0 ? '' : shortHash(texts.join('\n'))
    if (reported === (this.#reported.get(key) ?? '')) return
    if (reported === '') this.#reported.delete(key)
    else this.#reported.set(key, reported)
    for (const note of texts.slice(0, TEXTS_MAX)) {
      this.#log.warning(
        `${keyOf(record)}: ${reason === CONFLICT ? 'conflict with another site: ' : ''}${note}`,
      )
      this.#events.record(subjectOf(record), { type: 'Warning', reason, action: 'Merge', note })
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
