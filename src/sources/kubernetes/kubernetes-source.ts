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
import type { FollowedCluster, FollowedSource } from '../source.ts'
import { ClusterDrains, type ConfigMapPlace } from './cluster-drains.ts'
import { CLUSTER_PLACE, ClusterStore, type Plural } from './cluster-store.ts'
import { NamespaceDrains } from './namespace-drains.ts'

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
 * The DNSRecords of a cluster that have a zone, kept up to date by watches of its API:
 *
 *     namespace ─┬─ watch of records ─┐
 *                └─ watch of probes  ─┴─▶ store ─▶ changes, a batch at a time
 *
 *     watches of Namespaces and of a ConfigMap ─▶ drains, if they are wanted
 *
 * Synced once all records, and all accessible probes and drains, were listed. If the API fails later, the
 * known records are kept.
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
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  #markSynced: () => void = () => {}
  readonly #synced = new Promise<void>((resolve) => {
    this.#markSynced = resolve
  })
  #isSynced = false

  constructor(options: KubernetesSourceOptions) {
    this.#options = options
    const { namespaces } = options
    const scopes = namespaces.length === 0 ? [''] : [...new Set(namespaces)]
    this.#records = scopes.map((scope) => this.#watch('dnsrecords', scope, ZONE_LABEL))
    this.#probes = scopes.map((scope) => this.#watch('dnshealthcheckprobes', scope, ''))
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
    return [...this.#records, ...this.#probes, ...this.#drains]
  }

  /** Watches that the server can do without, if it has no access. */
  get #others(): readonly ListWatch[] {
    return [...this.#probes, ...this.#drains]
  }

  /** Age of the oldest watch of records in milliseconds; 0 while all watches are connected. */
  get ageMs(): number {
    return Math.max(...this.#records.map((watch) => watch.ageMs))
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
    const haveRecords = this.#records.every((watch) => watch.isSynced)
    const reasons = reasonsOf(haveRecords ? this.#others : this.#records)
    return `records are not read yet${reasons === '' ? '' : `: ${reasons}`}`
  }

  note(): string {
    if (!this.#isSynced) return ''
    const others = reasonsOf(this.#others)
    const { ageMs } = this
    const reasons = reasonsOf(this.#records)
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
    if (this.#isSynced) return
    const haveRecords = this.#records.every((watch) => watch.isSynced)
    const haveOthers = this.#others.every((watch) => watch.isSynced || isOutOfReach(watch))
    if (!haveRecords || !haveOthers) return
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

  #logRefusals(refusals: readonly InputError[]): void {
    const { log } = this.#options
    for (const refusal of refusals.slice(0, LOGGED_MAX))
      log.warning(refusal.print(), 'record-refused')
    const more = refusals.length - LOGGED_MAX
    if (more > 0) log.warning(`and ${more} more refused records`, 'record-refused-more')
  }
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
