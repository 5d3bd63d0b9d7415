import { guarding } from '../../../base/telemetry/guard.ts'
import { FQDN_APIS, type FqdnApi } from '../../../egress/policies/fqdn/fqdn-policy.ts'
import { NETWORK_POLICIES } from '../../../egress/sinks/network-policy/network-policy-sink.ts'
import type { ApiResource } from '../../../kube/api.ts'
import { Informer } from '../../../kube/informer.ts'
import type { ListWatch } from '../../../kube/list-watch.ts'
import { Objects } from '../../../kube/objects.ts'
import { WorkQueue, type WorkResult } from '../../../kube/work-queue.ts'
import { NotLeadingError } from '../../cluster/api-writer.ts'
import { ObjectCache } from '../../cluster/object-cache.ts'
import type { ControllerEnv, ControllerSession } from '../../controller.ts'
import { FIELD_MANAGER } from '../../record/fields.ts'
import { type DnsServers, FileServers, ServiceServers } from './dns-servers.ts'
import { Lookups } from './lookups.ts'
import { FqdnMetrics } from './metrics.ts'
import { policyKey } from './policy-key.ts'
import { GrantReader } from './policy-states.ts'
import { FqdnReconciler } from './reconciler.ts'
import type { FqdnSettings } from './settings.ts'

