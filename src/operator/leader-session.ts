import { printHostPort } from '../dns/host-port.ts'
import { ApiError } from '../kube/api.ts'
import { createInlineClient } from '../kube/inline-kubeconfig.ts'
import { WorkQueue, type WorkResult } from '../kube/work-queue.ts'
import { PeerFollower } from '../peering/peer.ts'
import { ApiWriter, NotLeadingError } from './api-writer.ts'
import type { Cluster } from './cluster.ts'
import { KeyedMutex } from './delegation/keyed-mutex.ts'
import { OwnerIndex } from './delegation/owner-index.ts'
import type { OperatorMetrics } from './metrics.ts'
import type { OperatorSettings } from './operator.ts'
import { PeerSet } from './peer-set.ts'
import type { PeersForm } from './peer-status.ts'
import { SessionProbing } from './probes/session-probing.ts'
import { Reconciler } from './reconcile.ts'
import { RemoteClusters } from './remotes/remote-clusters.ts'
import { Reporter } from './reporter.ts'
import { watchInputs } from './watch-inputs.ts'

/** Records that are looked at at once: each look waits for the API, and only where something changed. */
const WORKERS = 8
/** How long looks may follow each other before others get a turn. */
const TURN_MS = 10
/** What a server-side apply with fields is refused for that the installed definition doesn't have. */
const UNKNOWN_FIELD = /status\.(peers|peers\[\d+\]\.relayed): field not declared in schema/

export interface LeaderSessionParts {
  readonly cluster: Cluster
  readonly settings: OperatorSettings
  readonly site: string
  readonly metrics: OperatorMetrics
  /** To be asked before each write. */
  readonly mayWrite: () => boolean
}

/**
 * One term of leadership: follows peers and brings records to where they should be. Whoever had the term before may have
 * changed everything, so each begins with nothing but what is in the cluster.
 */
export class LeaderSession {
  readonly queue: WorkQueue
  readonly peers: PeerSet
  /** undefined = nobody delegates to us. */
  readonly remotes: RemoteClusters | undefined
  readonly #parts: LeaderSessionParts
  readonly #reconciler: Reconciler
  readonly #stopWatching: readonly (() => void)[]
  readonly #probing: SessionProbing | undefined
  #peersForm: PeersForm = 'whole'
  /** Monotonic clock: when timers and sockets had their turn last. */
  #turnMs = 0

  constructor(parts: LeaderSessionParts) {
    const { cluster, settings, site, metrics, mayWrite } = parts
    const { clock, timers, random, log } = cluster.means
    this.#parts = parts
    const { probing, role } = settings
    const probingParts = { cluster, metrics, mayWrite, role }
    this.#probing = probing === undefined ? undefined : new SessionProbing(probingParts, probing)
    const onEvent = (key: string): void => {
      this.queue.add(key)
      this.#probing?.reconsider(key)
    }
    const work = (key: string): Promise<WorkResult | undefined> => this.#work(key)
    const means = { clock, timers, random, log }
    this.queue = new WorkQueue({ what: 'dnsrecords', work, workers: WORKERS, ...means })
    this.peers = createPeers(parts, onEvent)
    const { objects, records: cache } = cluster
    const onWrite = metrics.countWrite.bind(metrics)
    const writer = new ApiWriter({ objects, cache, mayWrite, onWrite })
    const mutex = new KeyedMutex()
    const owners = new OwnerIndex()
    this.#reconciler = new Reconciler({
      view: cluster,
      writer,
      peers: this.peers,
      clock,
      listener: new Reporter(cluster.events, metrics, log),
      site,
      bounds: settings,
      expiryMs: settings.peerExpiryMs,
      peersForm: () => this.#peersForm,
      role,
      removalTimeoutMs: settings.removalTimeoutMs,
      mutex: mutex,
      owners,
    })
    const { recordInformer: records, secretInformer: secrets } = cluster
    this.#stopWatching = [
      owners.watch(records, ''),
      watchInputs({ records, secrets, cache, owners, onEvent: onEvent }),
      cluster.onHealth(onEvent),
      cluster.onNames(onEvent),
      records.subscribe({ onReturn: () => this.queue.retryFailed() }),
    ]
    this.queue.start()
    if (role === 'secondary') return
    this.remotes = new RemoteClusters({
      local: cluster,
      writer,
      mutex: mutex,
      owners,
      bounds: settings,
      settings: settings.remotes,
      mayWrite,
      connect: createInlineClient,
      metrics,
    })
    this.remotes.start()
  }

  /** Begins nothing more; resolves once what is under way is over. */
  async close(): Promise<void> {
    for (const stop of this.#stopWatching) stop()
    await Promise.all([this.queue.close(), this.remotes?.close(), this.#probing?.close()])
    // Last: a look that is under way may begin to follow a peer, whom nobody would let go.
    this.peers.close()
  }

  async #work(key: string): Promise<WorkResult | undefined> {
    await this.#yieldTurn()
    try {
      const againMs = await this.#reconciler.reconcile(key)
      return againMs === undefined ? undefined : { againMs }
    } catch (error) {
      if (error instanceof NotLeadingError) return undefined
      if (!(error instanceof ApiError)) throw error
      if (this.#isOldDefinition(error)) return { againMs: 0 }
      await this.#report(key, error)
      throw error
    }
  }

  /** Looks that find nothing to write never wait, and thousands of them must not keep the lease from being renewed. */
  async #yieldTurn(): Promise<void> {
    const { clock } = this.#parts.cluster.means
    if (clock.monotonic() - this.#turnMs < TURN_MS) return
    await new Promise((resolve) => setImmediate(resolve))
    this.#turnMs = clock.monotonic()
  }

  /** What the API will not take however often it is tried is to be seen where the record is. */
  async #report(key: string, { status, message }: ApiError): Promise<void> {
    if (status !== 400 && status !== 403 && status !== 413 && status !== 422) return
    try {
      await this.#reconciler.reportFault(key, message)
    } catch (error) {
      // The first fault is the one to tell of, and it is.
      if (!(error instanceof ApiError) && !(error instanceof NotLeadingError)) throw error
    }
  }

  #isOldDefinition(error: ApiError): boolean {
    const field = UNKNOWN_FIELD.exec(error.message)?.[1]
    const form = field === 'peers' ? 'none' : 'unmarked'
    if (field === undefined || form === this.#peersForm) return false
    this.#peersForm = form
    const lack =
      form === 'none'
        ? 'status.peers: what silent peers said is not kept over a restart'
        : 'status.peers[].relayed: whose word it was that silent peers told is guessed after a restart'
    this.#parts.cluster.means.log.warning(
      `the CustomResourceDefinition dnsrecords.kuadrant.io that is installed has no ${lack}; install crds/dnsrecords.yaml`,
    )
    return true
  }
}

function unsignedPeer(address: string): string {
  return `peer ${address} without TSIG: any host that can forge packets can speak for it; give the provider Secret TSIG_NAME and TSIG_SECRET`
}

function createPeers(
  { cluster, settings }: LeaderSessionParts,
  onEvent: (key: string) => void,
): PeerSet {
  const { clock, timers, random, log } = cluster.means
  const means = { clock, timers, log, random: () => random.next32() / 2 ** 32 }
  return new PeerSet({
    onEvent: onEvent,
    expiryMs: settings.peerExpiryMs,
    clock,
    timers,
    follow: (peer, key) => {
      if (key === undefined) log.warning(unsignedPeer(printHostPort(peer)))
      return new PeerFollower({ peer, key, hostBounds: settings, ...means })
    },
  })
}
