import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { FaultLog } from '../../base/telemetry/fault-log.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { findChange, logChange } from '../../health/probes/print-change.ts'
import type { Prober } from '../../health/probes/probe.ts'
import { type ProbeResult, ProbeRunner } from '../../health/probes/probe-runner.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import type { EventRecorder } from '../../kube/event-recorder.ts'
import type { Informer } from '../../kube/informer.ts'
import { keyOf } from '../../kube/object-key.ts'
import type { ObjectRef, Objects } from '../../kube/objects.ts'
import { TokenBucket } from '../../kube/token-bucket.ts'
import { WorkQueue, type WorkResult } from '../../kube/work-queue.ts'
import { subjectOf } from '../record/event-subject.ts'
import {
  finalizersOf,
  isDeleting,
  isManaged,
  isSame,
  mappingOf,
  metadataOf,
} from '../record/fields.ts'
import { DnsRecordView } from '../record/record-view.ts'
import { PROBES } from '../record/resources.ts'
import {
  desiredProbes,
  isControlled,
  PROBE_FINALIZER,
  planProbes,
  withFreeNames,
} from './desired-probes.ts'
import { composeStatus, readState, scanProbe, statusOf, versionOf } from './probe-status.ts'

/** Prefixes of the queue's keys for records and for probes. No Kubernetes name contains a space. */
const RECORD_PREFIX = 'record '
const PROBE_PREFIX = 'probe '
const WORKERS = 8
/** Log lines about addresses that go up or down: at once, and the time for one more. */
const LINES_MAX = 100
const LINE_EVERY_MS = 1000
/** Reasons of the Events about addresses, by their new health. */
const EVENT_REASONS = { up: 'AddressUp', down: 'AddressDown', unknown: 'AddressUnknown' } as const

interface ClusterProbingParts {
  readonly objects: Objects
  /** DNSRecords with their complete `spec`. */
  readonly records: Informer
  /** DNSHealthCheckProbes, as `trimObject` returns them. */
  readonly probes: Informer
  /** Undefined = probing is disabled: results of earlier probes are removed. */
  readonly probe: Prober | undefined
  /**
   * True if this operator probes for a record. Secrets may change this; then `reconsider` must be
   * called.
   */
  readonly isOurs: (record: DnsRecordView) => boolean
  /** Whether the checks of records skip the verification of certificates. */
  readonly allowsInsecureCertificates: boolean
  /** Must be called before each write. */
  readonly mayWrite: () => boolean
  readonly events: Pick<EventRecorder, 'record'>
  /** Called after every probe, for metrics. */
  readonly onResult: (result: ProbeResult) => void
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

/** What was written to a probe, until the informer reports it. */
interface Written {
  readonly status: ApiObject
  readonly version: number
}

/**
 * Probes for a cluster: creates the DNSHealthCheckProbes that records ask for, probes the address
 * of each existing one, and writes the result into its status. Servers and operators read it there.
 *
 *     record ─▶ desired probes ─▶ applied          probe ─▶ runner ─▶ its status, where it changed
 *
 * The status is the only persistent state, and the next leader continues from it. Only one operator
 * may run this at a time.
 */
export class ClusterProbing {
  readonly #parts: ClusterProbingParts
  readonly #runner: ProbeRunner
  readonly #queue: WorkQueue
  readonly #written = new Map<string, Written>()
  /** Keys of probes by the key of their record, and the reverse. */
  readonly #byRecord = new Map<string, Set<string>>()
  readonly #recordOf = new Map<string, string>()
  readonly #faults: FaultLog
  readonly #lines: TokenBucket
  /** Changes since the last log line that were not logged. */
  #unlogged = 0
  readonly #unsubscribe: readonly (() => void)[]

