import type { Logger } from '../../base/telemetry/log.ts'
import type { EventRecorder } from '../../kube/event-recorder.ts'
import type { OperatorMetrics } from '../metrics.ts'
import type { Plan } from '../plan/plan.ts'
import { subjectOf } from '../record/event-subject.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { shortHash } from '../record/short-hash.ts'
import { type Condition, printMessage, REASONS } from '../status/conditions.ts'
import type { Troubles } from './compose-content.ts'
import type { ReconcileListener } from './reconciler.ts'

/** Lines about one record that are reported one by one. */
const TEXTS_MAX = 5
const CONFLICT = 'EndpointConflict'
const REFUSED = 'EndpointRefused'
const DISPUTED = 'HealthDisputed'
const RECORDS = 'RecordConflict'
const NOT_OWNED = 'HostNotOwned'
const SITE_NAME = 'SiteNameConflict'
const CLOCK = 'ClockDiffers'
const IGNORED = 'PartIgnored'
const REASONS_ONCE = [CONFLICT, REFUSED, DISPUTED, RECORDS, NOT_OWNED, IGNORED, SITE_NAME, CLOCK]
/** Reasons whose lines are the same for many records: each line is logged once. */
const SHARED: ReadonlySet<string> = new Set([SITE_NAME, CLOCK])
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
  /** Lines that several records have, and the reason and key of each of these. */
  readonly #shared = new Map<string, Set<string>>()

  constructor(events: Pick<EventRecorder, 'record'>, metrics: OperatorMetrics, log: Logger) {
    this.#events = events
    this.#log = log
    this.#metrics = metrics
  }

  reconciled(record: DnsRecordView, plan: Plan, troubles: Troubles): void {
    const { conflicts, leftOut, refused, disputed, records, ignored, notOwned, sites } = troubles
    const { ready } = plan
    if (ready === undefined) return
    const { key } = record
    this.#metrics.setRecord(record, ready.isTrue)
    const missing = leftOut.reduce((sum, { endpoints }) => sum + endpoints, 0)
    this.#metrics.setLeftOut(key, missing)
    this.#metrics.setDisputes(key, conflicts.length, refused.length, disputed.length)
    this.#metrics.setNotOwned(key, notOwned.length)
    if (plan.isChanged) this.#metrics.countChange(key)
    this.#reportReady(record, ready)
    this.#reportOnce(record, CONFLICT, conflicts)
    this.#reportOnce(record, REFUSED, refused)
    this.#reportOnce(record, DISPUTED, disputed)
    this.#reportOnce(record, RECORDS, records)
    this.#reportOnce(record, IGNORED, ignored)
    this.#reportOnce(record, NOT_OWNED, notOwned)
    this.#reportOnce(record, SITE_NAME, sites.names)
    this.#reportOnce(record, CLOCK, sites.clocks)
  }

  departed({ key }: DnsRecordView, owners: readonly string[]): void {
    const ids = owners.join(', ')
    this.#log.info(
      `dnsrecords ${key}: removing endpoints of owner ${ids}: its record is gone`,
      'owner-departed',
    )
  }

  forgot(key: string): void {
    this.#metrics.dropRecord(key)
    for (const reason of SHARED) this.#shareTexts(key, reason, [])
    for (const reason of REASONS_ONCE) this.#reported.delete(`${reason} ${key}`)
  }

  /** Compares with the condition in the record's status, so that a restart repeats no report. */
  #reportReady(record: DnsRecordView, ready: Condition): void {
    const before = record.condition('Ready')
    const isSame = before?.reason === ready.reason
    if (isSame && (ready.isTrue || before?.message === printMessage(ready.message))) return
    this.#events.record(subjectOf(record), {
      type: ready.isTrue || ready.reason === REASONS.inactiveGroup ? 'Normal' : 'Warning',
      reason: ready.reason,
      action: 'Publish',
      note: ready.message,
    })
  }

  /** Faults of sites that some record sees, for the ready page and metrics. */
  get siteFaults(): readonly string[] {
    return [...this.#shared.keys()].sort()
  }

  /** Logs each line once, however many records have it. */
  #shareTexts(recordKey: string, reason: string, texts: readonly string[]): void {
    const id = `${reason} ${recordKey}`
    for (const [text, ids] of this.#shared) {
      if (!texts.includes(text)) ids.delete(id)
      if (ids.size === 0) this.#shared.delete(text)
    }
    for (const text of texts) {
      const ids = this.#shared.get(text)
      if (ids === undefined) this.#log.warning(text, 'record-share')
      this.#shared.set(text, (ids ?? new Set()).add(id))
    }
  }

  /** Reports each set of lines once, until it changes. */
  #reportOnce(record: DnsRecordView, reason: string, texts: readonly string[]): void {
    const key = `${reason} ${record.key}`
    const reported = texts.length === 0 ? '' : shortHash(texts.join('\n'))
    if (reported === (this.#reported.get(key) ?? '')) return
    if (reported === '') this.#reported.delete(key)
    else this.#reported.set(key, reported)
    const isShared = SHARED.has(reason)
    if (isShared) this.#shareTexts(record.key, reason, texts)
    for (const note of texts.slice(0, TEXTS_MAX)) {
      if (!isShared)
        this.#log.warning(`${record.key}: ${PREFIXES.get(reason) ?? ''}${note}`, 'record-problem')
      this.#events.record(subjectOf(record), { type: 'Warning', reason, action: 'Merge', note })
    }
  }
}
