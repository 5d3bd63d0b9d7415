import { ResourceRegistry } from '../base/resource-registry.ts'
import { reasonOf } from '../base/system-error.ts'
import type { SpanRecorder } from '../base/telemetry/spans/span.ts'
import { printHostPort } from '../dns/host-port.ts'
import { GroupLookup } from '../health/drain/group-lookup.ts'
import { ApiError } from '../kube/api.ts'
import { createInlineClient } from '../kube/inline-kubeconfig.ts'
import { keyOf } from '../kube/object-key.ts'
import { WorkQueue, type WorkResult } from '../kube/work-queue.ts'
import { PeerFollower } from '../peering/peer.ts'
import { ApiWriter, NotLeadingError } from './cluster/api-writer.ts'
import type { Cluster } from './cluster/cluster.ts'
import { watchInputs } from './cluster/watch-inputs.ts'
import { KeyedMutex } from './delegation/keyed-mutex.ts'
import { OwnerIndex } from './delegation/owner-index.ts'
import { GroupSet } from './groups/group-set.ts'
import type { OperatorMetrics } from './metrics.ts'
import { PeerHealth } from './peers/peer-health.ts'
import { PeerSet } from './peers/peer-set.ts'
import { SessionProbing } from './probes/session-probing.ts'
import { Reconciler } from './reconcile/reconciler.ts'
import { operatorDeathRules, RecordDeaths } from './reconcile/record-deaths.ts'
import { Reporter } from './reconcile/reporter.ts'
import { RemoteClusters, type RemoteClustersParts } from './remotes/remote-clusters.ts'
import type { OperatorSettings } from './settings.ts'
import type { PeersForm } from './status/peer-status.ts'
import { askNameserver } from './zones/ask-zone.ts'
import { ZoneWatch } from './zones/zone-watch.ts'

/**
 * Records that are reconciled at once. Each reconcile waits for the API, but only if something has
 * changed.
 */
const WORKERS = 8
/** How long reconciles may follow each other before timers and sockets get their turn. */
const TURN_MS = 10
/** The error for a server-side apply with fields that the installed definition lacks. */
const UNKNOWN_FIELD =
  /status\.(peers|peers\[\d+\]\.relayed|served|down): field not declared in schema/g

interface LeaderSessionParts {
  readonly cluster: Cluster
  readonly settings: OperatorSettings
  readonly site: string
  readonly metrics: OperatorMetrics
  /** Must be called before each write. */
  readonly mayWrite: () => boolean
  /** Undefined = no spans of reconciles are recorded. */
  readonly spans?: SpanRecorder | undefined
}

/**
 * One leader session: follows peers and reconciles records. The previous leader may have changed
 * everything, so each session starts from the state of the cluster alone.
 */
export class LeaderSession {
  readonly queue: WorkQueue
  readonly peers: PeerSet
  /** The lookups of active groups, of all records. */
  readonly #lookups = new ResourceRegistry()
  readonly #groups: GroupSet
  readonly #zones: ZoneWatch
  /** undefined = no other cluster delegates to this one. */
  readonly remotes: RemoteClusters | undefined
  readonly #parts: LeaderSessionParts
  readonly #reconciler: Reconciler
  readonly #reporter: Reporter
  readonly #forgetOwners: () => void
  readonly #stopWatching: readonly (() => void)[]
  readonly #probing: SessionProbing
  readonly #peerHealth: PeerHealth
  #peersForm: PeersForm = 'whole'
  #hasCounts = true
  /** Monotonic clock: when timers and sockets last had their turn. */
  #turnMs = 0