const ENDPOINT_SLICES = { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' }
/** Answers that come within this time are written together. */
const GATHER_MS = 20
/** Status writes at once when the session ends, and the time for all of them. */
const FLUSH_WORKERS = 16
const FLUSH_MS = 3000
/** Time that requests get when the session ends. */
const CLOSE_MS = 5000

/**
 * Keeps a NetworkPolicy for each FQDNNetworkPolicy:
 *
 *     policies ─▶ names ─▶ lookups at all DNS servers ─▶ NetworkPolicy ─▶ status
 *                             ▲           │
 *                             └── TTL ────┘
 */
export class FqdnSession implements ControllerSession {
  readonly #env: ControllerEnv
  readonly #objects: Objects
  readonly #policies: ReadonlyMap<FqdnApi, Informer>
  readonly #networkPolicies: Informer
  readonly #slices: Informer | undefined
  readonly #servers: DnsServers
  readonly #lookups: Lookups
  readonly #reconciler: FqdnReconciler
  readonly #queue: WorkQueue
  readonly #stopCollecting: () => void
  #serverReason = ''

  constructor(env: ControllerEnv, settings: FqdnSettings) {
    this.#env = env
    this.#objects = new Objects({ ...env, fieldManager: FIELD_MANAGER })
    this.#policies = new Map(FQDN_APIS.map((api) => [api, this.#informer(api)]))
    this.#networkPolicies = this.#informer(NETWORK_POLICIES)
    const { source, overTcp } = settings.dns
    if (source.kind === 'service') {
      const { namespace, name } = source
      const labelSelector = `kubernetes.io/service-name=${name}`
      this.#slices = this.#informer(ENDPOINT_SLICES, [namespace], labelSelector)
      const onChange = (isNew: boolean): void => this.#onServers(isNew)
      this.#servers = new ServiceServers(this.#slices, `${namespace}/${name}`, overTcp, onChange)
    } else {
      this.#servers = new FileServers(source.path, env.clock)
    }
    const metrics = new FqdnMetrics(env.registry)
    const { clock, timers, random, log } = env
    this.#lookups = new Lookups({
      servers: this.#servers,
      settings,
      metrics,
      onNews: (key) => this.#queue.addAfter(key, GATHER_MS),
      onFailure: (key, name, reason) => this.#reconciler.noteFailure(key, name, reason),
      clock,
      timers,
      random,
      log,
    })
    const cacheOf = (informer: Informer) => new ObjectCache(informer, clock)
    this.#reconciler = new FqdnReconciler({
      policies: new Map([...this.#policies].map(([api, informer]) => [api, cacheOf(informer)])),
      networkPolicies: cacheOf(this.#networkPolicies),
      servers: this.#servers,
      lookups: this.#lookups,
      grants: new GrantReader(this.#lookups, settings, clock),
      expirationMs: settings.ipExpirationMs,
      objects: this.#objects,
      events: env.events,
      metrics,
      mayWrite: env.mayWrite,
    })
    this.#queue = new WorkQueue({
      what: 'fqdnnetworkpolicies',
      work: (key) => this.#work(key),
      workers: settings.maxConcurrentReconciles,
      clock,
      timers,
      random,
      log,
    })
    this.#stopCollecting = metrics.collectFrom(() => this.#facts())
    this.#watch()
    void guarding(
      log,
      'Starting the controller of FQDNNetworkPolicies',
    )(async () => {
      for (const informer of this.#informers) informer.start()
      // A policy must not be decided before its NetworkPolicy is known.
      await this.#networkPolicies.synced()
      this.#queue.start()
      await this.#slices?.synced()
      this.#onServers(false)
    })
  }

  #facts() {
    return {
      ...this.#reconciler.counts,
      names: this.#lookups.size,
      addresses: this.#lookups.addressCount,
      servers: this.#servers.list().length,
      lagMs: this.#lookups.lagMs,
      evictions: this.#lookups.evictions,
    }
  }

  get watches(): readonly ListWatch[] {
    return this.#informers.flatMap(({ watches }) => watches)
  }

  get reason(): string {
    const reasons = [...this.#policies.values()].map(({ reason }) => reason)
    // One of the two APIs is enough.
    const policyReason = reasons.includes('') ? '' : (reasons[0] ?? '')
    return [policyReason, this.#networkPolicies.reason, this.#servers.reason]
      .filter((text) => text !== '')
      .join('; ')
  }

  async close(): Promise<void> {
    this.#stopCollecting()
    // An API server that does not respond must not hold up the end of the process.
    const cancel = this.#env.timers.after(CLOSE_MS, () => this.#objects.close())
    await this.#queue.close()
    this.#lookups.close()
    await this.#flush()
    cancel()
    for (const informer of this.#informers) informer.close()
    this.#objects.close()
  }

  get #informers(): readonly Informer[] {
    const slices = this.#slices === undefined ? [] : [this.#slices]
    return [...this.#policies.values(), this.#networkPolicies, ...slices]
  }

  #informer(
    resource: ApiResource,
    namespaces: readonly string[] = this.#env.namespaces,
    labelSelector = '',
  ): Informer {
    return new Informer({ ...this.#env, namespaces, resource, labelSelector })
  }

  #watch(): void {
    for (const [api, informer] of this.#policies) {
      const add = (objectKey: string): void => {
        this.#queue.add(policyKey(api, objectKey))
      }
      informer.subscribe({
        onAdd: add,
        onUpdate: add,
        onDelete: add,
        onReturn: () => this.#queue.retryFailed(),
      })
    }
    const addOwners = (objectKey: string): void => {
      for (const [api, informer] of this.#policies) {
        if (informer.get(objectKey) !== undefined) this.#queue.add(policyKey(api, objectKey))
      }
    }
    this.#networkPolicies.subscribe({
      onAdd: addOwners,
      onUpdate: addOwners,
      onDelete: addOwners,
      onReturn: () => this.#queue.retryFailed(),
    })
  }

  /** Called when the list of DNS servers changes. The status of a policy says whether there are any. */
  #onServers(isNew: boolean): void {
    if (isNew) this.#lookups.hasten()
    const { reason } = this.#servers
    if (reason === this.#serverReason) return
    this.#serverReason = reason
    for (const key of this.#reconciler.keys()) this.#queue.add(key)
  }

  async #work(key: string): Promise<WorkResult | undefined> {
    try {
      return await this.#reconciler.reconcile(key)
    } catch (error) {
      if (error instanceof NotLeadingError) return undefined
      throw error
    }
  }

  /** Stores what has changed since the last status writes, as far as there is time. */
  async #flush(): Promise<void> {
    const { clock, log, mayWrite } = this.#env
    const keys = [...this.#reconciler.keys()]
    const endMs = clock.monotonic() + FLUSH_MS
    const guarded = guarding(log, 'Writing the status of FQDNNetworkPolicies')
    const work = async (): Promise<void> => {
      for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
        if (!mayWrite() || clock.monotonic() > endMs) return
        await guarded(() => this.#reconciler.flush(key))
      }
    }
    await Promise.all(Array.from({ length: FLUSH_WORKERS }, work))
  }
}
