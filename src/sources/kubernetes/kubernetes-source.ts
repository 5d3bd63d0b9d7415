import type { Clock } from '../../base/clock.ts'
import type { InputError } from '../../base/errors.ts'
import { plural } from '../../base/plural.ts'
import type { Random } from '../../base/random.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import { AddressHealth } from '../../health/address-health.ts'
import type { ApiClient } from '../../kube/api.ts'
import { ListWatch } from '../../kube/list-watch.ts'
import { ObjectSink, type ObjectTarget } from '../../kube/object-sink.ts'
import { API_GROUP, API_VERSION } from '../../records/dns-record.ts'
import type { RecordChange, StoredRecord } from '../../records/record-source.ts'
import type { ObjectResource } from '../objects/object-kind.ts'
import { kindsOf } from '../objects/object-kinds.ts'
import { DNSRECORD_WORD } from '../objects/source-words.ts'
import type { FollowedCluster, FollowedSource } from '../source.ts'
import { ClusterDrains, type ConfigMapPlace } from './cluster-drains.ts'
import { ClusterStore, type Plural } from './cluster-store.ts'
import { NamespaceDrains } from './namespace-drains.ts'
import { ObjectFeed } from './object-feed.ts'
import { CLUSTER_PLACE } from './place.ts'

/** Only records with this label are read; an operator sets it. */
const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'
/** Maximum number of refusals per batch that are logged one by one. */
const LOGGED_MAX = 20
/** Maximum number of reasons on the ready page. */
const REASONS_MAX = 3

