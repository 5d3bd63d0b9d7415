import type { EventRecorder } from '../../kube/event-recorder.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { OperatorMetrics } from '../metrics.ts'
import type { Plan } from '../plan/plan.ts'
import { subjectOf } from '../record/event-subject.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { shortHash } from '../record/short-hash.ts'
import { type Condition, REASONS } from '../status/conditions.ts'
import type { Troubles } from './compose-content.ts'
import type { ReconcileListener } from './reconciler.ts'

/** Lines about one record that are reported one by one. */
const TEXTS_MAX = 5
const CONFLICT = 'EndpointConflict'
const REFUSED = 'EndpointRefused'
const DISPUTED = 'HealthDisputed'
const RECORDS = 'RecordConflict'
const ZONE = 'ZoneNotServed'
/** What a log line says before the text. */
const PREFIXES: ReadonlyMap<string, string> = new Map([
  [CONFLICT, 'conflict with another site: '],
  [DISPUTED, 'sites disagree about health: '],
  [RECORDS, 'conflict with another record: '],
])

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

  reconciled(record: DnsRecordView, plan: Plan, troubles: Troubles): void {
    const { conflicts, leftOut, refused, disputed, records, zoneFault } = troubles
    const { ready } = plan
    if (ready === undefined) return
    const { key } = record
    this.#metrics.setRecord(record, ready.isTrue)
    const missing = leftOut.reduce((sum, { endpoints }) => sum + endpoints, 0)
    this.#metrics.setLeftOut(key, missing)
    this.#metrics.setDisputes(key, conflicts.length, refused.length, disputed.length)
    if (plan.isChanged) this.#metrics.countChange(key)
    this.#reportReady(record, ready)
    const texts = conflicts.map(({ text }) => text)
    this.#reportOnce(record, CONFLICT, texts)
    this.#reportOnce(record, REFUSED, refused)
    this.#reportOnce(record, DISPUTED, disputed)
    this.#reportOnce(record, RECORDS, records)
    this.#reportOnce(record, ZONE, zoneFault === '' ? [] : [zoneFault])
  }

  departed({ key }: DnsRecordView, owners: readonly string[]): void {
    const [verb, ids] = [owners.length === 1 ? 'record is' : 'records are', owners.join(', ')]
    this.#log.info(`dnsrecords ${key}: removing endpoints of owner ${ids}: its ${verb} gone`)
  }

  forgot(key: string): void {
    this.#metrics.dropRecord(key)
    for (const reason of [CONFLICT, REFUSED, DISPUTED, RECORDS, ZONE])
      this.#reported.delete(`${reason} ${key}`)
  }

  /** Compares with the condition in the record's status, so that a restart repeats no report. */
  #reportReady(record: DnsRecordView, ready: Condition): void {
    const before = record.condition('Ready')
    const isSame = before?.reason === ready.reason
    if (isSame && (ready.isTrue || before?.message === ready.message)) return
    this.#events.record(subjectOf(record), {
      type: ready.isTrue || ready.reason === REASONS.inactiveGroup ? 'Normal' : 'Warning',
      reason: ready.reason,
      action: 'Publish',
      note: ready.message,
    })
  }

  /** Reports each set of lines once, until it changes. */
  #reportOnce(record: DnsRecordView, reason: string, texts: readonly string[]): void {
    const key = `${reason} ${record.key}`
    const reported = texts.length === 0 ? '' : shortHash(texts.join('\n'))
    if (reported === (this.#reported.get(key) ?? '')) return
    if (reported === '') this.#reported.delete(key)
    else this.#reported.set(key, reported)
    for (const note of texts.slice(0, TEXTS_MAX)) {
      // One log line of the zone watch is enough for all records of the zone.
      if (reason !== ZONE) this.#log.warning(`${record.key}: ${PREFIXES.get(reason) ?? ''}${note}`)
      this.#events.record(subjectOf(record), { type: 'Warning', reason, action: 'Merge', note })
    }
  }
}
