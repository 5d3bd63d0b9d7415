import type { EndpointHealth } from '../peer-endpoint.ts'

/** What one site reports about one address. */
export interface Statement {
  readonly site: string
  readonly health: EndpointHealth
  /** Of a failure: milliseconds since we first heard it; 0 = just now. */
  readonly ageMs: number
  /** Milliseconds since we last received an answer of the site; 0 for our own site. */
  readonly silentMs: number
}

/** What all sites report about one address. The order has no meaning. */
export interface Statements {
  /** By the sites that have the address; one per endpoint. */
  readonly home: readonly Statement[]
  /** By sites that probe it although it is not theirs, including our own site. One per site. */
  readonly observers: readonly Statement[]
}

/** The rules that hold for all addresses at one time. */
export interface QuorumRules {
  /** Our own site. */
  readonly site: string
  /** Number of sites, with our own. */
  readonly sites: number
  /** Number of sites that must find an address down; 0 = a majority of those that are heard and know, and ours. */
  readonly quorum: number
  /** How long they must have found it down; 0 = at once. */
  readonly holdDownMs: number
  /** A statement of a site counts only if the site has been silent for less. */
  readonly heardMs: number
  /** `quorum` is set, and fewer sites are heard, so that no decision is possible. */
  readonly isIsolated: boolean
  /** Our own site probes addresses of this host. Without a record of the host it cannot. */
  readonly isProbing: boolean
}

type HealthOutcome = 'up' | 'down' | 'unknown'

/**
 * - `home`: the site that has the address.
 * - `this site`: with two sites, our own finding.
 * - `sites`: the majority, or the number that is set.
 * - `before`: too few sites are heard, so the last decision is kept.
 * - `start`: the process started a short time ago, so the decision before is kept. `keepDown` sets it.
 * - `nothing`: no site that is heard knows.
 */
export type DecidedBy = 'home' | 'this site' | 'sites' | 'before' | 'start' | 'nothing'

export interface HealthDecision {
  readonly outcome: HealthOutcome
  readonly by: DecidedBy
  /** Sites that are heard contradict each other for longer than DISPUTE_MS. */
  readonly isDisputed: boolean
  /** Milliseconds until the decision may change by the age of statements; undefined = never. */
  readonly nextMs: number | undefined
}

/**
 * How long a site must find an address down, while another one finds it up, until they contradict each other. The
 * probes of several sites find a change one after the other.
 */
export const DISPUTE_MS = 60_000

/** The votes of the sites that are heard and know something: one per site. */
export interface Votes {
  readonly up: readonly Statement[]
  readonly down: readonly Statement[]
  /** Number of sites that are asked: these, and our own if it will know. */
  readonly asked: number
}

/**
 * Decides about the health of one address. Each site decides for itself, so the result depends only on the
 * statements, except that a site which hears fewer sites than the number that is set keeps `wasDown`.
 *
 * 1. A site that is heard and reports its own address down is believed, unless another site that has the address, too,
 *    does not: any site may name any address.
 * 2. With two sites, our own finding decides: a site that hears no other one serves the clients that reach it. If we
 *    do not know, the other site's report counts.
 * 3. With more sites, the address is down if more than half of the sites that are heard and know find it down. Our own
 *    site counts even if it does not know, so that one peer alone takes out nothing. It does not count if it does not
 *    probe the address and no site that has it is heard: else the address of a dead site would be served for ever.
 * 4. If no site that is heard knows, the last report of the site that has the address stays in force.
 */
export function decide(
  statements: Statements,
  wasDown: boolean,
  rules: QuorumRules,
): HealthDecision {
  const votes = votesOf(statements, rules)
  const { holdDownMs } = rules
  const isLasting = ({ ageMs }: Statement): boolean => ageMs >= DISPUTE_MS
  const homes = healthOfHomes(statements.home)
  const isOfHome = ({ site }: Statement): boolean => homes.has(site)
  const isShared = !areDown(homes) && votes.down.filter(isLasting).some(isOfHome)
  const isDisputed = isShared || (votes.up.length > 0 && votes.down.some(isLasting))
  const limits = [holdDownMs, DISPUTE_MS]
  const coming = votes.down.flatMap(({ ageMs }) => limits.map((limit) => limit - ageMs))
  const nextMs = coming.reduce((least, ms) => (ms > 0 && ms < least ? ms : least), Infinity)
  return {
    ...outcomeOf(statements, votes, wasDown, rules),
    isDisputed,
    nextMs: nextMs === Infinity ? undefined : nextMs,
  }
}