export interface KubernetesSourceOptions {
  readonly api: ApiClient
  /** Empty = all namespaces. */
  readonly namespaces: readonly string[]
  /** As in `ClusterRecords`. */
  readonly sources?: readonly string[] | undefined
  /** Follows the drains that annotations of Namespaces ask for. Missing = false. */
  readonly readsNamespaces?: boolean
  /** The ConfigMap whose drains are followed; missing = none. */
  readonly drainsPlace?: ConfigMapPlace | undefined
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

/**
 * The DNSRecords of a cluster that have a zone, and those that are made from other kinds of objects, kept up to date by
 * watches of its API:
 *
 *     namespace ─┬─ watch of records ──────────────────────┐
 *                ├─ watch of probes ───────────────────────┼─▶ store ─▶ changes, a batch at a time
 *                └─ watches of other resources ─▶ readers ─┘
 *
 *     watches of Namespaces and of a ConfigMap ─▶ drains, if they are wanted
 *
 * Synced once all accessible objects were listed, and all those of at least one kind. If the API fails later, the known
 * records are kept.
 */
export class KubernetesSource implements FollowedSource, FollowedCluster {
  readonly cluster = this
  readonly badFileCount = 0
  readonly #options: KubernetesSourceOptions
  readonly health = new AddressHealth()
  /** Drains by annotations of Namespaces, and by a ConfigMap. */
  readonly drainFeeds: readonly (NamespaceDrains | ClusterDrains)[]
  readonly #store = new ClusterStore(this.health)
  readonly #records: readonly ListWatch[]
  readonly #probes: readonly ListWatch[]
  readonly #drains: readonly ListWatch[]
  readonly #objects: ObjectFeed
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  #markSynced: () => void = () => {}
  readonly #synced = new Promise<void>((resolve) => {
    this.#markSynced = resolve
  })
  #isSynced = false

  constructor(options: KubernetesSourceOptions) {
    this.#options = options
    const { namespaces, sources = [DNSRECORD_WORD] } = options
    const scopes = namespaces.length === 0 ? [''] : [...new Set(namespaces)]
    const ofRecords = sources.includes(DNSRECORD_WORD) ? scopes : []
    this.#records = ofRecords.map((scope) => this.#watch('dnsrecords', scope, ZONE_LABEL))
    this.#probes = ofRecords.map((scope) => this.#watch('dnshealthcheckprobes', scope, ''))
    this.#objects = new ObjectFeed({
      kinds: kindsOf(sources),
      watch: (resource, targetOf) => {
        const places = resource.isClusterScoped === true ? [''] : scopes
        return places.map((place) => this.#watchObjects(resource, place, targetOf(place)))
      },
      apply: (records) => this.#publish(records.flatMap((one) => this.#store.putObject(one))),
    })
    const { readsNamespaces, drainsPlace: place } = options
    const spaces = readsNamespaces === true ? new NamespaceDrains(options) : undefined
    const shared = place === undefined ? undefined : new ClusterDrains({ ...options, place })
    this.drainFeeds = [spaces, shared].filter((feed) => feed !== undefined)
    this.#drains = [
      ...(spaces === undefined ? [] : [this.#watchCore(spaces, 'namespaces', '', '')]),
      ...(shared === undefined ? [] : [this.#watchMap(shared, place!)]),
    ]
  }

  get recordCount(): number {
    return this.#store.recordCount
  }

  get refusedCount(): number {
    return this.#store.refusedCount
  }

  /** The watches, for metrics. */
  get watches(): readonly ListWatch[] {
    return [...this.#sources, ...this.#probes, ...this.#drains]
  }

  /** The watches of what is served. */
  get #sources(): readonly ListWatch[] {
    return [...this.#records, ...this.#objects.watches]
  }

  /** Watches that the server can do without, if it has no access: those of kinds that were not read yet come first. */
  get #others(): readonly ListWatch[] {
    const unread = this.#sources.filter((watch) => !watch.isSynced)
    return [...unread, ...this.#probes, ...this.#drains]
  }

  /** Age of the oldest watch of records in milliseconds; 0 while all watches are connected. */
  get ageMs(): number {
    return Math.max(...this.#sources.map((watch) => watch.ageMs))
  }

  records(): Iterable<StoredRecord> {
    return this.#store.records()
  }

  find(key: string): StoredRecord | undefined {
    return this.#store.find(key)
  }

  problems(): readonly InputError[] {
    return this.#store.problems()
  }

  problemGroups(of: string): ProblemGroup[] {
    return this.#store.problemGroups(of)
  }

  printPlace(): string {
    return CLUSTER_PLACE
  }

  unreadyReason(): string {
    if (this.#isSynced) return ''
    const reasons = reasonsOf(this.#others)
    return `records are not read yet${reasons === '' ? '' : `: ${reasons}`}`
  }

  note(): string {
    if (!this.#isSynced) return ''
    const others = reasonsOf(this.#others)
    const { ageMs } = this
    const reasons = reasonsOf(this.#sources.filter(({ isSynced }) => isSynced))
    if (reasons === '') return others
    const since = new Date(this.#options.clock.now() - ageMs).toISOString()
    const seconds = Math.floor(ageMs / 1000)
    return `records are as of ${since} (${seconds} s ago): ${reasons}`
  }

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async start(): Promise<void> {
    for (const watch of this.watches) void watch.run()
  }

  synced(): Promise<void> {
    return this.#synced
  }

  close(): void {
    for (const watch of this.watches) watch.close()
    for (const feed of this.drainFeeds) feed.close()
    this.#listeners.clear()
  }

  #watch(plural: Plural, namespace: string, labelSelector: string): ListWatch {
    let refusals: InputError[] = []
    const store = this.#store
    return new ListWatch({
      ...this.#options,
      resource: { group: API_GROUP, version: API_VERSION.slice(API_GROUP.length + 1), plural },
      namespace,
      labelSelector,
      sink: new ObjectSink({
        put: (object) => {
          const refusal = store.put(plural, object)
          if (refusal !== undefined) refusals.push(refusal)
        },
        remove: (key) => store.remove(plural, key),
        keys: () => store.keys(plural, namespace),
        settle: () => {
          const noted = refusals
          refusals = []
          this.#publish(noted)
        },
      }),
      onProgress: () => this.#progress(),
    })
  }

  #watchObjects(resource: ObjectResource, namespace: string, target: ObjectTarget): ListWatch {
    const { equalVersions } = resource
    return new ListWatch({
      ...this.#options,
      resource,
      equalVersions,
      namespace,
      labelSelector: '',
      sink: new ObjectSink(target),
      onProgress: () => this.#progress(),
    })
  }

  /** A role can allow a single ConfigMap by its name, if the watch selects that name. */
  #watchMap(feed: ObjectTarget, { namespace, name }: ConfigMapPlace): ListWatch {
    return this.#watchCore(feed, 'configmaps', namespace, `metadata.name=${name}`)
  }

  #watchCore(
    feed: ObjectTarget,
    plural: string,
    namespace: string,
    fieldSelector: string,
  ): ListWatch {
    return new ListWatch({
      ...this.#options,
      resource: { group: '', version: 'v1', plural },
      namespace,
      labelSelector: '',
      fieldSelector,
      sink: new ObjectSink(feed),
      onProgress: () => this.#progress(),
    })
  }

  /** Publishes changes to listeners. Before the source is synced, listeners receive nothing. */
  #publish(refusals: readonly InputError[]): void {
    this.#logRefusals(refusals)
    // During the first list the fields are logged once at its end, so that the same typo on many
    // pages is one line.
    if (this.#isSynced) this.#store.logIgnored(this.#options.log)
    const changes = this.#store.settle()
    if (!this.#isSynced) return
    const guarded = guarding(this.#options.log, 'Applying changed records')
    if (changes.length > 0) {
      for (const listener of this.#listeners) void guarded(() => listener(changes))
    }
    void guarded(() => this.health.publish())
  }

  #progress(): void {
    this.#objects.progress(isDone)
    if (this.#isSynced || !this.#isRead) return
    this.#isSynced = true
    const { namespaces, log } = this.#options
    const scope = namespaces.length === 0 ? 'all namespaces' : `namespaces ${namespaces.join(', ')}`
    const refused = this.refusedCount === 0 ? '' : `, ${this.refusedCount} refused`
    log.info(
      `read ${plural(this.recordCount, 'record')}${refused} from Kubernetes, in ${scope}`,
      'kubernetes-records-read',
    )
    this.#store.logIgnored(log)
    this.health.publish()
    this.#markSynced()
  }

  /** True once nothing more is awaited, and the records of at least one kind were listed. */
  get #isRead(): boolean {
    const kinds = [this.#records, ...this.#objects.mainWatches].filter(({ length }) => length > 0)
    const isListed = kinds.some((watches) => watches.every(({ isSynced }) => isSynced))
    return isListed && this.watches.every(isDone)
  }

  #logRefusals(refusals: readonly InputError[]): void {
    const { log } = this.#options
    for (const refusal of refusals.slice(0, LOGGED_MAX))
      log.warning(refusal.print(), 'record-refused')
    const more = refusals.length - LOGGED_MAX
    if (more > 0) log.warning(`and ${more} more refused records`, 'record-refused-more')
  }
}

function isDone(watch: ListWatch): boolean {
  return watch.isSynced || isOutOfReach(watch)
}

/**
 * True if this server has no access to probes, as upstream grants none, or to drains: then all
 * addresses count as healthy, and nothing is drained. After a temporary failure the source waits
 * for them. Otherwise addresses known to be down or drained would return to service.
 */
function isOutOfReach({ failureStatus }: ListWatch): boolean {
  return failureStatus === 403 || failureStatus === 404
}

function reasonsOf(watches: readonly ListWatch[]): string {
  const reasons = watches.map((watch) => watch.reason).filter((reason) => reason !== '')
  const more = reasons.length > REASONS_MAX ? [`and ${reasons.length - REASONS_MAX} more`] : []
  return [...reasons.slice(0, REASONS_MAX), ...more].join('; ')
}
