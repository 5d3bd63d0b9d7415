import type { HealthCheck } from '../record/health-check.ts'
import type { ProbeOutcome } from './probe.ts'

/** What is known of an address. Unknown is not down: it is served. */
export type ProbeVerdict = 'unknown' | 'up' | 'down'

/** Where a probe stands. Plain data: it goes to a file and comes back. */
export interface ProbeState {
  readonly verdict: ProbeVerdict
  /** In a row, up to now. At most one of the two is not zero. */
  readonly failures: number
  readonly successes: number
  /** Since when the verdict holds: milliseconds since the epoch. */
  readonly sinceMs: number
  /** HTTP status of the last look that had one; 0 = none. */
  readonly httpStatus: number
  /** Why the last look did not succeed; '' = it did, or there was none. */
  readonly reason: string
}

/** Rows of one kind are not counted beyond this. */
export const COUNT_MAX = 1_000_000

export function unknownState(nowMs: number): ProbeState {
  return {
    verdict: 'unknown',
    failures: 0,
    successes: 0,
    sinceMs: nowMs,
    httpStatus: 0,
    reason: '',
  }
}

/**
 * Where a probe stands after one more look:
 *
 *               success                         failures > failureThreshold
 *     unknown ──────────▶ up        unknown, up ───────────────────────────▶ down
 *
 *               successes >= successThreshold
 *     down    ───────────────────────────────▶ up
 *
 * A failure ends a row of successes and the other way round. That a failure more than the threshold is needed,
 * and that one success is enough for the first time, is as upstream. What was skipped says nothing.
 */
export function judge(
  state: ProbeState,
  outcome: ProbeOutcome,
  check: Pick<HealthCheck, 'failureThreshold' | 'successThreshold'>,
  nowMs: number,
): ProbeState {
  if (outcome.kind === 'skipped') return { ...state, reason: outcome.reason }
  const isHealthy = outcome.kind === 'healthy'
  const failures = isHealthy ? 0 : Math.min(COUNT_MAX, state.failures + 1)
  const successes = isHealthy ? Math.min(COUNT_MAX, state.successes + 1) : 0
  let { verdict } = state
  if (failures > check.failureThreshold) verdict = 'down'
  else if (isHealthy && (verdict !== 'down' || successes >= check.successThreshold)) verdict = 'up'
  return {
    verdict,
    failures,
    successes,
    sinceMs: verdict === state.verdict ? state.sinceMs : nowMs,
    httpStatus: outcome.httpStatus,
    reason: isHealthy ? '' : outcome.reason,
  }
}