function outcomeOf(
  { home }: Statements,
  votes: Votes,
  wasDown: boolean,
  rules: QuorumRules,
): Pick<HealthDecision, 'outcome' | 'by'> {
  const { site, sites, quorum, isIsolated } = rules
  const homes = healthOfHomes(home)
  const ofHome = (list: readonly Statement[]): readonly Statement[] => {
    return list.filter((one) => homes.has(one.site))
  }
  if (ofHome(votes.down).length > 0 && areDown(homes)) {
    return { outcome: 'down', by: 'home' }
  }
  // The hold-down is over for an address that was taken out before.
  const counted = wasDown ? votes.down : votes.down.filter(({ ageMs }) => ageMs >= rules.holdDownMs)
  if (quorum === 0 && sites <= 2) {
    const isOurs = (one: Statement): boolean => one.site === site
    if (counted.some(isOurs)) return { outcome: 'down', by: 'this site' }
    if (votes.up.some(isOurs)) return { outcome: 'up', by: 'this site' }
    return ofHome(votes.up).length > 0 ? { outcome: 'up', by: 'home' } : lastReport(home)
  }
  if (isIsolated) return { outcome: wasDown ? 'down' : 'unknown', by: 'before' }
  if (counted.length >= neededOf(votes, rules)) return { outcome: 'down', by: 'sites' }
  if (votes.up.length > 0) return { outcome: 'up', by: 'sites' }
  const last = lastReport(home)
  const isUndecided = last.outcome === 'unknown' && votes.down.length > 0
  return isUndecided ? { outcome: 'unknown', by: 'sites' } : last
}

/** An address whose site reported it down and then became silent is not served again because of this silence. */
function lastReport(home: readonly Statement[]): Pick<HealthDecision, 'outcome' | 'by'> {
  const isDown = areDown(healthOfHomes(home))
  return isDown ? { outcome: 'down', by: 'home' } : { outcome: 'unknown', by: 'nothing' }
}

/** The last report of each site that has the address. A site with several endpoints of it finds it up if one is. */
function healthOfHomes(home: readonly Statement[]): ReadonlyMap<string, EndpointHealth> {
  const homes = new Map<string, EndpointHealth>()
  for (const { site, health } of home) homes.set(site, joinHealth(homes.get(site), health))
  return homes
}

function joinHealth(known: EndpointHealth = 'unknown', more: EndpointHealth): EndpointHealth {
  if (known === 'up' || more === 'up') return 'up'
  return known === 'unknown' ? more : known
}

/** True if all sites that have the address report it down. */
function areDown(homes: ReadonlyMap<string, EndpointHealth>): boolean {
  return homes.size > 0 && [...homes.values()].every((health) => health === 'down')
}

/** Returns how many sites must find the address down; at least one. */
export function neededOf({ asked }: Votes, { quorum }: Pick<QuorumRules, 'quorum'>): number {
  return quorum || majorityOf(asked)
}

/** Returns the votes. A site with several endpoints of the address finds it up if one of them is. */
export function votesOf(
  { home, observers }: Statements,
  { site, heardMs, isProbing }: Pick<QuorumRules, 'site' | 'heardMs' | 'isProbing'>,
): Votes {
  const isHeard = (s: Statement): boolean => s.silentMs < heardMs
  const isCounted = (s: Statement): boolean => s.health !== 'unknown' && isHeard(s)
  const bySite = new Map<string, Statement>()
  for (const one of home.filter(isCounted)) {
    if (bySite.get(one.site)?.health !== 'up') bySite.set(one.site, one)
  }
  for (const one of observers.filter(isCounted)) {
    if (!bySite.has(one.site)) bySite.set(one.site, one)
  }
  const votes = [...bySite.values()]
  const isOursAsked = !bySite.has(site) && (isProbing || home.some(isHeard))
  return {
    up: votes.filter(({ health }) => health === 'up'),
    down: votes.filter(({ health }) => health === 'down'),
    asked: votes.length + (isOursAsked ? 1 : 0),
  }
}

/** Returns how many of the sites are a majority. */
export function majorityOf(sites: number): number {
  return Math.floor(sites / 2) + 1
}
