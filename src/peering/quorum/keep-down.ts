import type { HealthDecision, Statements } from './decide.ts'

/** What an earlier process decided about a host, and until when it counts. Monotonic milliseconds. */
export interface EarlierDecisions {
  /** Addresses that were down. */
  readonly down: ReadonlySet<string>
  /** From here on, each site that answers has been heard. */
  readonly heardMs: number
  /** From here on, our own probes know. */
  readonly probedMs: number
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
  const ownMs = decision.by === 'sites' ? earlier.heardMs : Number.NEGATIVE_INFINITY
  const leftMs = (knows || decision.by === 'sites' ? ownMs : earlier.probedMs) - nowMs
  if (leftMs <= 0) return decision
  const nextMs = Math.min(leftMs, decision.nextMs ?? leftMs)
  return { ...decision, outcome: 'down', by: 'start', nextMs }
}
