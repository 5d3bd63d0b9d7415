import { FaultLog } from '../../../base/telemetry/fault-log.ts'
import type { AskAddresses } from '../../../client/resolver/ask-addresses.ts'
import type { Observation } from '../../../client/resolver/observation.ts'
import { Resolver } from '../../../client/resolver/resolver.ts'
import { RESOLVER_RULES_DEFAULT } from '../../../client/resolver/waits.ts'
import type { HostPort } from '../../../dns/host-port.ts'
import {
  lookupDue,
  NOT_ASKED,
  noteLookup,
  planRemoval,
  type StatusName,
  type StatusRemoval,
} from '../../../egress/policies/openshift/removal.ts'
import { scanSelector } from '../../../egress/selectors/scan-selector.ts'
import { type ApiObject, type ApiResource, textOf } from '../../../kube/api.ts'
import { Informer } from '../../../kube/informer.ts'
import type { ListWatch } from '../../../kube/list-watch.ts'
import { splitKey } from '../../../kube/object-key.ts'
import { Objects } from '../../../kube/objects.ts'
import { WorkQueue, type WorkResult } from '../../../kube/work-queue.ts'
import type { ControllerEnv, ControllerSession } from '../../controller.ts'
import { isDeleting } from '../../record/fields.ts'
import { endWork } from '../end-work.ts'
import { reasonOfKinds } from '../missing-kinds.ts'
import { dnsNameOf, invalidName, subjectOf } from '../name-objects.ts'
import { EGRESS_FIREWALL_DNS_NAMES, NAME_KINDS } from '../resources.ts'
import { serversOf, trimSlice } from './dns-servers.ts'
import { readStatusNames, withoutRemoved } from './status-names.ts'
import { type TrackedName, TrackedNames } from './tracked-names.ts'

const ENDPOINT_SLICES: ApiResource = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
}
const WORKERS = 8
/** More than the default: names whose upstream is slow must not delay the others past their TTL. */
const LOOKUPS = 64
/** Without the DNS servers, dead addresses are removed from then on. */
const SERVERS_MS = 30_000
/** Until then, the watch reports what was written. */
const WRITTEN_MS = 1000

export interface DnsNameResolverSettings {
  /** Namespace of the objects. */
  readonly namespace: string
  /** The Service of the DNS servers. */
  readonly service: { readonly namespace: string; readonly name: string }
}

/** Counters of a controller. */
interface DnsNameResolverCounts {
  lookup(result: Observation['kind']): void
  removed(what: 'addresses' | 'names', count: number): void
}

interface Kind {
  readonly resource: ApiResource
  readonly kind: string
  readonly informer: Informer
}

/**
 * Looks up the names of DNSNameResolvers when a TTL ends, and removes dead addresses:
 *
 *     objects ─▶ names, ends of TTLs ─▶ resolver ─▶ DNS servers of the cluster ─▶ (they write the status)
 *        └─────▶ dead addresses ─▶ status          └─▶ what they answered
 *
 * The answers are only used to know what is dead. The DNS servers report each lookup in the status,
 * by their directive `egressfirewall`.
 */
export class DnsNameResolverSession implements ControllerSession {
  readonly #env: ControllerEnv
  readonly #settings: DnsNameResolverSettings
  readonly #counts: DnsNameResolverCounts
  readonly #client: Objects
  readonly #kinds: readonly Kind[]
  readonly #slices: Informer
  readonly #names = new TrackedNames()
  /** Of objects with invalid names, by the key of the object. */
  readonly #faults: FaultLog
  readonly #resolver: Resolver
  readonly #queue: WorkQueue
  readonly #startMs: number
  #servers: readonly HostPort[] = []
  #isClosed = false
  #cancelStart: () => void = () => {}

