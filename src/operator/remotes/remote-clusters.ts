import { Backoff } from '../../base/backoff.ts'
import { type ApiClient, type ApiObject, textOf } from '../../kube/api.ts'
import { Informer } from '../../kube/informer.ts'
import { type InlineKubeconfig, scanInlineKubeconfig } from '../../kube/inline-kubeconfig.ts'
import type { HealthCheck } from '../../records/health-check.ts'
import { readClusterUid } from '../cluster/cluster-uid.ts'
import { secretText } from '../provider/secret-data.ts'
import { mappingOf, metadataOf } from '../record/fields.ts'
import { SECRETS } from '../record/resources.ts'
import { shortHash } from '../record/short-hash.ts'
import { OrphanCollector } from './orphan-collector.ts'
import { RemoteCluster, type RemoteParts } from './remote-cluster.ts'
import { NOT_REACHED } from './remote-contact.ts'

/** The key in a Secret that holds the kubeconfig. */
const KEY = 'kubeconfig'
/** Clusters that are followed at once. */
const CLUSTERS_MAX = 100
const DROPPED = 'its Secret changed meanwhile'
const TOO_MANY = `more than ${CLUSTERS_MAX} clusters`
/** Interval of the check for clusters that can't be reached. */
const CHECK_MS = 1000

export interface RemoteSettings {
  /** Namespace of the Secrets with kubeconfigs. */
  readonly secretNamespace: string
  /** Label of these Secrets; its value is `true`. */
  readonly secretLabel: string
  /** How long the endpoints of a cluster are kept after its Secret was deleted. */
  readonly leaveMs: number
}

export interface RemoteClustersParts extends RemoteParts {
  readonly settings: RemoteSettings
  readonly connect: (config: InlineKubeconfig) => Promise<ApiClient>
  readonly metrics: RemoteMetrics
}

/** Counts reconciles of records in other clusters. `cluster`: name of its Secret. */
export interface RemoteMetrics {
  countRemoteReconcile(cluster: string, key: string): void
  forgetRemote(cluster: string, key: string): void
  forgetRemoteCluster(cluster: string): void
}

/** A Secret, and the cluster whose kubeconfig it holds. */
interface Entry {
  readonly secret: ApiObject
  readonly name: string
  cluster: RemoteCluster | undefined
  /** Short id of the cluster; '' = not known. */
  id: string
  /** What is wrong with the Secret itself; '' = nothing. */
  problem: string
  /** Why its cluster can't have its id; '' = it can, or is not known. */
  refusal: string
  /** The last reported fault. */
  reported: string
}

/** State of one of the clusters, for metrics. */
export interface RemoteStatus {
  readonly name: string
  readonly isFollowed: boolean
  readonly records: number
}

/**
 * The other clusters whose delegating records this one publishes: one for each existing Secret with
 * a kubeconfig. A fault of one cluster is reported in Events of its Secret, and does not affect the
 * others.
 */
export class RemoteClusters {
  readonly #parts: RemoteClustersParts
  readonly #secrets: Informer
  readonly #entries = new Map<string, Entry>()
  /** The entries whose id is known, by id. */
  readonly #byId = new Map<string, Entry>()
  /** When clusters last answered that were followed with an earlier kubeconfig, by id. */
  readonly #heardMs = new Map<string, number>()
  readonly #orphans: OrphanCollector
  readonly #closing = new Set<Promise<void>>()
  readonly #startMs: number
  #ownUid = ''
  #fault = ''
  #isClosed = false
  #wake: () => void = () => {}
  #stop: () => void = () => {}

