import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import { NamesApi } from '../../egress/agent/api/names-api.ts'
import type { AnswerNames } from '../../egress/agent/api/socket-server.ts'
import type { Bypass } from '../../egress/agent/bypass/bypass-watch.ts'
import type { Client } from '../../egress/agent/client.ts'
import type { EgressAgent } from '../../egress/agent/egress-agent.ts'
import type { PatternDialect } from './options.ts'

/** The clients of this node and their rules, from Kubernetes or from files. */
export interface ClientFeed {
  start(): void
  /** Calls `listener` with all clients once they are complete, and again after each change. */
  onChange(listener: (clients: readonly Client[]) => void): () => void
  /** Why clients may be missing or out of date; '' = they are not. */
  readonly reason: string
  close(): void
}

interface NodeServiceParts {
  readonly agent: EgressAgent
  readonly feed: ClientFeed
  /** Finds out whether this process can enforce anything. Throws an InputError. */
  readonly probe: () => Promise<void>
  /** Why packets of clients bypass this server. */
  readonly bypasses: {
    readonly start: () => Promise<void>
    readonly found: readonly Bypass[]
    readonly close: () => void
  }
  readonly dialect: PatternDialect
  /** Opens the API. Resolves to what ends it; undefined = there is none. */
  readonly openApi: ((answer: AnswerNames) => Promise<() => void>) | undefined
  /** Longest wait of a start for the clients. */
  readonly startupMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Ends what the agent works with. */
  readonly close: () => void
}

/**
 * The agent of this node with its sources and its API. Blocks with the same options share one, and so do
 * both instances of a reload: a reload loses nothing that clients learned.
 */
export class NodeService {
  readonly #parts: NodeServiceParts
  #started: Promise<void> | undefined
  #restored: Promise<void> | undefined
  #closeApi: () => void = () => {}
  /** What the feed has reported last. */
  #current: readonly Client[] | undefined
  #isSynced = false
  #isClosed = false
  #fault = ''

  constructor(parts: NodeServiceParts) {
    this.#parts = parts
  }

  get agent(): EgressAgent {
    return this.#parts.agent
  }

  /** Why rules may not be enforced; '' = they are. */
  get reason(): string {
    const { feed } = this.#parts
    const reasons = [feed.reason, this.#fault === '' ? '' : `not in force: ${this.#fault}`]
    return reasons.filter((reason) => reason !== '').join('; ')
  }

  /** Why packets of clients bypass this server, with the fix, and why what clients learned is not stored. */
  problems(): readonly ProblemGroup[] {
    const found = this.#parts.bypasses.found.map(({ object, reason }) => {
      return oneProblem('bypass', object, { place: '', object, reason })
    })
    return [...found, ...(this.agent.file?.problems ?? [])]
  }

  /** Enforces what the sources have. The first call counts. */
  start(): Promise<void> {
    this.#started ??= this.#start()
    return this.#started
  }

  /** What failed may be in force now. */
  noteRecovery(): void {
    if (this.#current !== undefined && this.#fault !== '') void this.#enforce(this.#current)
  }

  close(): void {
    const { agent, feed, bypasses, close } = this.#parts
    this.#isClosed = true
    bypasses.close()
    feed.close()
    this.#closeApi()
    agent.close()
    close()
  }

  /** Restores what clients learned from an earlier process. The first call counts. */
  restore(): Promise<void> {
    this.#restored ??= this.#restore()
    return this.#restored
  }

  async #start(): Promise<void> {
    const { probe, agent, bypasses } = this.#parts
    const probed = probe()
    // The sources are read while the programs run.
    const synced = this.#sync(probed)
    await probed
    if (this.#isClosed) return
    void bypasses.start()
    agent.start()
    await this.#openApi()
    await synced
    if (this.#isSynced || this.#isClosed) return
    this.#parts.log.warning(
      `starting before the policies are read: ${this.#parts.feed.reason}`,
      'egress-policies-unread',
    )
    // What names allow is restored while queries are answered, but clients must be known before.
    await this.restore()
  }

  async #restore(): Promise<void> {
    if (this.#isClosed) return
    const fault = await this.#parts.agent.restore()
    // Once the sources have clients, the state of the earlier process no longer matters.
    if (this.#current === undefined) this.#noteFault(fault)
  }

  /** Waits until the clients of the sources are in force, but not longer than `startupMs`. */
  async #sync(probed: Promise<void>): Promise<void> {
    const { feed, startupMs, timers } = this.#parts
    if (this.#isClosed) return
    let markSynced = (): void => {}
    const synced = new Promise<void>((resolve) => {
      markSynced = resolve
    })
    feed.onChange((clients) => {
      if (clients === this.#current) return
      this.#current = clients
      const enforce = async (): Promise<void> => {
        await this.#enforce(clients)
        this.#isSynced = true
        markSynced()
      }
      void probed.then(enforce, () => {})
    })
    void probed.catch(markSynced)
    feed.start()
    const cancel = timers.after(startupMs, markSynced)
    // Timers do not keep the process alive, and at a start nothing else does.
    const alive = setInterval(() => {}, startupMs)
    await synced
    clearInterval(alive)
    cancel()
  }

  async #openApi(): Promise<void> {
    const { agent: names, openApi, dialect, clock } = this.#parts
    if (openApi === undefined) return
    const api = new NamesApi({ names, dialect, clock })
    const close = await openApi(async (method, target) => {
      await this.#restored
      return api.answer(method, target)
    })
    if (this.#isClosed) close()
    else this.#closeApi = close
  }

  async #enforce(clients: readonly Client[]): Promise<void> {
    this.#noteFault(await this.#parts.agent.setClients(clients))
  }

  #noteFault(fault: string): void {
    if (this.#isClosed || fault === this.#fault) return
    this.#fault = fault
    if (fault === '')
      this.#parts.log.info('the rules of clients are in force again', 'egress-rules-recovered')
    else
      this.#parts.log.error(
        `the rules of clients are not in force: ${fault}`,
        'egress-rules-failed',
      )
  }
}