  constructor(
    env: ControllerEnv,
    settings: DnsNameResolverSettings,
    counts: DnsNameResolverCounts,
    ask: AskAddresses,
  ) {
    this.#env = env
    this.#settings = settings
    this.#counts = counts
    this.#client = new Objects(env)
    this.#faults = new FaultLog(env.log, env.clock)
    this.#startMs = env.clock.now()
    this.#kinds = NAME_KINDS.map(({ resource, kind }) => ({
      resource,
      kind,
      informer: this.#informer(resource, settings.namespace, ''),
    }))
    const { namespace, name } = settings.service
    const label = `kubernetes.io/service-name=${name}`
    this.#slices = this.#informer(ENDPOINT_SLICES, namespace, label)
    this.#resolver = new Resolver({
      ...env,
      rules: { ...RESOLVER_RULES_DEFAULT, workers: LOOKUPS },
      familiesOf: () => [1, 2],
      servers: () => this.#servers,
      serversMaxOf: (name) => this.#serversMaxOf(name),
      ask,
      onResolved: (name, _, found) => this.#note(name, found),
    })
    this.#queue = new WorkQueue({
      ...env,
      what: 'dnsnameresolver',
      work: (key) => this.#reconcile(key),
      workers: WORKERS,
    })
    this.#subscribe()
    this.#start()
  }

  get watches(): readonly ListWatch[] {
    return [...this.#kinds.map(({ informer }) => informer), this.#slices].flatMap(
      ({ watches }) => watches,
    )
  }

  get reason(): string {
    const { namespace, name } = this.#settings.service
    if (this.#slices.reason !== '') return this.#slices.reason
    if (this.#slices.isSynced && this.#servers.length === 0) {
      return `Service ${namespace}/${name} has no ready endpoint with a UDP port`
    }
    return reasonOfKinds(this.#kinds.map(({ informer }) => informer))
  }

  /** For metrics; 0 = the session has ended. */
  get facts(): { readonly names: number; readonly servers: number; readonly lagMs: number } {
    if (this.#isClosed) return { names: 0, servers: 0, lagMs: 0 }
    const { lagMs } = this.#resolver
    return { names: this.#names.size, servers: this.#servers.length, lagMs }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelStart()
    for (const { informer } of this.#kinds) informer.close()
    this.#slices.close()
    this.#resolver.close()
    await endWork(this.#queue, this.#client, this.#env.timers)
  }

  #informer(resource: ApiResource, namespace: string, labelSelector: string): Informer {
    const { log } = this.#env
    return new Informer({
      ...this.#env,
      resource,
      namespaces: [namespace],
      labelSelector,
      // Most clusters do not have the definition of the draft.
      log: resource === EGRESS_FIREWALL_DNS_NAMES ? { ...log, warning: log.info } : log,
      ...(resource === ENDPOINT_SLICES ? { trim: trimSlice } : {}),
    })
  }

  #start(): void {
    const begin = (): void => {
      this.#cancelStart()
      if (!this.#isClosed) this.#queue.start()
    }
    this.#cancelStart = this.#env.timers.after(SERVERS_MS, begin)
    this.#slices.start()
    for (const { informer } of this.#kinds) informer.start()
    void this.#slices.synced().then(() => {
      this.#readServers()
      begin()
    })
  }

  #subscribe(): void {
    const readServers = (): void => {
      if (this.#slices.isSynced) this.#readServers()
    }
    this.#slices.subscribe({ onAdd: readServers, onUpdate: readServers, onDelete: readServers })
    for (const { resource, informer } of this.#kinds) {
      const add = (key: string): void => void this.#queue.add(`${resource.plural}/${key}`)
      informer.subscribe({
        onAdd: add,
        onUpdate: add,
        onDelete: add,
        onReturn: () => this.#queue.retryFailed(),
      })
    }
  }

  #readServers(): void {
    const hadNone = this.#servers.length === 0
    this.#servers = serversOf(this.#slices.objects())
    if (!hadNone || this.#servers.length === 0) return
    for (const { name } of this.#names.all()) this.#resolver.hasten(name)
  }

  /** As OpenShift's controller does: one server is enough for a name that has one address everywhere. */
  #serversMaxOf(name: Uint8Array): number {
    const addresses = [...(this.#names.get(name)?.objects.values() ?? [])].flat()
    const known = new Set(addresses.map(({ ip }) => ip)).size
    return known > 1 ? RESOLVER_RULES_DEFAULT.serversMax : 1
  }

  /** Notes what the servers replied for a name. */
  #note(name: Uint8Array, found: readonly Observation[]): void {
    for (const { kind } of found) this.#counts.lookup(kind)
    const tracked = this.#names.get(name)
    if (tracked === undefined) return
    const { clock } = this.#env
    const nowMs = clock.now()
    const times = { nowMs, offsetMs: nowMs - clock.monotonic() }
    const addresses = [...tracked.objects.values()].flat()
    tracked.state = noteLookup(tracked.state, found, addresses, times)
    this.#schedule(tracked)
    for (const key of tracked.objects.keys()) this.#queue.add(key)
  }

  #schedule({ name, objects, state }: TrackedName): void {
    const dueMs = lookupDue([...objects.values()].flat(), state, this.#startMs)
    const { clock } = this.#env
    if (dueMs === undefined) this.#resolver.want(name)
    else this.#resolver.schedule(name, clock.monotonic() + dueMs - clock.now())
  }

  async #reconcile(key: string): Promise<WorkResult | undefined> {
    const found = this.#find(key)
    if (found === undefined) {
      this.#track(key, [])
      this.#faults.clear(key)
      return undefined
    }
    const { object } = found
    const names = readStatusNames(object)
    const own = { dnsName: dnsNameOf(object), addresses: [] }
    this.#checkName(key, found)
    this.#track(key, [own, ...names])
    const stateOf = (dnsName: string) => this.#names.get(dnsName)?.state ?? NOT_ASKED
    const nowMs = this.#env.clock.now()
    const removal = planRemoval(names, stateOf, nowMs, this.#startMs)
    if (removal.addresses.size > 0 || removal.names.size > 0) {
      await this.#remove(key, found, removal)
      return { againMs: WRITTEN_MS }
    }
    return removal.nextMs < Number.POSITIVE_INFINITY
      ? { againMs: removal.nextMs - nowMs }
      : undefined
  }

  /** Reports an invalid `spec.name`, which the API server's validation did not see. */
  #checkName(key: string, { resource, kind, object }: Kind & { readonly object: ApiObject }): void {
    const selector = scanSelector(dnsNameOf(object), 'openshift')
    if (typeof selector !== 'string') {
      this.#faults.clear(key)
      return
    }
    const { namespace, name } = splitKey(key.slice(resource.plural.length + 1))
    const fault = `dnsnameresolver ${namespace}/${name}: spec.name: ${selector}`
    if (!this.#env.mayWrite() || !this.#faults.report(key, fault)) return
    this.#env.events.record(subjectOf(resource, kind, object), invalidName(selector))
  }

  /** Undefined = there is no such object any more. */
  #find(key: string): (Kind & { readonly object: ApiObject }) | undefined {
    for (const kind of this.#kinds) {
      const { plural } = kind.resource
      if (!key.startsWith(`${plural}/`)) continue
      const object = kind.informer.get(key.slice(plural.length + 1))
      return object === undefined || isDeleting(object) ? undefined : { ...kind, object }
    }
    return undefined
  }

  #track(key: string, names: readonly StatusName[]): void {
    for (const { name } of this.#names.set(key, names)) this.#resolver.forget(name)
    for (const dnsName of this.#names.of(key)) {
      const tracked = this.#names.get(dnsName)
      if (tracked !== undefined) this.#schedule(tracked)
    }
  }

  async #remove(
    key: string,
    { resource, kind, object }: Kind & { readonly object: ApiObject },
    removal: StatusRemoval,
  ): Promise<void> {
    const { log, mayWrite } = this.#env
    if (!mayWrite()) return
    const { namespace, name } = splitKey(key.slice(resource.plural.length + 1))
    // Another writer may have renewed what is removed here.
    await this.#client.patchStatus(
      { resource, namespace, name },
      {
        metadata: { resourceVersion: textOf(object.metadata, 'resourceVersion') },
        status: { resolvedNames: withoutRemoved(object, removal) },
      },
    )
    for (const [dnsName, ips] of removal.addresses) {
      this.#counts.removed('addresses', ips.size)
      log.debug(
        `dnsnameresolver ${namespace}/${name}: removed ${[...ips].join(' ')} of ${dnsName}`,
        'dnsnameresolver-removed',
      )
    }
    this.#counts.removed('names', removal.names.size)
    for (const dnsName of removal.names) {
      const note = `${dnsName} has no address, and its lookups fail: the name is removed`
      this.#report(kind, resource, object, { reason: 'NameRemoved', note })
    }
    if (removal.unanswered > 0) {
      const note =
        'addresses are removed: no DNS server has answered for them since their TTL ended'
      this.#report(kind, resource, object, { reason: 'NoAnswer', note })
    }
  }

  #report(
    kind: string,
    resource: ApiResource,
    object: ApiObject,
    { reason, note }: { readonly reason: string; readonly note: string },
  ): void {
    const subject = subjectOf(resource, kind, object)
    this.#env.log.warning(
      `dnsnameresolver ${subject.namespace}/${subject.name}: ${note}`,
      'dnsnameresolver-problem',
    )
    this.#env.events.record(subject, { type: 'Warning', reason, action: 'RemoveDead', note })
  }
}
