import { Backoff } from '../kube/backoff.ts'
import { LeaderElector } from '../kube/lease.ts'
import type { MetricsRegistry } from '../telemetry/metrics.ts'
import { RefusalLog } from '../telemetry/refusal-log.ts'
import { Cluster, type ClusterMeans } from './cluster/cluster.ts'
import { readClusterUid } from './cluster/cluster-uid.ts'
import { LeaderSession } from './leader-session.ts'
import { type OperatorFacts, OperatorMetrics } from './metrics.ts'
import { KeyIndex } from './notify/key-index.ts'
import { NotifyReceiver } from './notify/notify-receiver.ts'
import { shortHash } from './record/short-hash.ts'
import type { OperatorSettings } from './settings.ts'

/** Name of the Lease that all operators use. */
const LEASE = 'sextant-operator'
/** Milliseconds that running writes get when the operator ends. */
const CLOSE_MS = 5000
const CURE = 'set --site, or allow this account to get that namespace'
const NO_WORK = { runs: 0, failures: 0, dropped: 0, depth: 0, running: 0 }

/**
 * Publishes the DNSRecords of a cluster:
 *
 *     caches filled ─▶ lease ─▶ leader session: peers followed, records reconciled ─▶ (lease lost) end ─▶ lease …
 */
export class Operator {
  /** Answers NOTIFYs from the start to the end, whether this replica leads or not. */
  readonly notifyReceiver: NotifyReceiver
  readonly #cluster: Cluster
  readonly #settings: OperatorSettings
  readonly #means: ClusterMeans
  readonly #metrics: OperatorMetrics
  #elector: LeaderElector | undefined
  #session: LeaderSession | undefined
  /** The end of the previous leader session. */
  #ended: Promise<void> = Promise.resolve()
  #site = ''
  #isSynced = false
  #isClosed = false
  #wake: () => void = () => {}

  constructor(means: ClusterMeans, settings: OperatorSettings, registry: MetricsRegistry) {
    this.#means = means
    this.#settings = settings
    this.#cluster = new Cluster(means, settings.identity)
    this.#metrics = new OperatorMetrics(registry)
    this.#metrics.collectFrom(() => this.#facts(), means.clock)
    const { clock, random, log } = means
    this.notifyReceiver = new NotifyReceiver({
      clock,
      keys: new KeyIndex(this.#cluster.secretInformer),
      allowed: settings.notifyAllowed ?? [],
      hasten: (sender) => this.#session?.peers.hasten(sender) ?? 'standby',
      count: (outcome) => this.#metrics.countNotify(outcome),
      refusals: new RefusalLog(log, clock, (host) => `NOTIFY of ${host} is refused`),
      seed: random.next32(),
    })
  }

  /** Resolves once records are reconciled, by this operator or by another one. */
  async start(): Promise<void> {
    const { log } = this.#means
    this.#cluster.start()
    this.#site = await this.#findSite()
    await this.#cluster.synced()
    if (this.#isClosed) return
    this.#isSynced = true
    const { size } = this.#cluster.recordInformer
    log.info(`operator: site ${this.#site}, ${size} DNSRecords`)
    const { leaseNamespace, identity } = this.#settings
    if (leaseNamespace === undefined) {
      this.#begin()
      return
    }
    this.#elector = new LeaderElector({
      ...this.#means,
      namespace: leaseNamespace,
      name: LEASE,
      identity,
      onAcquire: () => this.#begin(),
      onLose: () => this.#end(),
    })
    this.#elector.start()
  }

  /** Why the operator is not ready; '' = it is. */
  unreadyReason(): string {
    if (this.#isSynced) return ''
    const { reason } = this.#cluster
    return `the cluster has not been listed yet${reason === '' ? '' : `: ${reason}`}`
  }

  /** Information about an operator that is ready; '' = none. */
  note(): string {
    const leader = this.#elector?.holder ?? ''
    const isWaiting = this.#elector !== undefined && !this.#elector.isLeader
    const holder = leader === '' ? '' : ` of ${leader}`
    const waiting = isWaiting ? `waiting for the lease${holder}` : ''
    const remotes = this.#session?.remotes?.note ?? ''
    return [this.#cluster.reason, remotes, waiting].filter((text) => text !== '').join('; ')
  }

  /** Ends the leader session and releases the lease. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    this.#end()
    const cancel = this.#means.timers.after(CLOSE_MS, () => this.#cluster.close())
    await this.#ended
    cancel()
    await this.#elector?.close()
    this.#cluster.close()
  }

  #begin(): void {
    void this.#ended.then(() => {
      if (this.#isClosed || this.#session !== undefined || !this.#mayWrite()) return
      this.#session = new LeaderSession({
        cluster: this.#cluster,
        settings: this.#settings,
        site: this.#site,
        metrics: this.#metrics,
        mayWrite: () => this.#mayWrite(),
      })
    })
  }

  #end(): void {
    const session = this.#session
    this.#session = undefined
    if (session !== undefined) this.#ended = session.close()
  }

  #mayWrite(): boolean {
    return this.#elector === undefined || this.#elector.isLeader
  }

  async #findSite(): Promise<string> {
    if (this.#settings.site !== '') return this.#settings.site
    const { timers, random, log } = this.#means
    const backoff = new Backoff(random)
    let lastFault = ''
    while (!this.#isClosed) {
      const found = await readClusterUid(this.#cluster.objects)
      if ('uid' in found) return shortHash(found.uid)
      const fault = `${found.problem}; ${CURE}`
      if (fault !== lastFault) log.warning(`${fault}; retrying`)
      lastFault = fault
      await new Promise<void>((resolve) => {
        const cancel = timers.after(backoff.next(), resolve)
        this.#wake = () => {
          cancel()
          resolve()
        }
      })
    }
    return ''
  }

  #facts(): OperatorFacts {
    const queue = this.#session?.queue
    return {
      isLeading: this.#session !== undefined && this.#mayWrite(),
      peers: this.#session?.peers.statuses() ?? [],
      queue:
        queue === undefined
          ? NO_WORK
          : { ...queue.counts, depth: queue.depth, running: queue.runningCount },
      remotes: this.#session?.remotes?.statuses() ?? [],
      watches: this.#cluster.watches,
    }
  }
}
