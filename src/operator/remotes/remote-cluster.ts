import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { ResourceRegistry } from '../../base/resource-registry.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { type ApiClient, type ApiObject, textOf } from '../../kube/api.ts'
import { keyOf } from '../../kube/object-key.ts'
import { isNotFound } from '../../kube/objects.ts'
import { WorkQueue, type WorkResult } from '../../kube/work-queue.ts'
import { API_VERSION } from '../../records/dns-record.ts'
import type { HealthCheck } from '../../records/health-check.ts'
import type { HostShare } from '../../records/host-share.ts'
import { SITES_ANNOTATION } from '../../records/site-facts.ts'
import { NotLeadingError, refOf } from '../cluster/api-writer.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { ObjectCache } from '../cluster/object-cache.ts'
import { watchInputs } from '../cluster/watch-inputs.ts'
import { authoritativeKey } from '../delegation/authoritative-record.ts'
import { partOf } from '../delegation/contribution.ts'
import type { KeyedMutex } from '../delegation/keyed-mutex.ts'
import type { OwnerIndex } from '../delegation/owner-index.ts'
import { SourceIndex } from '../delegation/source-index.ts'
import { GroupSet } from '../groups/group-set.ts'
import type { Writer } from '../plan/write.ts'
import { drainEndsInMs, type RequeueBounds, requeueAfterMs } from '../reconcile/requeue.ts'
import { metadataOf } from '../record/fields.ts'
import { DnsRecordView, roleOf } from '../record/record-view.ts'
import { unservedZoneOf } from '../zones/zone-state.ts'
import { isDelegating, RemoteContact } from './remote-contact.ts'
import { RemoteReconciler } from './remote-reconciler.ts'

/**
 * Records of one cluster that are reconciled at once. The limit bounds the cost of a cluster that
 * hangs.
 */
const WORKERS = 4
/** Prefix of queue keys for authoritative records to sweep; keys of objects contain no space. */
const SWEEP = 'sweep '

/** What all remote clusters share. */
export interface RemoteParts {
  readonly local: Cluster
  readonly writer: Writer
  readonly mutex: KeyedMutex
  readonly owners: OwnerIndex
  /** The lookups of active groups. */
  readonly resources: ResourceRegistry
  readonly bounds: RequeueBounds
  /** Namespaces that may use hosts of other namespaces. */
  readonly shares: readonly HostShare[]
  /** The name of the local cluster among its peers. */
  readonly site: string
  readonly mayWrite: () => boolean
  /** As in `TriggerParts`. */
  readonly onCheck: (authoritativeKey: string) => void
}

interface RemoteClusterParts extends RemoteParts {
  /** Name of the cluster's Secret. */
  readonly name: string
  readonly api: ApiClient
  /** UID of the local cluster. */
  readonly ownUid: string
  /** Claims the id for this cluster; returns why it can't have the id; '' = it can. */
  readonly claim: (id: string) => string
  /** As in `FollowedClusters`. */
  readonly hasAll: (authoritativeKey: string) => boolean
  readonly onReconcile: (key: string) => void
  readonly onForget: (key: string) => void
}

/** Another cluster, whose delegating records are put into the authoritative records of this one. */
export class RemoteCluster {
  readonly #parts: RemoteClusterParts
  readonly #env: { clock: Clock; timers: Timers; random: Random; log: Logger }
  readonly #contact: RemoteContact
  readonly #cache: ObjectCache
  readonly #queue: WorkQueue
  readonly #sources = new SourceIndex()
  readonly #stops: (() => void)[] = []
  readonly #groups: GroupSet
  readonly #startMs: number
  #reconciler: RemoteReconciler | undefined
  #isFollowed = false

  constructor(parts: RemoteClusterParts) {
    const { api, local, ownUid, name } = parts
    const { clock, timers, random, namespaces } = local.env
    const log = prefixed(local.env.log, name)
    this.#parts = parts
    this.#env = { clock, timers, random, log }
    this.#startMs = clock.monotonic()
    this.#contact = new RemoteContact({ ...this.#env, api, namespaces, ownUid })
    this.#cache = new ObjectCache(this.#contact.records, clock)
    const onEvent = (key: string): void => {
      this.#queue.add(key)
    }
    const { resources } = parts
    this.#groups = new GroupSet({ ownGroup: '', resources, onEvent, timers, log: local.env.log })
    const work = (key: string): Promise<WorkResult | undefined> => this.#work(key)
    const what = 'dnsrecords'
    this.#queue = new WorkQueue({ what, work, workers: WORKERS, ...this.#env })
  }

