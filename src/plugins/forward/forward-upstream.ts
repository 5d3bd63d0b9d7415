import type {
  Cancellation,
  Outcome,
  UpstreamQuestion,
} from '../../client/upstream/upstream-query.ts'

/** A server to forward to. */
export interface ForwardUpstream {
  readonly address: string
  readonly isDown: boolean
  ask(
    question: UpstreamQuestion,
    overTcp: boolean,
    timeoutMs: number,
    cancellation: Cancellation,
  ): Promise<Outcome>
  /** Starts checks of its health, which end when it replies. */
  check(): void
}
