import { printTime } from '../../base/rfc3339.ts'
import type { QuorumAddress } from '../../base/telemetry/status.ts'
import {
  type HealthDecision,
  neededOf,
  type QuorumRules,
  type Statement,
  type Statements,
  type Votes,
  votesOf,
} from './decide.ts'

/** An address of peers, and what was decided about it. */
export interface DecidedAddress {
  /** Without `*.`. */
  readonly host: string
  readonly address: string
  readonly statements: Statements
  readonly decision: HealthDecision
}

/** What an explanation has in addition to the decision. */
export interface DecisionContext extends QuorumRules {
  /** Number of sites that are heard, with our own. */
  readonly heard: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}

/** Why an address is served or not. */
interface Reason {
  readonly text: string
  /** Milliseconds until a hold-down ends, if no site changes its findings; undefined = none runs. */
  readonly heldMs?: number
}

/** Returns who reports what about an address, and why it is up or down. */
export function explainDecision(decided: DecidedAddress, context: DecisionContext): QuorumAddress {
  const { host, address, statements, decision } = decided
  const { home, observers } = statements
  const all = [...home, ...observers]
  const { heldMs, text } = reasonOf(statements, decision, context)
  const until = heldMs === undefined ? null : printTime(context.nowMs + heldMs)
  return {
    host,
    address,
    sites: namesOf(home),
    isDown: decision.outcome === 'down',
    isDisputed: decision.isDisputed,
    up: namesOf(all.filter((s) => s.health === 'up' && s.silentMs < context.heardMs)),
    down: namesOf(all.filter((s) => s.health === 'down')),
    holdDownUntil: until,
    reason: until === null ? text : `${text}; hold-down until ${until}`,
  }
}

/** True if some site that is not its own finds the address down, or sites contradict each other about it. */
export function isNoted({ statements: { home, observers }, decision }: DecidedAddress): boolean {
  const { outcome, by } = decision
  if (outcome === 'down' && by !== 'home') return true
  if (observers.some(({ health }) => health === 'down')) return true
  return new Set(home.map(({ health }) => health).filter((one) => one !== 'unknown')).size > 1
}

/** True if a site that has the address is silent. */
export function isSilent(
  { statements }: DecidedAddress,
  { heardMs }: Pick<QuorumRules, 'heardMs'>,
): boolean {
  return statements.home.some(({ silentMs }) => silentMs >= heardMs)
}

function reasonOf(
  statements: Statements,
  { outcome, by }: HealthDecision,
  context: DecisionContext,
): Reason {
  const votes = votesOf(statements, context)
  const homes = namesOf(statements.home)
  const ofHome = (list: readonly Statement[]): readonly Statement[] => {
    return list.filter(({ site }) => homes.includes(site))
  }
  switch (by) {
    case 'home': {
      const said = ofHome(votes[outcome === 'down' ? 'down' : 'up'])
      if (said.length > 0) return { text: `${outcome}: its site ${printSites(said)} reports it` }
      return { text: `down: its site ${homes.join(', ')} reported it and is silent` }
    }
    case 'this site': {
      const verb = outcome === 'up' ? 'reaches' : 'does not reach'
      return { text: `${outcome}: this site ${verb} it` }
    }
    case 'start':
      return { text: 'down: it was down before this process started' }
    case 'before':
      return { text: printIsolated(outcome, context) }
    default:
      return reasonOfVotes(votes, outcome, context)
  }
}

function printIsolated(
  outcome: HealthDecision['outcome'],
  { heard, sites, quorum }: DecisionContext,
): string {
  if (outcome === 'down') return 'down: a quorum found it down before this site became isolated'
  return `not down: this site is isolated, ${heard} of ${sites} sites heard, ${quorum} needed`
}

function reasonOfVotes(
  votes: Votes,
  outcome: HealthDecision['outcome'],
  context: DecisionContext,
): Reason {
  const { up, down, asked } = votes
  if (up.length + down.length === 0)
    return { text: 'not down: no site that is heard knows its health' }
  const needed = neededOf(votes, context)
  if (outcome === 'down') {
    const since = printTime(context.nowMs - ageOfQuorum(down, needed))
    const verb = down.length === 1 ? 'finds' : 'find'
    const sites = printSites(down)
    return {
      text: `down: ${down.length} of ${asked} sites (${sites}) ${verb} it down since ${since}`,
    }
  }
  if (down.length === 0) {
    const verb = up.length === 1 ? 'finds' : 'find'
    return { text: `up: ${printSites(up)} ${verb} it up` }
  }
  const text = `not down: ${down.length} of ${needed} needed sites (${printSites(down)}) find it down`
  if (down.length < needed) return { text }
  return { text, heldMs: context.holdDownMs - ageOfQuorum(down, needed) }
}

/** Returns for how many milliseconds at least `needed` of the sites have found the address down. */
function ageOfQuorum(failing: readonly Statement[], needed: number): number {
  return failing.map((s) => s.ageMs).sort((a, b) => b - a)[needed - 1]!
}

function printSites(statements: readonly Statement[]): string {
  return namesOf(statements).join(', ')
}

function namesOf(statements: readonly Statement[]): string[] {
  return [...new Set(statements.map(({ site }) => site))].sort()
}
