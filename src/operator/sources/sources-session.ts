import { ApiError, type ApiObject, textOf } from '../../kube/api.ts'
import type { ListWatch } from '../../kube/list-watch.ts'
import { splitKey } from '../../kube/object-key.ts'
import { Objects } from '../../kube/objects.ts'
import { WorkQueue } from '../../kube/work-queue.ts'
import { groupBy } from '../../peering/merge/part.ts'
import type { HostShare } from '../../records/host-share.ts'
import type { RecordDocument } from '../../records/record-document.ts'
import { type FieldProblem, printPath } from '../../records/validate/fields.ts'
import type {
  ObjectKind,
  ObjectRecords,
  ObjectReference,
} from '../../sources/objects/object-kind.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { ObjectCache } from '../cluster/object-cache.ts'
import type { ControllerEnv, ControllerSession } from '../controller.ts'
import { endWork } from '../egress/end-work.ts'
import { isDefaultProvider } from '../provider/secret-cache.ts'
import { labelOf } from '../record/fields.ts'
import { SOURCE_LABEL } from '../record/labels.ts'
import { DnsRecordView } from '../record/record-view.ts'
import { RECORDS } from '../record/resources.ts'
import { printObject } from './contend.ts'
import { decideRecord, type SourceState } from './decide-record.ts'
import { FollowedKinds } from './followed-kinds.ts'
import { type ObjectFault, ObjectReports } from './object-reports.ts'
import { DNS_ENDPOINTS, ObservedGenerations } from './observed-generations.ts'
import { PausedWrites } from './paused-writes.ts'
import {
  documentOf,
  isWrittenFor,
  planUnwanted,
  planWanted,
  type SourceWrite,
  sourceOf,
} from './plan-source.ts'
import { type SourceRecord, SourceTable } from './source-table.ts'

/**
 * The manager of the fields of a DNSRecord that its object decides. The controller of DNSRecords applies the others,
 * and would remove these if both had one name.
 */
const FIELD_MANAGER = 'sextant-operator-sources'
/** Writes to the API at the same time. */
const WORKERS = 32
/** A kind that the API does not answer for must not hold up the others for longer. */
const START_MS = 30_000
/** Before the key of an object whose status is to be written. Names contain no space. */
const STATUS = 'status '
/** Responses that a retry does not change. */
const LASTING: ReadonlySet<number> = new Set([400, 403, 413, 422])
/** States of a DNSRecord that is written. */
const WRITTEN: ReadonlySet<SourceState | undefined> = new Set(['ready', 'pending'])

export const WRITE_KINDS = ['create', 'patch', 'delete', 'status'] as const
type WriteKind = (typeof WRITE_KINDS)[number]

export interface SourcesSettings {
  /** The kinds of `--sources` besides DNSRecord. */
  readonly kinds: readonly ObjectKind[]
  /** All kinds: what was written for the others is removed. */
  readonly known: readonly ObjectKind[]
  readonly shares: readonly HostShare[]
}

interface SourcesParts extends SourcesSettings {
  readonly env: ControllerEnv
  readonly cluster: Cluster
  readonly onWrite: (kind: WriteKind) => void
}

/**
 * Writes a DNSRecord for each host of the objects of other kinds:
 *
 *     objects ─▶ readers ─▶ wanted DNSRecords ─▶ provider, zone, conflicts ─▶ DNSRecords ─▶ (RecordController)
 *
 * The API server has all state: what is in place is not written.
 */
export class SourcesSession implements ControllerSession {
  readonly #parts: SourcesParts
  readonly #client: Objects
  readonly #cache: ObjectCache
  readonly #kinds: FollowedKinds
  readonly #table = new SourceTable()
  readonly #queue: WorkQueue
  readonly #reports: ObjectReports
  readonly #writes: PausedWrites
  readonly #generations: ObservedGenerations
  /** By key of the DNSRecord. */
  readonly #states = new Map<string, SourceState>()
  /** What was reported about each object: its parts, and other objects such as routes. */
  readonly #problems = new Map<string, ReadonlySet<string>>()
  readonly #stopWatching: readonly (() => void)[]
  readonly #cancelStart: () => void

