import type { MetricsRegistry } from '../base/telemetry/metrics.ts'
import type { EventRecorder } from '../kube/event-recorder.ts'
import type { ListWatch } from '../kube/list-watch.ts'
import type { ClusterEnv } from './cluster/cluster.ts'

/**
 * A part of the operator that can be switched on alone, such as the one that publishes DNSRecords.
 * Only the leader works; it may lose the lease and become the leader again.
 */
export interface Controller {
  /** The watches that it has now, for metrics. */
  readonly watches: readonly ListWatch[]
  /** Why it does not work just now; '' = it works, or waits for the lease. */
  readonly reason: string
  /** Fills what a leader needs. Called once, before the first `begin`. Never rejects. */
  prepare(): Promise<void>
  /** The operator has become the leader. */
  begin(): void
  /** The operator is the leader no longer. Resolves once all running work has ended. */
  end(): Promise<void>
  /** The process ends: closes what `prepare` opened. */
  close(): void
}

/** What the controllers of a process share. */
export interface ControllerEnv extends ClusterEnv {
  readonly events: EventRecorder
  readonly registry: MetricsRegistry
  /** False: another operator may be the leader. Must be called before each write. */
  readonly mayWrite: () => boolean
}

/** The work of a controller from `begin` to `end`. */
export interface ControllerSession {
  readonly watches: readonly ListWatch[]
  /** As in Controller. */
  readonly reason: string
  /** Starts nothing more; resolves once all running work has ended. */
  close(): Promise<void>
}

/** A controller without a state between two sessions: the API server has it all. */
export class SessionController implements Controller {
  readonly #open: () => ControllerSession
  #session: ControllerSession | undefined
  /** The end of the previous session. */
  #ended: Promise<void> = Promise.resolve()

  constructor(open: () => ControllerSession) {
    this.#open = open
  }

  get watches(): readonly ListWatch[] {
    return this.#session?.watches ?? []
  }

  get reason(): string {
    return this.#session?.reason ?? ''
  }

  async prepare(): Promise<void> {}

  begin(): void {
    this.#session ??= this.#open()
  }

  async end(): Promise<void> {
    const session = this.#session
    this.#session = undefined
    if (session !== undefined) this.#ended = session.close()
    await this.#ended
  }

  close(): void {}
}
