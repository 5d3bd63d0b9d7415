import type { HealthCheck } from '../../dnsrecord/health-check.ts'
import type { ProbeOutcome } from './probe.ts'

/** State of an address. An address in state `unknown` is served. */
export type ProbeVerdict = 'unknown' | 'up' | 'down'

/** State of a probe. Plain data, because a file stores it. */
export interface ProbeState {
  readonly verdict: ProbeVerdict
  /** Number of consecutive failures. At most one of `failures` and `successes` is above 0. */
  readonly failures: number
  readonly successes: number
  /** Time since which the verdict holds, in milliseconds since the epoch. */
  readonly sinceMs: number
  /** HTTP status of the last attempt that had one; 0 = none. */
  readonly httpStatus: number
  /** Why the last attempt failed; '' = it succeeded, or no attempt was made. */
  readonly reason: string
}

/** Upper bound of `failures` and `successes`. */
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
 * Returns the state of a probe after one more attempt:
 *
 *               success                         failures > failureThreshold
 *     unknown ──────────▶ up        unknown, up ───────────────────────────▶ down
 *
 *               successes >= successThreshold
 *     down    ───────────────────────────────▶ up
 *
 * A failure resets the count of successes, and a success that of failures. As upstream, an address
 * is down after one failure more than the threshold, and one success is enough for a new address. A
 * skipped attempt changes nothing.
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
