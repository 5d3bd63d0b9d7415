import { Backoff } from '../base/backoff.ts'
import { RefusalLog } from '../base/telemetry/refusal-log.ts'
import type { SpanRecorder } from '../base/telemetry/spans/span.ts'
import type { ListWatch } from '../kube/list-watch.ts'
import { Cluster } from './cluster/cluster.ts'
import { readClusterUid } from './cluster/cluster-uid.ts'
import type { Controller, ControllerEnv } from './controller.ts'
import { LeaderSession } from './leader-session.ts'
import { OperatorMetrics, type PublishFacts } from './metrics.ts'
import { KeyIndex } from './notify/key-index.ts'
import { NotifyReceiver } from './notify/notify-receiver.ts'
import { shortHash } from './record/short-hash.ts'
import type { OperatorSettings } from './settings.ts'

const CURE = 'set --site, or allow this account to get that namespace'
const NO_WORK = { runs: 0, failures: 0, dropped: 0, depth: 0, running: 0 }

/** Publishes the DNSRecords of a cluster. */
export class RecordController implements Controller {
  /** Answers NOTIFYs from the start to the end, whether this replica leads or not. */
  readonly notifyReceiver: NotifyReceiver
  /** Filled by `prepare`. */
  readonly cluster: Cluster
  readonly #settings: OperatorSettings
  readonly #env: ControllerEnv
  readonly #metrics: OperatorMetrics
  readonly #spans: SpanRecorder | undefined
  #session: LeaderSession | undefined
  /** The end of the previous leader session. */
  #ended: Promise<void> = Promise.resolve()
  #site = ''
  #isClosed = false
  #wake: () => void = () => {}

  /** `spans`: records a span of each reconcile; undefined = none. */
  constructor(env: ControllerEnv, settings: OperatorSettings, spans?: SpanRecorder | undefined) {
    this.#spans = spans
    this.#env = env
    this.#settings = settings
    const { nameserversAllowed } = settings
    this.cluster = new Cluster({ ...env, nameserversAllowed }, env.events)
    this.#metrics = new OperatorMetrics(env.registry)
    this.#metrics.collectFrom(() => this.#facts(), env.clock, settings.group)
    const { clock, random, log } = env
    this.notifyReceiver = new NotifyReceiver({
      clock,
      keys: new KeyIndex(this.cluster.secretInformer),
      allowed: settings.notifyAllowed ?? [],
      hasten: (sender) => this.#session?.peers.hasten(sender) ?? 'standby',
      count: (outcome) => this.#metrics.countNotify(outcome),
      refusals: new RefusalLog(log, clock, (host) => `NOTIFY of ${host} is refused`),
      seed: random.next32(),
    })
  }

  get watches(): readonly ListWatch[] {
    return this.cluster.watches
  }

  get reason(): string {
    const faults = (this.#session?.groups ?? [])
      .filter(({ fault }) => fault !== '')
      .map(({ zone, fault }) => `active groups of ${zone}: ${fault}`)
    const others = this.#session?.faults ?? []
    return [this.cluster.reason, this.#session?.remotes?.note ?? '', ...faults, ...others]
      .filter((text) => text !== '')
      .join('; ')
  }

  async prepare(): Promise<void> {
    this.cluster.start()
    this.#site = await this.#findSite()
    await this.cluster.synced()
    const { size } = this.cluster.recordInformer
    if (!this.#isClosed)
      this.#env.log.info(`operator: site ${this.#site}, ${size} DNSRecords`, 'records-synced')
  }

  begin(): void {
    this.#session ??= new LeaderSession({
      cluster: this.cluster,
      settings: this.#settings,
      site: this.#site,
      metrics: this.#metrics,
      mayWrite: this.#env.mayWrite,
      spans: this.#spans,
    })
  }

  async end(): Promise<void> {
    const session = this.#session
    this.#session = undefined
    if (session !== undefined) this.#ended = session.close()
    await this.#ended
  }

  close(): void {
    this.#isClosed = true
    this.#wake()
    this.cluster.close()
  }

  async #findSite(): Promise<string> {
    if (this.#settings.site !== '') return this.#settings.site
    const { timers, random, log } = this.#env
    const backoff = new Backoff(random)
    let lastFault = ''
    while (!this.#isClosed) {
      const found = await readClusterUid(this.cluster.objects)
      if ('uid' in found) return shortHash(found.uid)
      const fault = `${found.problem}; ${CURE}`
      if (fault !== lastFault) log.warning(`${fault}; retrying`, 'site-unknown')
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

  #facts(): PublishFacts {
    const queue = this.#session?.queue
    return {
      peers: this.#session?.peers.statuses() ?? [],
      queue:
        queue === undefined
          ? NO_WORK
          : { ...queue.counts, depth: queue.depth, running: queue.runningCount },
      remotes: this.#session?.remotes?.statuses() ?? [],
      siteFaults: this.#session?.siteFaultCount ?? 0,
      groups: this.#session?.groups ?? [],
    }
  }
}
