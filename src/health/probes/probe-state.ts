import type { HealthCheck } from '../../records/health-check.ts'
import type { ProbeOutcome } from './probe.ts'

/** Health of an address. An address with the health `unknown` is served. */
export const HEALTHS = ['unknown', 'up', 'down'] as const
export type ProbeHealth = (typeof HEALTHS)[number]

/** State of a probe. Plain data, because a file stores it. */
export interface ProbeState {
  readonly health: ProbeHealth
  /** Number of consecutive failures. At most one of `failures` and `successes` is above 0. */
  readonly failures: number
  readonly successes: number
  /** Time since which the health is the same, in milliseconds since the epoch. */
  readonly sinceMs: number
  /** HTTP status of the last attempt that had one; 0 = none. */
  readonly httpStatus: number
  /** Why the last attempt failed; '' = it succeeded, or no attempt was made. */
  readonly reason: string
  /** Number of consecutive attempts that could not be made; missing = 0. It is not stored. */
  readonly skips?: number
}

/** Upper bound of `failures` and `successes`. */
export const COUNT_MAX = 1_000_000

export function unknownState(nowMs: number): ProbeState {
  return {
    health: 'unknown',
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
 * skipped attempt changes nothing, but more of them in a row than `failureThreshold` make the health
 * unknown: an old finding must not last forever.
 */
export function nextState(
  state: ProbeState,
  outcome: ProbeOutcome,
  check: Pick<HealthCheck, 'failureThreshold' | 'successThreshold'>,
  nowMs: number,
): ProbeState {
  if (outcome.kind === 'skipped') return skip(state, outcome.reason, check, nowMs)
  const isHealthy = outcome.kind === 'healthy'
  const failures = isHealthy ? 0 : Math.min(COUNT_MAX, state.failures + 1)
  const successes = isHealthy ? Math.min(COUNT_MAX, state.successes + 1) : 0
  let { health } = state
  if (failures > check.failureThreshold) health = 'down'
  else if (isHealthy && (health !== 'down' || successes >= check.successThreshold)) health = 'up'
  return {
    health,
    failures,
    successes,
    // A time in the future comes from before the clock was set back.
    sinceMs: health === state.health ? Math.min(state.sinceMs, nowMs) : nowMs,
    httpStatus: outcome.httpStatus,
    reason: isHealthy ? '' : outcome.reason,
  }
}

function skip(
  state: ProbeState,
  reason: string,
  { failureThreshold }: Pick<HealthCheck, 'failureThreshold'>,
  nowMs: number,
): ProbeState {
  const skips = Math.min(COUNT_MAX, (state.skips ?? 0) + 1)
  if (skips <= failureThreshold) return { ...state, reason, skips }
  return { ...unknownState(state.health === 'unknown' ? state.sinceMs : nowMs), reason, skips }
}