  constructor(parts: LeaderSessionParts) {
    const { cluster, settings, site, metrics, mayWrite } = parts
    const { clock, timers, log, apiClock } = cluster.env
    this.#parts = parts
    const { probing, role } = settings
    const onFinding = (key: string): void => {
      this.queue.add(key)
    }
    const probingParts = { cluster, metrics, mayWrite, role, onFinding }
    this.#probing = new SessionProbing(probingParts, probing)
    const onEvent = (key: string): void => {
      this.queue.add(key)
      this.#probing.reconsider(key)
    }
    this.#peerHealth = createPeerHealth(parts, this.#probing, onFinding)
    const work = (key: string): Promise<WorkResult | undefined> => this.#work(key)
    this.queue = new WorkQueue({ what: 'dnsrecords', work, workers: WORKERS, ...cluster.env })
    this.peers = createPeers(parts, onEvent)
    const resources = this.#lookups
    this.#groups = new GroupSet({ ownGroup: settings.group, resources, onEvent, timers, log })
    this.#zones = createZones(parts, onEvent)
    const { objects, records: cache } = cluster
    const onWrite = metrics.countWrite.bind(metrics)
    const writer = new ApiWriter({ objects, cache, mayWrite, onWrite })
    const mutex = new KeyedMutex()
    const owners = new OwnerIndex()
    this.#reporter = new Reporter(cluster.events, metrics, log)
    this.#reconciler = new Reconciler({
      ...{ view: cluster, writer, clock, apiClock },
      peers: this.peers,
      listener: this.#reporter,
      deaths: new RecordDeaths({ site, rules: operatorDeathRules(settings), clock, log }),
      site,
      bounds: settings,
      silentMs: settings.silentMs,
      peerHealth: this.#peerHealth,
      peersForm: () => this.#peersForm,
      hasCounts: () => this.#hasCounts,
      role,
      shares: settings.shares,
      isProbing: probing !== undefined,
      removalTimeoutMs: settings.removalTimeoutMs,
      mutex,
      owners,
      clusters: {
        heardMsOf: (id) => this.remotes?.heardMsOf(id) ?? Number.NEGATIVE_INFINITY,
        checkOf: (id, key) => this.remotes?.checkOf(id, key),
        isKnown: (id) => this.remotes?.isKnown(id) ?? false,
        hasAll: (key) => this.remotes?.hasAll(key) ?? true,
      },
      groups: this.#groups,
      zones: this.#zones,
    })
    const { recordInformer: records, secretInformer: secrets } = cluster
    const onNames = cluster.onNames.bind(cluster)
    const watched = { records, secrets, cache, onNames }
    this.#forgetOwners = owners.watch(records, '')
    this.#stopWatching = [
      watchInputs({ ...watched, owners, onEvent, onCheck: onFinding }),
      cluster.onHealth(onEvent),
      cluster.onNames(onEvent),
      ...(apiClock === undefined ? [] : [apiClock.onFault(() => this.#reconcileAll())]),
      records.subscribe({ onReturn: () => this.queue.retryFailed() }),
    ]
    this.queue.start()
    if (role === 'secondary') return
    this.remotes = createRemotes(parts, { writer, mutex, owners, resources, onCheck: onFinding })
    this.remotes.start()
  }

  /** Zones that no nameserver serves, and faults of other sites, for the ready page. */
  get faults(): readonly string[] {
    return [...this.#zones.faults, ...this.#reporter.siteFaults]
  }

  get siteFaultCount(): number {
    return this.#reporter.siteFaults.length
  }

  /** The active groups of the zones of all records. */
  get groups(): readonly GroupLookup[] {
    return this.#lookups.withPrefix(GroupLookup, '')
  }

  /** Starts nothing more; resolves once all running work has ended. */
  async close(): Promise<void> {
    for (const stop of this.#stopWatching) stop()
    await Promise.all([this.queue.close(), this.remotes?.close(), this.#probing.close()])
    // Not earlier: to a running reconcile, the owners of all endpoints would be gone.
    this.#forgetOwners()
    // Last: a running reconcile may still start to follow a peer, or to look up groups, which would
    // then never be released.
    this.#peerHealth.close()
    this.peers.close()
    this.#groups.close()
    this.#zones.close()
  }

  #reconcileAll(): void {
    for (const object of this.#parts.cluster.recordInformer.objects()) this.queue.add(keyOf(object))
  }

  async #work(key: string): Promise<WorkResult | undefined> {
    await this.#yieldTurn()
    const end = this.#parts.spans?.begin('reconcile')
    try {
      const againMs = await this.#reconciler.reconcile(key)
      end?.({ 'sextant/record': key }, '')
      return againMs === undefined ? undefined : { againMs }
    } catch (error) {
      end?.({ 'sextant/record': key }, reasonOf(error))
      if (error instanceof NotLeadingError) return undefined
      if (!(error instanceof ApiError)) throw error
      if (this.#isOldDefinition(error)) return { againMs: 0 }
      await this.#report(key, error)
      throw error
    }
  }

  /**
   * Reconciles without writes never wait. This yields to the event loop, so that thousands of them
   * do not delay the renewal of the lease.
   */
  async #yieldTurn(): Promise<void> {
    const { clock } = this.#parts.cluster.env
    if (clock.monotonic() - this.#turnMs < TURN_MS) return
    await new Promise((resolve) => setImmediate(resolve))
    this.#turnMs = clock.monotonic()
  }

  /** Reports an error that no retry can resolve in the status of the record. */
  async #report(key: string, { status, message }: ApiError): Promise<void> {
    if (status !== 400 && status !== 403 && status !== 413 && status !== 422) return
    try {
      await this.#reconciler.reportFault(key, message)
    } catch (error) {
      // The original fault is the one to report, and the caller logs it.
      if (!(error instanceof ApiError) && !(error instanceof NotLeadingError)) throw error
    }
  }

  #isOldDefinition(error: ApiError): boolean {
    const fields = [...error.message.matchAll(UNKNOWN_FIELD)].map(([, field = '']) => field)
    const lacksCounts = fields.some((field) => field === 'served' || field === 'down')
    const ofPeers = fields.find((field) => field.startsWith('peers'))
    const form = ofPeers === undefined ? this.#peersForm : ofPeers === 'peers' ? 'none' : 'unmarked'
    const isNews = form !== this.#peersForm || (lacksCounts && this.#hasCounts)
    if (form === 'none' && form !== this.#peersForm) {
      this.#reportLack('status.peers: endpoints of silent peers are lost in a restart')
    } else if (form !== this.#peersForm) {
      this.#reportLack(
        'status.peers[].relayed: after a restart, the nameservers of a site are guessed',
      )
    }
    if (lacksCounts && this.#hasCounts) {
      this.#reportLack(
        'status.served: `kubectl get dnsrecords` does not show how many endpoints are served',
      )
    }
    this.#peersForm = form
    this.#hasCounts &&= !lacksCounts
    return isNews
  }

  #reportLack(lack: string): void {
    this.#parts.cluster.env.log.warning(
      `CustomResourceDefinition dnsrecords.kuadrant.io has no field ${lack}; install crds/dnsrecords.yaml`,
      'definition-outdated',
    )
  }
}

