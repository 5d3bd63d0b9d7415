import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { GateResult } from '../../egress/sinks/sink.ts'
import type { EnforcerWait } from './client-grants.ts'
import type { AgentCounts } from './decision.ts'

interface HeldReplyParts {
  readonly clock: Clock
  readonly timers: Timers
  /** Longest time that a reply waits. */
  readonly maxDelayMs: number
  readonly counts: AgentCounts
  /** Called once, with the result. */
  readonly decide: (result: GateResult, waitMs: number) => void
}

/** Resolves once all waits of a reply have ended, or the longest delay. */
export function holdReply(
  waits: readonly EnforcerWait[],
  { clock, timers, maxDelayMs, counts, decide }: HeldReplyParts,
): Promise<GateResult> {
  const startMs = clock.monotonic()
  counts.gated++
  return new Promise((resolve) => {
    let isDecided = false
    const finish = (result: GateResult): void => {
      if (isDecided) return
      isDecided = true
      cancel()
      const waitMs = clock.monotonic() - startMs
      counts.waitedMs += waitMs
      if (result === 'timed out') counts.timedOut++
      if (result === 'failed') counts.failed++
      decide(result, waitMs)
      resolve(result)
    }
    const cancel = timers.after(maxDelayMs, () => finish('timed out'))
    void firstFault(waits).then((fault) => finish(fault === '' ? 'acknowledged' : 'failed'))
  })
}

/** Waits for all. Resolves with '' or the first reason; never rejects. */
export async function firstFault(waits: readonly (EnforcerWait | string)[]): Promise<string> {
  const results = await Promise.allSettled(waits)
  for (const result of results) {
    const fault = result.status === 'fulfilled' ? result.value : String(result.reason)
    if (fault !== '') return fault
  }
  return ''
}