  /** The informers must be synced. */
  constructor(parts: ClusterProbingParts) {
    this.#parts = parts
    const { clock, timers, random, log, probe, records, probes } = parts
    this.#faults = new FaultLog(log, clock)
    this.#lines = new TokenBucket(clock, LINES_MAX, LINE_EVERY_MS)
    this.#runner = new ProbeRunner({
      clock,
      timers,
      random,
      probe: probe ?? neverProbe,
      onResult: (result) => this.#note(result),
    })
    const work = (key: string): Promise<WorkResult | undefined> => this.#work(key)
    const env = { clock, timers, random, log }
    this.#queue = new WorkQueue({ what: PROBES.plural, work, workers: WORKERS, ...env })
    this.#unsubscribe = [
      probes.subscribe({
        onAdd: (key, object) => this.#putProbe(key, object),
        onUpdate: (key, object, before) => {
          // The health check may be the same as before: the status reports the new generation after
          // the next probe.
          if (!isSame(before.spec, object.spec)) this.#written.delete(key)
          this.#putProbe(key, object)
        },
        onDelete: (key) => this.#dropProbe(key),
        onReturn: () => this.#queue.retryFailed(),
      }),
      records.subscribe({
        onAdd: (key) => this.reconsider(key),
        onUpdate: (key, object, before) => {
          if (!isSame(object.spec, before.spec) || isDeleting(object)) this.reconsider(key)
        },
        onDelete: (key) => this.reconsider(key),
      }),
    ]
    this.#queue.start()
  }

  /** For metrics. */
  get runner(): ProbeRunner {
    return this.#runner
  }

  /** `namespace/name` of the record that a probe belongs to. */
  recordOf(id: string): string {
    return this.#recordOf.get(id) ?? ''
  }

  /** Reconciles the probes of the record `namespace/name` again. */
  reconsider(recordKey: string): void {
    this.#queue.add(`${RECORD_PREFIX}${recordKey}`)
  }

  /** Stops all probes; resolves once the running write has ended. */
  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#runner.close()
    await this.#queue.close()
  }

  get #isDisabled(): boolean {
    return this.#parts.probe === undefined
  }

  #note(result: ProbeResult): void {
    this.#parts.onResult(result)
    this.#queue.add(`${PROBE_PREFIX}${result.probe.id}`)
    this.#reportChange(result)
  }

  /** The log lines are bounded for all records together, and the recorder bounds the Events. */
  #reportChange({ probe, before, after }: ProbeResult): void {
    const { log, events } = this.#parts
    const change = findChange(before, after)
    if (change === undefined) return
    const record = this.#recordAt(this.recordOf(probe.id))
    const [reason, isUp] = [EVENT_REASONS[change.health], change.health === 'up']
    const note = `${probe.address} ${change.text}`
    if (record !== undefined) {
      const type = isUp ? 'Normal' : 'Warning'
      events.record(subjectOf(record), { type, reason, action: 'Probe', note })
    }
    if (!this.#lines.take()) {
      this.#unlogged++
      return
    }
    if (this.#unlogged > 0)
      log.warning(`and ${this.#unlogged} more addresses went up or down`, 'address-changes-more')
    this.#unlogged = 0
    logChange(log, `${probe.address} of ${this.recordOf(probe.id)}`, after)
  }

  #putProbe(key: string, object: ApiObject): void {
    const scanned = scanProbe(object)
    if (typeof scanned === 'string') {
      if (scanned === '') this.#faults.clear(key)
      else this.#faults.report(key, `${key}: not probed: ${scanned}`)
      this.#unlink(key)
      this.#runner.remove(key)
      if (isDeleting(object)) this.#queue.add(`${PROBE_PREFIX}${key}`)
      return
    }
    this.#faults.clear(key)
    const { probe, recordKey } = scanned
    if (this.#recordOf.get(key) !== recordKey) this.#unlink(key)
    this.#recordOf.set(key, recordKey)
    const keys = this.#byRecord.get(recordKey) ?? new Set<string>()
    this.#byRecord.set(recordKey, keys.add(key))
    const record = this.#recordAt(recordKey)
    if (record === undefined || !this.#parts.isOurs(record)) this.#runner.remove(key)
    else if (this.#isDisabled) this.#queue.add(`${PROBE_PREFIX}${key}`)
    else this.#runner.put(probe, readState(object, this.#parts.clock.now()))
  }

  #dropProbe(key: string): void {
    const recordKey = this.#recordOf.get(key)
    this.#unlink(key)
    this.#written.delete(key)
    this.#faults.clear(key)
    this.#runner.remove(key)
    // The record may still need the probe.
    if (recordKey !== undefined) this.reconsider(recordKey)
  }

  #unlink(key: string): void {
    const recordKey = this.#recordOf.get(key)
    if (recordKey === undefined) return
    this.#recordOf.delete(key)
    const keys = this.#byRecord.get(recordKey)
    keys?.delete(key)
    if (keys?.size === 0) this.#byRecord.delete(recordKey)
  }

  async #work(key: string): Promise<undefined> {
    if (!this.#parts.mayWrite()) return
    if (key.startsWith(RECORD_PREFIX)) await this.#makeProbes(key.slice(RECORD_PREFIX.length))
    else await this.#settleProbe(key.slice(PROBE_PREFIX.length))
  }

  async #makeProbes(key: string): Promise<void> {
    const { probes, objects, allowsInsecureCertificates, isOurs } = this.#parts
    const record = this.#recordAt(key)
    const present = this.#probesOf(key)
    for (const probe of present) this.#putProbe(keyOf(probe), probe)
    if (record === undefined) {
      this.#faults.clear(`${RECORD_PREFIX}${key}`)
      for (const probe of present) if (isControlled(probe)) await this.#delete(probe)
      return
    }
    if (this.#isDisabled) {
      const stale = present.filter((probe) => isOurs(record) || isManaged(probe))
      for (const probe of planProbes(record, [], stale).remove) await this.#delete(probe)
      return
    }
    if (!isOurs(record) && !record.isDeleting) return
    const asked = desiredProbes(record, allowsInsecureCertificates)
    const desired = withFreeNames(record, asked, (name) => probes.get(name))
    const namesakes = desired.map((probe) => probes.get(keyOf(probe)))
    const known = [...present, ...namesakes.filter((probe) => probe !== undefined)]
    const { apply, remove, taken } = planProbes(record, desired, known)
    for (const probe of apply) await objects.apply(refOf(probe), probe)
    for (const probe of remove) await this.#delete(probe)
    if (taken.length === 0) this.#faults.clear(`${RECORD_PREFIX}${key}`)
    else this.#faults.report(`${RECORD_PREFIX}${key}`, printTaken(key, taken))
  }

  #recordAt(key: string): DnsRecordView | undefined {
    const object = this.#parts.records.get(key)
    return object && new DnsRecordView(object)
  }

  #probesOf(recordKey: string): readonly ApiObject[] {
    const keys = [...(this.#byRecord.get(recordKey) ?? [])]
    return keys.map((key) => this.#parts.probes.get(key)).filter((probe) => probe !== undefined)
  }

  async #delete(probe: ApiObject): Promise<void> {
    const uid = textOf(metadataOf(probe), 'uid')
    await this.#parts.objects.delete(refOf(probe), { uid })
  }

  async #settleProbe(key: string): Promise<void> {
    const { probes, objects } = this.#parts
    const object = probes.get(key)
    if (object === undefined) return
    if (isDeleting(object)) return this.#releaseProbe(object)
    if (this.#isDisabled) return this.#releaseStatus(object)
    const [probe, state] = [this.#runner.probeOf(key), this.#runner.stateOf(key)]
    if (probe === undefined || state === undefined) return
    const status = composeStatus(object, probe, state)
    const written = this.#written.get(key)
    const isStale = written !== undefined && versionOf(object) < written.version
    if (isSame(isStale ? written.status : mappingOf(object, 'status'), status)) return
    const after = await objects.applyStatus(refOf(object), statusOf(object, status))
    this.#written.set(key, { status, version: versionOf(after) })
  }

  /** Removes the result that this operator wrote. Results of other programs are kept. */
  async #releaseStatus(object: ApiObject): Promise<void> {
    if (!isManaged(object) || mappingOf(object, 'status').healthy === undefined) return
    await this.#parts.objects.applyStatus(refOf(object), statusOf(object, { reason: DISABLED }))
  }

  /** Removes the finalizer of a probe that is no longer run. */
  async #releaseProbe(object: ApiObject): Promise<void> {
    const finalizers = finalizersOf(object)
    if (!finalizers.includes(PROBE_FINALIZER)) return
    const rest = finalizers.filter((one) => one !== PROBE_FINALIZER)
    const resourceVersion = textOf(metadataOf(object), 'resourceVersion')
    await this.#parts.objects.patch(refOf(object), {
      metadata: { resourceVersion, finalizers: rest },
    })
  }
}

/** The reason in the status of a probe whose result was removed. */
const DISABLED = 'the operator runs with --enable-probes=false'
const neverProbe: Prober = async () => ({ kind: 'skipped', reason: DISABLED })

/** Names of one record's conflicting probes that are reported. */
const NAMES_MAX = 3

function printTaken(key: string, taken: readonly string[]): string {
  const names = taken.slice(0, NAMES_MAX).join(', ')
  const more = taken.length > NAMES_MAX ? ` and ${taken.length - NAMES_MAX} more` : ''
  const count = taken.length === 1 ? '1 address' : `${taken.length} addresses`
  return `${key}: ${count} not probed: another owner has DNSHealthCheckProbe ${names}${more}`
}

function refOf(object: ApiObject): ObjectRef {
  const metadata = metadataOf(object)
  const [namespace, name] = [textOf(metadata, 'namespace'), textOf(metadata, 'name')]
  return { resource: PROBES, namespace, name }
}