  constructor(parts: SourcesParts) {
    const { env, cluster, kinds } = parts
    const { clock, timers } = env
    this.#parts = parts
    this.#client = new Objects({ ...env, fieldManager: FIELD_MANAGER })
    this.#cache = new ObjectCache(cluster.recordInformer, clock)
    this.#reports = new ObjectReports(env)
    this.#writes = new PausedWrites(clock, timers)
    this.#queue = new WorkQueue({
      ...env,
      what: 'sources',
      work: async (key) => void (await this.#work(key)),
      workers: WORKERS,
    })
    this.#generations = new ObservedGenerations((key) => this.#queue.add(`${STATUS}${key}`))
    this.#kinds = new FollowedKinds({
      env,
      kinds,
      onRecords: (records) => this.#apply(records),
      onRead: (word) => this.#addAll(word),
      onProgress: () => this.#startIfAnswered(),
      onReturn: () => this.#queue.retryFailed(),
      observing: ({ plural }, target) =>
        plural === DNS_ENDPOINTS.plural ? this.#generations.reading(target) : target,
    })
    this.#stopWatching = this.#subscribe()
    this.#cancelStart = timers.after(START_MS, () => this.#queue.start())
    this.#kinds.start()
    this.#startIfAnswered()
  }

  get watches(): readonly ListWatch[] {
    return this.#kinds.watches
  }

  get reason(): string {
    return this.#kinds.reason
  }

  /** The number of DNSRecords of the objects of a kind, by state. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { key, of } of this.#table.records()) {
      const state = this.#states.get(key)
      if (state === undefined) continue
      const id = `${this.#wordOf(of)} ${state}`
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
    return counts
  }

  async close(): Promise<void> {
    this.#cancelStart()
    for (const stop of this.#stopWatching) stop()
    this.#kinds.close()
    await endWork(this.#queue, this.#client, this.#parts.env.timers)
  }

  #startIfAnswered(): void {
    if (!this.#kinds.isAnswered) return
    this.#cancelStart()
    this.#queue.start()
  }

  #subscribe(): (() => void)[] {
    const { recordInformer, secretInformer } = this.#parts.cluster
    const readRecord = (key: string, object: ApiObject, before = object): void => {
      const isSource = [object, before].some((one) => labelOf(one, SOURCE_LABEL) !== '')
      if (isSource || this.#table.get(key) !== undefined) this.#addWithRivals(key)
    }
    const readSecret = (key: string, secret: ApiObject, before = secret): void => {
      if (![secret, before].some(isDefaultProvider)) return
      const { namespace } = splitKey(key)
      for (const one of this.#table.inNamespace(namespace)) this.#addWithRivals(one)
    }
    return [
      recordInformer.subscribe({
        onAdd: (key, object) => readRecord(key, object),
        onUpdate: (key, object, before) => readRecord(key, object, before),
        onDelete: (key, before) => readRecord(key, before),
      }),
      secretInformer.subscribe({
        onAdd: (key, secret) => readSecret(key, secret),
        onUpdate: (key, secret, before) => readSecret(key, secret, before),
        onDelete: (key, before) => readSecret(key, before),
      }),
    ]
  }

  /** The DNSRecords of objects of a kind, and those that were written for them before. */
  #addAll(word: string): void {
    for (const object of this.#parts.cluster.recordInformer.objects()) {
      if (labelOf(object, SOURCE_LABEL) === word) this.#queue.add(new DnsRecordView(object).key)
    }
    for (const { key } of this.#table.records()) this.#queue.add(key)
  }

  #addWithRivals(key: string): void {
    this.#queue.add(key)
    const record = this.#table.get(key)
    if (record === undefined) return
    for (const rival of this.#table.sharing(record)) this.#queue.add(rival.key)
  }

  #apply(changes: readonly ObjectRecords[]): void {
    let written: ReadonlyMap<string, readonly DnsRecordView[]> | undefined
    for (const change of changes) {
      const present = (): readonly RecordDocument[] => {
        // Only objects that were never valid here need it: the first list may have thousands of them.
        written ??= this.#writtenByUid()
        return (written.get(change.of.uid) ?? []).map(documentOf)
      }
      for (const key of this.#table.apply(change, present)) this.#queue.add(key)
      this.#reportProblems(change)
    }
  }

  #reportProblems({ of, records, problems }: ObjectRecords): void {
    const id = printObject(of)
    const before = this.#problems.get(id) ?? []
    const byObject = groupBy(problems, (problem) => `${id} ${printObject(problem.of)}`)
    for (const thing of before) if (!byObject.has(thing)) this.#reports.set(thing, undefined)
    for (const [thing, found] of byObject) {
      const reason = records === undefined ? 'ObjectNotUsed' : 'PartIgnored'
      this.#reports.set(thing, { of: found[0]!.of, reason, notes: found.map(printProblem) })
    }
    if (byObject.size === 0) this.#problems.delete(id)
    else this.#problems.set(id, new Set(byObject.keys()))
  }

  async #work(key: string): Promise<void> {
    if (key.startsWith(STATUS)) return this.#writeStatus(key.slice(STATUS.length))
    const record = this.#table.get(key)
    if (record === undefined) return this.#removeUnwanted(key)
    const word = this.#wordOf(record.of)
    if (!this.#kinds.isRead(word)) return
    try {
      await this.#reconcile(record, word)
    } catch (error) {
      if (error instanceof ApiError && LASTING.has(error.status)) {
        const notes = [`DNSRecord ${key}: ${error.message}`]
        this.#reports.set(key, { of: record.of, reason: 'RecordRefused', notes })
      }
      throw error
    }
  }

  async #removeUnwanted(key: string): Promise<void> {
    this.#states.delete(key)
    this.#reports.set(key, undefined)
    this.#reports.set(rivalOf(key), undefined)
    const existing = this.#existing(key)
    const source = existing && sourceOf(existing, (word) => this.#kindOf(word))
    if (source === undefined) return
    const isChosen = this.#parts.kinds.some(({ word }) => word === source.word)
    if (isChosen && !this.#kinds.isRead(source.word)) return
    await this.#write(key, planUnwanted(existing!))
  }

  async #reconcile(record: SourceRecord, word: string): Promise<void> {
    const { key, of, valid, problem } = record
    const invalid = problem && {
      of,
      reason: 'InvalidRecord',
      notes: [`DNSRecord ${key}: ${printProblem(problem)}`],
    }
    if (valid === undefined) return this.#report(key, 'invalid', invalid)
    const existing = this.#existing(key)
    const decision = decideRecord(record, valid, {
      secretsOf: (namespace) => this.#parts.cluster.secretsOf(namespace),
      writtenFor: (one) => this.#writtenFor(one),
      sharing: (one) => this.#table.sharing(one),
      shares: this.#parts.shares,
    })
    if (decision.kind !== 'write') {
      const rival = decision.kind === 'remove' ? decision.rival : undefined
      this.#report(key, decision.state, decision.fault, rival)
      const written = this.#writtenFor(record)
      if (decision.kind === 'remove' && written !== undefined)
        await this.#write(key, planUnwanted(written))
      return
    }
    const write = planWanted({ word, of, document: valid.document }, existing)
    if (write.kind === 'foreign') {
      const notes = [`DNSRecord ${key} exists, and was not written for this object; rename it`]
      return this.#report(key, 'name-taken', { of, reason: 'RecordNameTaken', notes })
    }
    await this.#write(key, write)
    const state = existing?.condition('Ready')?.status === 'True' ? 'ready' : 'pending'
    const isServed = state === 'ready' && this.#states.get(key) === 'pending'
    if (isServed) this.#reports.served(of, valid.document.spec.rootHost, key)
    this.#report(key, state, invalid ?? faultOf(record, existing))
    const object = `${of.namespace}/${of.name}`
    const isObserved = of.kind !== DNS_ENDPOINTS.kind
    if (!isObserved && this.#generations.missing(object) !== undefined)
      this.#queue.add(`${STATUS}${object}`)
  }

  #report(key: string, state: SourceState, fault?: ObjectFault, rival?: ObjectFault): void {
    this.#states.set(key, state)
    this.#reports.set(key, fault)
    this.#reports.set(rivalOf(key), rival)
  }

  /** As external-dns does, once the DNSRecords of the object are written. */
  async #writeStatus(key: string): Promise<void> {
    const { namespace, name } = splitKey(key)
    const keys = this.#table.of({ ...DNS_ENDPOINTS, namespace, name })
    const isWritten = [...(keys ?? [])].some((one) => WRITTEN.has(this.#states.get(one)))
    const observedGeneration = this.#generations.missing(key)
    if (!isWritten || observedGeneration === undefined) return
    await this.#request('status', async () => {
      const ref = { resource: DNS_ENDPOINTS, namespace, name }
      await this.#client.patchStatus(ref, { status: { observedGeneration } })
    })
  }

  async #write(key: string, write: SourceWrite): Promise<void> {
    if (write.kind === 'none' || write.kind === 'foreign') return
    const ref = { resource: RECORDS, ...splitKey(key) }
    await this.#request(write.kind, async () => {
      if (write.kind === 'delete') {
        const { uid, resourceVersion } = write
        await this.#client.delete(ref, { uid, resourceVersion })
        return
      }
      const made =
        write.kind === 'create'
          ? await this.#client.create(RECORDS, ref.namespace, write.object)
          : await this.#client.patch(ref, write.patch)
      this.#cache.noteWritten(made)
    })
  }

  async #request(kind: WriteKind, run: () => Promise<void>): Promise<void> {
    await this.#writes.run(async () => {
      if (!this.#parts.env.mayWrite()) return
      await run()
      this.#parts.onWrite(kind)
    })
  }

  #existing(key: string): DnsRecordView | undefined {
    const object = this.#cache.get(key)
    return object && new DnsRecordView(object)
  }

  #writtenFor({ key, of }: SourceRecord): DnsRecordView | undefined {
    const existing = this.#existing(key)
    if (existing === undefined) return undefined
    return isWrittenFor({ word: this.#wordOf(of), of }, existing) ? existing : undefined
  }

  /** The DNSRecords in the cluster that were written for objects, by uid of the object. */
  #writtenByUid(): ReadonlyMap<string, readonly DnsRecordView[]> {
    const written = [...this.#parts.cluster.recordInformer.objects()]
      .filter((object) => labelOf(object, SOURCE_LABEL) !== '')
      .map((object) => new DnsRecordView(object))
    return groupBy(written, (record) => sourceOf(record, (word) => this.#kindOf(word))?.uid ?? '')
  }

  #wordOf({ kind }: ObjectReference): string {
    return this.#parts.known.find(({ resources }) => resources[0]?.kind === kind)?.word ?? ''
  }

  #kindOf(word: string): string | undefined {
    return this.#parts.known.find((one) => one.word === word)?.resources[0]?.kind
  }
}

/** What keeps a DNSRecord that is written from being served. */
function faultOf(
  { of }: SourceRecord,
  existing: DnsRecordView | undefined,
): ObjectFault | undefined {
  for (const type of ['Ready', 'EndpointsServed']) {
    const condition = existing?.condition(type)
    if (condition?.status !== 'False') continue
    const reason = textOf(condition, 'reason')
    const notes = [`DNSRecord ${existing?.key}: ${textOf(condition, 'message')}`]
    return { of, reason, notes, isUnsteady: true }
  }
  return undefined
}

function printProblem({ path, message }: FieldProblem): string {
  return path.length === 0 ? message : `${printPath(path)}: ${message}`
}

/** What is reported to the object that is served in place of another one. */
function rivalOf(key: string): string {
  return `${key} rival`
}