  /** Never rejects. */
  start(): void {
    void this.#contact.connect(this.#parts.claim, (id) => {
      this.#reconciler = this.#createReconciler(id)
      this.#follow()
    })
  }

  /** As in `FollowedClusters`. */
  get heardMs(): number {
    return this.#contact.heardMs
  }

  /** As in `FollowedClusters`. */
  get isKnown(): boolean {
    return this.#isFollowed
  }

  /**
   * True if the records of this cluster that delegate to the authoritative record were read and reconciled, or this
   * took too long.
   */
  hasAll(authoritativeKey: string): boolean {
    const { clock } = this.#env
    const { ownUid, bounds } = this.#parts
    const isLate = clock.monotonic() - this.#startMs >= bounds.maxMs
    if (!this.#isFollowed) return isLate
    const isDone = (record: DnsRecordView): boolean => {
      if (record.isDeleting) return true
      if (record.asSeenByCluster(ownUid).condition('Ready') !== undefined) return true
      // The clock of that cluster may differ from ours.
      return isLate && Math.abs(clock.now() - Date.parse(record.created)) >= bounds.maxMs
    }
    const records = [...this.#sources.of(authoritativeKey)].map((key) =>
      viewOf(this.#cache.get(key)),
    )
    return records.every((record) => record === undefined || isDone(record))
  }

  /** As in `FollowedClusters`. */
  checkOf(authoritativeKey: string): HealthCheck | undefined {
    const keys = [...this.#sources.of(authoritativeKey)].sort()
    const checks = keys.map((key) => viewOf(this.#cache.get(key))?.healthCheck)
    return checks.find((check) => check !== undefined)
  }

  /** Why the cluster is not followed just now; '' = it is. */
  get fault(): string {
    return this.#contact.fault
  }

  /** As in `ClockCheck`. */
  get clockFault(): string {
    return this.#contact.clock.fault
  }

  /** Number of known delegating records. */
  get records(): number {
    let count = 0
    for (const object of this.#contact.records.objects()) if (isDelegating(object)) count++
    return count
  }

  /** Starts nothing more; resolves once all running work has ended. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop()
    this.#contact.close()
    await this.#queue.close()
    // Last: a running reconcile may still start a lookup.
    this.#groups.close()
  }

  #createReconciler(cluster: string): RemoteReconciler {
    const { local, writer, mutex, owners, ownUid, site, shares, hasAll } = this.#parts
    const clocks = { remoteClock: this.#contact.clock, apiClock: local.env.apiClock }
    const remote = {
      record: (key: string) => viewOf(this.#cache.get(key)),
      sourcesOf: (key: string) => this.#sources.of(key),
    }
    const writeStatus = this.#writeStatus.bind(this)
    const { clock } = this.#env
    const here = {
      ...clocks,
      view: local,
      writer,
      mutex,
      owners,
      clock,
      ownUid,
      site,
      shares,
      hasAll,
    }
    return new RemoteReconciler({ ...here, remote, writeStatus, cluster, groups: this.#groups })
  }

  /**
   * Follows all inputs and reconciles what they affect: changes in that cluster, changes here, and
   * records that were deleted while it was not followed.
   */
  #follow(): void {
    const { local, owners, name, onCheck } = this.#parts
    const { recordInformer, secretInformer } = local
    const { records, clock } = this.#contact
    const onEvent = (key: string): void => {
      this.#queue.add(key)
    }
    this.#stops.push(
      owners.watch(records, name),
      clock.onFault(() => {
        for (const object of records.objects()) {
          if (isDelegating(object)) this.#queue.add(keyOf(object))
        }
      }),
      records.subscribe({
        onAdd: (_, object) => this.#sources.add(new DnsRecordView(object)),
        onUpdate: (_, object, before) => {
          this.#sources.remove(new DnsRecordView(before))
          this.#sources.add(new DnsRecordView(object))
        },
        onDelete: (_, before) => {
          const record = new DnsRecordView(before)
          this.#sources.remove(record)
          if (record.role === 'delegating') this.#queue.add(SWEEP + authoritativeKey(record))
        },
        onReturn: () => this.#queue.retryFailed(),
      }),
      local.onNames((key) => {
        for (const source of this.#sources.of(key)) this.#queue.add(source)
      }),
      watchInputs({
        records,
        secrets: secretInformer,
        cache: this.#cache,
        owners,
        onEvent,
        onCheck,
      }),
      recordInformer.subscribe({
        onAdd: (key, object) => this.#reconsider(key, object),
        onUpdate: (key, object, before) => {
          const isEdited = metadataOf(object).generation !== metadataOf(before).generation
          if (isEdited || !hasSameFacts(object, before)) this.#reconsider(key, object)
        },
        onDelete: (key, object) => this.#reconsider(key, object),
        onReturn: () => this.#queue.retryFailed(),
      }),
    )
    this.#isFollowed = true
    this.#queue.start()
  }

  /** Reconciles the owners in that cluster of an authoritative record of ours that has changed. */
  #reconsider(key: string, object: ApiObject): void {
    if (roleOf(object) !== 'authoritative') return
    for (const source of this.#sources.of(key)) this.#queue.add(source)
    this.#queue.add(SWEEP + key)
  }

  async #work(key: string): Promise<WorkResult | undefined> {
    const reconciler = this.#reconciler
    if (reconciler === undefined) return undefined
    try {
      if (key.startsWith(SWEEP)) {
        await reconciler.sweep(key.slice(SWEEP.length))
        return undefined
      }
      if (!(await reconciler.reconcile(key))) {
        this.#parts.onForget(key)
        return undefined
      }
    } catch (error) {
      if (error instanceof NotLeadingError) return undefined
      throw error
    }
    this.#parts.onReconcile(key)
    const record = viewOf(this.#cache.get(key))
    const changesInMs = record && this.#changesInMs(record)
    return { againMs: requeueAfterMs(changesInMs, this.#parts.bounds) }
  }

  /** Time until a record may contribute something else without an event; undefined = never. */
  #changesInMs(record: DnsRecordView): number | undefined {
    const { local, bounds } = this.#parts
    const part = partOf(record, local.record(authoritativeKey(record)))
    // No event says that all clusters have contributed.
    if (part?.isPartial === true) return bounds.minMs
    return drainEndsInMs(record, this.#env.clock.now())
  }

  async #writeStatus(record: DnsRecordView, status: ApiObject): Promise<void> {
    const { mayWrite, ownUid } = this.#parts
    if (!mayWrite()) throw new NotLeadingError()
    const { name, namespace, uid } = record
    const ref = refOf(record)
    const object = {
      apiVersion: API_VERSION,
      kind: 'DNSRecord',
      metadata: { name, namespace, uid },
      status: { remoteRecordStatuses: { [ownUid]: status } },
    }
    try {
      this.#cache.noteWritten(await this.#contact.objects.applyStatus(ref, object))
    } catch (error) {
      // A definition without a status subresource causes the same error for an object that exists.
      const isGone = isNotFound(error, ref) && (await this.#contact.objects.get(ref)) === undefined
      if (!isGone) throw error
      // The record was released meanwhile.
      this.#cache.noteDeleted(record.object)
    }
  }
}

/** True if both have the same facts of their owners. */
function hasSameFacts(a: ApiObject, b: ApiObject): boolean {
  const factsOf = (object: ApiObject) => textOf(metadataOf(object).annotations, SITES_ANNOTATION)
  const zoneOf = (object: ApiObject) => unservedZoneOf(new DnsRecordView(object))
  return factsOf(a) === factsOf(b) && zoneOf(a) === zoneOf(b)
}

function viewOf(object: ApiObject | undefined): DnsRecordView | undefined {
  return object && new DnsRecordView(object)
}

function prefixed(log: Logger, name: string): Logger {
  const prefixing = (write: Logger['info']): Logger['info'] => {
    return (line, event, fields) =>
      write(`cluster ${name}: ${line}`, event, { cluster: name, ...fields })
  }
  return {
    debug: prefixing(log.debug),
    info: prefixing(log.info),
    warning: prefixing(log.warning),
    error: prefixing(log.error),
  }
}
