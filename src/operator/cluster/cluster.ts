import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { Cidr } from '../../dns/text/address.ts'
import type { ApiClient, ApiObject } from '../../kube/api.ts'
import type { EventRecorder } from '../../kube/event-recorder.ts'
import { Informer } from '../../kube/informer.ts'
import type { ListWatch } from '../../kube/list-watch.ts'
import { Objects } from '../../kube/objects.ts'
import type { OwnNames } from '../../peering/trust/screen-site-states.ts'
import type { OwnHealth } from '../plan/own.ts'
import type { ProviderSecrets } from '../provider/provider-choice.ts'
import { SecretCache, trimSecret } from '../provider/secret-cache.ts'
import { FIELD_MANAGER } from '../record/fields.ts'
import { DnsRecordView } from '../record/record-view.ts'
import { PROBES, RECORDS, SECRETS } from '../record/resources.ts'
import type { ApiClock } from './clock-check.ts'
import type { ClusterView } from './cluster-view.ts'
import { NameIndex } from './name-index.ts'
import { ObjectCache, trimObject } from './object-cache.ts'
import { ProbeIndex } from './probe-index.ts'
import { RecordNames } from './record-names.ts'

export interface ClusterEnv {
  readonly api: ApiClient
  /** The clock of the API server; missing = it is not known. */
  readonly apiClock?: ApiClock | undefined
  /** Empty = all. */
  readonly namespaces: readonly string[]
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** Networks of nameservers that are refused otherwise; missing = none. */
  readonly nameserversAllowed?: readonly Cidr[] | undefined
}

/** The cluster that the operator runs for: its cached state, and the clients that change it. */
export class Cluster implements ClusterView {
  readonly env: ClusterEnv
  readonly objects: Objects
  readonly events: EventRecorder
  readonly records: ObjectCache
  readonly recordInformer: Informer
  readonly secretInformer: Informer
  readonly probeInformer: Informer
  readonly #names = new RecordNames()
  readonly #nameIndex = new NameIndex()
  readonly #secrets: SecretCache
  readonly #probes: ProbeIndex
  readonly #healthListeners = new Set<(key: string) => void>()
  readonly #nameListeners = new Set<(key: string) => void>()

  constructor(env: ClusterEnv, events: EventRecorder) {
    this.env = env
    this.objects = new Objects({ ...env, fieldManager: FIELD_MANAGER })
    this.events = events
    const informer = (resource: typeof RECORDS, trim: (object: ApiObject) => ApiObject) =>
      new Informer({ ...env, resource, trim, labelSelector: '' })
    this.recordInformer = informer(RECORDS, trimObject)
    this.secretInformer = informer(SECRETS, trimSecret)
    this.probeInformer = informer(PROBES, trimObject)
    this.records = new ObjectCache(this.recordInformer, env.clock)
    const notify = (key: string): void => {
      for (const listener of this.#nameListeners) listener(key)
    }
    this.#names.watch(this.recordInformer, notify)
    this.#nameIndex.watch(this.recordInformer, notify)
    this.#secrets = new SecretCache(this.secretInformer, env.nameserversAllowed)
    this.#probes = new ProbeIndex(this.probeInformer, (key) => {
      for (const listener of this.#healthListeners) listener(key)
      const object = this.records.get(key)
      for (const other of object === undefined ? [] : this.#nameIndex.sharing(key, object))
        notify(other)
    })
  }

  start(): void {
    for (const informer of this.#informers) informer.start()
  }

  /** Resolves once records and Secrets are listed, and probes if they can be read. */
  async synced(): Promise<void> {
    await this.recordInformer.synced()
    await this.secretInformer.synced()
    await this.#probesRead()
  }

  /**
   * Why an informer is not synced, or does not follow its kind just now; '' = all are synced and
   * follow.
   */
  get reason(): string {
    return this.#informers.find(({ reason }) => reason !== '')?.reason ?? ''
  }

  get watches(): readonly ListWatch[] {
    return this.#informers.flatMap(({ watches }) => watches)
  }

  close(): void {
    for (const informer of this.#informers) informer.close()
    this.objects.close()
  }

  record(key: string): DnsRecordView | undefined {
    const object = this.records.get(key)
    return object && new DnsRecordView(object)
  }

  secretsOf(namespace: string): ProviderSecrets {
    return this.#secrets.of(namespace)
  }

  healthOf(key: string): OwnHealth {
    return this.#probes.healthOf(key)
  }

  namesBeside(key: string, zones: readonly string[]): OwnNames {
    return this.#names.beside(key, zones)
  }

  recordsSharing(key: string, name: string): readonly DnsRecordView[] {
    return [...this.#nameIndex.keysOf(name)]
      .filter((other) => other !== key)
      .map((other) => this.record(other))
      .filter((record) => record !== undefined)
  }

  claimantsAt(name: string): readonly DnsRecordView[] {
    const named = [name, `*.${name}`].flatMap((one) => [...this.#nameIndex.keysOf(one)])
    return [...this.#recordsOf(new Set([...named, ...this.#names.keysAt(name)]))]
  }

  *claimantsBelow(name: string): Generator<DnsRecordView> {
    const named = new Set(this.#nameIndex.keysBelow(name))
    yield* this.#recordsOf(named)
    for (const key of this.#names.keysBelow(name))
      if (!named.has(key)) yield* this.#recordsOf([key])
  }

  *#recordsOf(keys: Iterable<string>): Generator<DnsRecordView> {
    for (const key of keys) {
      const record = this.record(key)
      if (record !== undefined) yield record
    }
  }

  /**
   * Calls back with the key of each record when a record for a host below its own changes,
   * or one of another namespace above it, or one
   * that shares a name with it, or the health of such a record. The returned function unsubscribes.
   */
  onNames(listener: (key: string) => void): () => void {
    this.#nameListeners.add(listener)
    return () => this.#nameListeners.delete(listener)
  }

  /**
   * Calls back with the key of each record whose health changes. The returned function
   * unsubscribes.
   */
  onHealth(listener: (key: string) => void): () => void {
    this.#healthListeners.add(listener)
    return () => this.#healthListeners.delete(listener)
  }

  get #informers(): readonly Informer[] {
    return [this.recordInformer, this.secretInformer, this.probeInformer]
  }

  /**
   * Waits until probes are listed, or are known to be unreadable. Without access to probes, or
   * without their definition, all addresses count as unknown. A refusal is accepted only from a
   * server that has already granted the other kinds: a server that is starting refuses requests
   * too, and the operator would then publish addresses that are down.
   */
  async #probesRead(): Promise<void> {
    const { timers } = this.env
    const { watches } = this.probeInformer
    const before = watches.map(countRefusals)
    const isOutOfReach = (): boolean =>
      watches.every((watch, i) => watch.isSynced || countRefusals(watch) - before[i]! >= REFUSALS)
    let stop = (): void => {}
    const outOfReach = new Promise<void>((resolve) => {
      stop = timers.every(CHECK_MS, () => {
        if (isOutOfReach()) resolve()
      })
    })
    await Promise.race([this.probeInformer.synced(), outOfReach])
    stop()
  }
}

/** Interval of the check whether probes can be read. */
const CHECK_MS = 100
/** Refusals that are needed: an API server that is starting refuses what it grants later. */
const REFUSALS = 3

function countRefusals({ counts }: ListWatch): number {
  return (counts.failures.get(403) ?? 0) + (counts.failures.get(404) ?? 0)
}
