import type { HealthCheck } from '../../records/health-check.ts'
import type { HealthDecision, Statements } from './decide.ts'
import { HEARD_MS } from './heard-sites.ts'

/** Time for the first poll of each nameserver, in addition to the longest silence of a site that is heard. */
const FIRST_POLL_MS = 2000
/** Time after which our own probes know an address, in addition to the intervals. */
const PROBED_MS = 10_000

/** What an earlier process decided about a host, and until when it counts. Monotonic milliseconds. */
export interface EarlierDecisions {
  /** Addresses that were down. */
  readonly down: ReadonlySet<string>
  /** From here on, each site that answers has been heard. */
  readonly heardMs: number
  /** From here on, our own probes know. */
  readonly probedMs: number
}

/** `check`: with which this process probes the addresses from `startMs` on; undefined = it does not. */
export function earlierDecisions(
  down: ReadonlySet<string>,
  startMs: number,
  check: Pick<HealthCheck, 'intervalMs' | 'failureThreshold'> | undefined,
): EarlierDecisions {
  const heardMs = startMs + HEARD_MS + FIRST_POLL_MS
  if (check === undefined) return { down, heardMs, probedMs: heardMs }
  const probesMs = (check.failureThreshold + 2) * check.intervalMs
  return { down, heardMs, probedMs: startMs + probesMs + PROBED_MS }
}

/**
 * Keeps an address down that was down before this process started, until its own probes or the heard sites say
 * something else. Otherwise a restart would serve it for a moment.
 */
export function keepDown(
  one: {
    readonly address: string
    readonly statements: Statements
    readonly decision: HealthDecision
  },
  earlier: EarlierDecisions | undefined,
  site: string,
  nowMs: number,
): HealthDecision {
  const { address, statements, decision } = one
  if (decision.outcome === 'down' || earlier?.down.has(address) !== true) return decision
  const knows = [...statements.observers, ...statements.home].some((s) => s.site === site)
  // Too few that find it down, and none that finds it up, are no reason to serve it.
  const isFoundUp = decision.by === 'sites' && decision.outcome === 'up'
  const knownMs = decision.by === 'sites' ? earlier.heardMs : Number.NEGATIVE_INFINITY
  const unknownMs = isFoundUp ? earlier.heardMs : earlier.probedMs
  const leftMs = (knows ? knownMs : unknownMs) - nowMs
  if (leftMs <= 0) return decision
  const nextMs = Math.min(leftMs, decision.nextMs ?? leftMs)
  return { ...decision, outcome: 'down', by: 'start', nextMs }
}