function unsignedPeer(address: string): string {
  return `peer ${address} without TSIG: forged packets are accepted as its replies; set TSIG_NAME and TSIG_SECRET in the provider Secret`
}

function createZones(
  { cluster: { env } }: LeaderSessionParts,
  onEvent: (key: string) => void,
): ZoneWatch {
  const { clock, timers, log } = env
  return new ZoneWatch({ ask: askNameserver, onEvent, clock, timers, log })
}

function createPeerHealth(
  { cluster, settings, site }: LeaderSessionParts,
  probing: SessionProbing,
  onEvent: (key: string) => void,
): PeerHealth {
  const { clock, timers, log } = cluster.env
  const { quorum, holdDownMs, silentMs, probesPeers } = settings
  return new PeerHealth({
    ...{ site, quorum, holdDownMs, silentMs, clock, timers, log, onEvent, events: cluster.events },
    probing: probesPeers ? probing.ofPeers : undefined,
  })
}

function createRemotes(
  { cluster: local, settings, site, metrics, mayWrite }: LeaderSessionParts,
  shared: Pick<RemoteClustersParts, 'writer' | 'mutex' | 'owners' | 'resources' | 'onCheck'>,
): RemoteClusters {
  const { remotes, shares } = settings
  const env = { local, site, metrics, mayWrite, connect: createInlineClient }
  return new RemoteClusters({ ...env, ...shared, shares, bounds: settings, settings: remotes })
}

function createPeers(
  { cluster, settings }: LeaderSessionParts,
  onEvent: (key: string) => void,
): PeerSet {
  const { clock, timers, random, log } = cluster.env
  const env = { clock, timers, log, random: () => random.next32() / 2 ** 32 }
  return new PeerSet({
    onEvent,
    expiryMs: settings.silentMs,
    clock,
    timers,
    follow: (peer, key) => {
      if (key === undefined) log.warning(unsignedPeer(printHostPort(peer)), 'peer-unsigned')
      return new PeerFollower({ peer, key, hostBounds: settings, ...env })
    },
  })
}