  constructor(parts: RemoteClustersParts) {
    const { local, writer, mutex, settings } = parts
    const { api, log, clock, timers, random } = local.env
    this.#parts = parts
    this.#startMs = clock.monotonic()
    this.#secrets = new Informer({
      api,
      log,
      clock,
      timers,
      random,
      resource: SECRETS,
      namespaces: [settings.secretNamespace],
      labelSelector: `${settings.secretLabel}=true`,
      trim: trimSecret,
    })
    this.#orphans = new OrphanCollector({
      view: local,
      records: local.recordInformer,
      writer,
      mutex,
      clock,
      timers,
      log,
      leaveMs: settings.leaveMs,
      known: () => this.#knownIds(),
    })
  }

  /** Never rejects. */
  start(): void {
    this.#secrets.start()
    void this.#run()
  }

  /** Current faults; '' = none. */
  get note(): string {
    const faults = [...this.#entries.values()].flatMap((entry) => {
      const found = [faultOf(entry), entry.cluster?.clockFault ?? ''].filter((one) => one !== '')
      return found.map((fault) => `cluster ${entry.name}: ${fault}`)
    })
    return [this.#secrets.reason, this.#fault, ...faults].filter((one) => one !== '').join('; ')
  }

  statuses(): readonly RemoteStatus[] {
    return [...this.#entries.values()].map((entry) => ({
      name: entry.name,
      isFollowed: faultOf(entry) === '',
      records: entry.cluster?.records ?? 0,
    }))
  }

  /** As in `FollowedClusters`. */
  heardMsOf(id: string): number {
    const beforeMs = this.#heardMs.get(id) ?? Number.NEGATIVE_INFINITY
    return Math.max(this.#clusterOf(id)?.heardMs ?? beforeMs, beforeMs)
  }

  /** As in `FollowedClusters`. */
  checkOf(id: string, authoritativeKey: string): HealthCheck | undefined {
    return this.#clusterOf(id)?.checkOf(authoritativeKey)
  }

  /** As in `FollowedClusters`. */
  isKnown(id: string): boolean {
    return this.#clusterOf(id)?.isKnown ?? false
  }

  /** As in `FollowedClusters`. */
  hasAll(authoritativeKey: string): boolean {
    const { local, bounds } = this.#parts
    const isLate = local.env.clock.monotonic() - this.#startMs >= bounds.maxMs
    const isListed = this.#secrets.isSynced && this.#entries.size === this.#secrets.size
    if (!isListed) return isLate
    return [...this.#entries.values()].every(({ problem, refusal, cluster }) => {
      if (problem !== '' || refusal !== '') return true
      return cluster?.hasAll(authoritativeKey) ?? isLate
    })
  }

  #clusterOf(id: string): RemoteCluster | undefined {
    return this.#byId.get(id)?.cluster
  }

  /** Starts nothing more; resolves once all running work has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    this.#stop()
    this.#secrets.close()
    for (const { cluster } of this.#entries.values()) this.#end(cluster)
    this.#entries.clear()
    this.#byId.clear()
    await Promise.all(this.#closing)
    await this.#orphans.close()
  }

  async #run(): Promise<void> {
    await this.#secrets.synced()
    if (this.#isClosed) return
    this.#orphans.start()
    await this.#findOwnUid()
    if (this.#isClosed) return
    const endSecrets = this.#secrets.subscribe({
      onAdd: (key, secret) => this.#put(key, secret),
      onUpdate: (key, secret, before) => {
        const isSame = textOf(secret.data, KEY) === textOf(before.data, KEY)
        if (!isSame) this.#put(key, secret)
      },
      onDelete: (key) => {
        this.#drop(key)
        this.#fillUp()
      },
    })
    const endReconciles = this.#parts.local.env.timers.every(CHECK_MS, () => this.#reportFaults())
    this.#stop = () => {
      endSecrets()
      endReconciles()
    }
  }

  /**
   * Reads the UID of this cluster. It is needed only once a cluster is followed, and then it is
   * required.
   */
  async #findOwnUid(): Promise<void> {
    const { objects, env } = this.#parts.local
    const backoff = new Backoff(env.random)
    while (!this.#isClosed) {
      const found = this.#secrets.size === 0 ? undefined : await readClusterUid(objects)
      if (found !== undefined && 'uid' in found) {
        this.#ownUid = found.uid
        this.#fault = ''
        return
      }
      const fault = found === undefined ? '' : `other clusters not followed: ${found.problem}`
      if (fault !== '' && fault !== this.#fault) env.log.warning(fault, 'own-cluster-unknown')
      this.#fault = fault
      await new Promise<void>((resolve) => {
        const cancel = env.timers.after(found === undefined ? CHECK_MS : backoff.next(), resolve)
        this.#wake = () => {
          cancel()
          resolve()
        }
      })
    }
  }

  #put(key: string, secret: ApiObject): void {
    // Until its id is read again, the Secret is assumed to lead to the same cluster as before.
    const { id = '', reported = '' } = this.#entries.get(key) ?? {}
    this.#drop(key)
    const name = textOf(metadataOf(secret), 'name')
    const known = { secret, name, id, reported }
    const entry: Entry = { ...known, cluster: undefined, problem: '', refusal: '' }
    this.#entries.set(key, entry)
    if (id !== '') this.#byId.set(id, entry)
    const config = scanInlineKubeconfig(secretText(secret, KEY))
    if (typeof config === 'string') entry.problem = `its kubeconfig ${config}`
    else if (this.#fitCount > CLUSTERS_MAX) entry.problem = TOO_MANY
    else void this.#open(key, entry, config)
    this.#reportFaults()
  }

  /** Number of Secrets without a problem, including the one that is being checked. */
  get #fitCount(): number {
    return [...this.#entries.values()].filter(({ problem }) => problem === '').length
  }

  /** Follows clusters for which there was no room before. */
  #fillUp(): void {
    for (const [key, { secret, problem }] of [...this.#entries]) {
      if (this.#fitCount >= CLUSTERS_MAX) return
      if (problem === TOO_MANY) this.#put(key, secret)
    }
  }

  async #open(key: string, entry: Entry, config: InlineKubeconfig): Promise<void> {
    const { local, connect, metrics } = this.#parts
    const { name } = entry
    if (config.warning !== '')
      local.env.log.warning(`cluster ${name}: ${config.warning}`, 'kubeconfig-warning')
    const api = await connect(config)
    if (this.#isClosed || this.#entries.get(key) !== entry) return
    entry.cluster = new RemoteCluster({
      ...this.#parts,
      name,
      api,
      ownUid: this.#ownUid,
      claim: (id) => {
        entry.refusal = this.#entries.get(key) === entry ? this.#claim(entry, id) : DROPPED
        return entry.refusal
      },
      hasAll: (authoritative) => this.hasAll(authoritative),
      onReconcile: (record) => {
        // A reconcile that ends after its Secret was deleted must not create the metric again.
        if (this.#entries.get(key) === entry) metrics.countRemoteReconcile(name, record)
      },
      onForget: (record) => metrics.forgetRemote(name, record),
    })
    entry.cluster.start()
  }

  /**
   * Two Secrets must not lead to one cluster, nor one to this cluster, whose records are already in
   * place.
   */
  #claim(entry: Entry, id: string): string {
    if (id === shortHash(this.#ownUid)) return 'the kubeconfig leads to this cluster itself'
    const other = this.#byId.get(id)
    if (other !== undefined && other !== entry)
      return `Secret ${other.name} has a kubeconfig of the same cluster`
    this.#byId.delete(entry.id)
    this.#byId.set(id, entry)
    entry.id = id
    return ''
  }

  #drop(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    if (entry.id !== '') this.#heardMs.set(entry.id, this.heardMsOf(entry.id))
    this.#entries.delete(key)
    this.#byId.delete(entry.id)
    this.#parts.metrics.forgetRemoteCluster(entry.name)
    this.#end(entry.cluster)
  }

  #end(cluster: RemoteCluster | undefined): void {
    if (cluster === undefined) return
    const closing = cluster.close()
    this.#closing.add(closing)
    void closing.then(() => this.#closing.delete(closing))
  }

  /** Ids of the clusters of all Secrets; undefined = some ids are not known. */
  #knownIds(): ReadonlySet<string> | undefined {
    const ids = [...this.#entries.values()].map(({ id }) => id)
    const isKnown = ids.length === this.#secrets.size && !ids.includes('')
    return isKnown ? new Set(ids) : undefined
  }

  #reportFaults(): void {
    for (const entry of this.#entries.values()) {
      const fault = faultOf(entry)
      if (fault === entry.reported || fault === NOT_REACHED) continue
      this.#notify(entry, fault)
      entry.reported = fault
    }
  }

  #notify({ secret, name, problem }: Entry, fault: string): void {
    const { events, env } = this.#parts.local
    const { namespace, uid } = metadataOf(secret)
    const subject = {
      apiVersion: 'v1',
      kind: 'Secret',
      namespace: String(namespace),
      name,
      uid: String(uid),
    }
    if (problem !== '')
      env.log.warning(`Secret ${name}: cluster not followed: ${problem}`, 'cluster-secret-problem')
    events.record(subject, {
      type: fault === '' ? 'Normal' : 'Warning',
      reason: fault === '' ? 'RemoteClusterFollowed' : 'RemoteClusterFault',
      action: 'Follow',
      note: fault === '' ? 'the cluster is followed again' : fault,
    })
  }
}

/** Why the cluster of a Secret is not followed just now; '' = it is. */
function faultOf({ problem, cluster }: Entry): string {
  return problem === '' ? (cluster?.fault ?? NOT_REACHED) : problem
}

/** The part of a Secret that is cached. */
function trimSecret(secret: ApiObject): ApiObject {
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = metadataOf(secret)
  const kubeconfig = textOf(mappingOf(secret, 'data'), KEY)
  return {
    metadata: { name, namespace, uid, resourceVersion },
    data: { [KEY]: kubeconfig },
  }
}
