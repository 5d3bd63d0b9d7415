import type { EndpointHealth } from '../peer-endpoint.ts'

/** What one site reports about one address. */
export interface Statement {
  readonly site: string
  readonly health: EndpointHealth
  /** Milliseconds since the site found this; 0 = just now. */
  readonly ageMs: number
  /** Milliseconds since we last received data of the site; 0 for our own site. */
  readonly silentMs: number
}

/** What all sites report about one address of a peer. The order has no meaning. */
export interface Statements {
  /** By the sites that have the address. */
  readonly home: readonly Statement[]
  /** By sites that probe it although it is not theirs, including our own site. One per site. */
  readonly observers: readonly Statement[]
}

/** The rules that hold for all addresses at one time. */
export interface QuorumRules {
  /** Number of sites that must find an address down. */
  readonly quorum: number
  /** How long they must find it down, and how long a success counts after its site became silent. */
  readonly holdDownMs: number
  /** The failures that a site finds do not count if it has been silent for longer. */
  readonly heardMs: number
  /** This site hears too few sites to decide. */
  readonly isIsolated: boolean
}

/**
 * - `home`: the site that has the address decides.
 * - `up`: it is silent or does not know, and another site finds the address up.
 * - `down`: it is silent or does not know, and a quorum finds the address down.
 * - `unknown`: it is silent or does not know, and neither holds.
 */
export type HealthOutcome = 'home' | 'up' | 'down' | 'unknown'

export interface HealthDecision {
  readonly outcome: HealthOutcome
  /** Sites that are heard contradict each other for longer than the hold-down. */
  readonly isDisputed: boolean
  /** Milliseconds until the decision may change by the age of statements; undefined = never. */
  readonly nextMs: number | undefined
}

/**
 * Decides about an address of a peer. Each site decides for itself, so the result depends only on
 * the statements, except at an isolated site: it keeps `wasDown`, its last decision.
 *
 * 1. The site that has the address decides as long as it is heard and knows.
 * 2. One success of any other site means up.
 * 3. The address is down if a quorum has found it down for the hold-down, and its home site has been
 *    silent for as long.
 */
export function decide(
  { home, observers }: Statements,
  wasDown: boolean,
  rules: QuorumRules,
): HealthDecision {
  const { holdDownMs, heardMs } = rules
  const all = [...home, ...observers]
  const successes = all.filter((s) => s.health === 'up' && s.silentMs < holdDownMs)
  const failures = all.filter((s) => s.health === 'down' && s.silentMs < heardMs)
  const isDisputed = successes.length > 0 && failures.some((s) => s.ageMs >= holdDownMs)
  const comingMs = failures.map((s) => holdDownMs - s.ageMs).filter((ms) => ms > 0)
  const nextMs = comingMs.length === 0 ? undefined : Math.min(...comingMs)
  return { outcome: outcomeOf({ home, observers }, wasDown, rules), isDisputed, nextMs }
}

function outcomeOf(
  { home, observers }: Statements,
  wasDown: boolean,
  { quorum, holdDownMs, heardMs, isIsolated }: QuorumRules,
): HealthOutcome {
  if (home.some((s) => s.health !== 'unknown' && s.silentMs < holdDownMs)) return 'home'
  if (observers.some((s) => s.health === 'up' && s.silentMs < holdDownMs)) return 'up'
  if (isIsolated) return wasDown ? 'down' : 'unknown'
  const isCounted = (s: Statement): boolean => s.silentMs < heardMs && s.ageMs >= holdDownMs
  const failures = observers.filter((s) => s.health === 'down' && isCounted(s))
  return failures.length >= quorum ? 'down' : 'unknown'
}

/** Returns how many of the sites are a majority. */
export function majorityOf(sites: number): number {
  return Math.floor(sites / 2) + 1
}
