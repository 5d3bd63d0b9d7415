import type { QuorumAddress } from '../../telemetry/status.ts'
import type { HealthDecision, QuorumRules, Statement, Statements } from './decide.ts'

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
  /** Number of sites that are heard, with our own, and of all sites. */
  readonly heard: number
  readonly sites: number
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
    isDown: isDown(statements, decision),
    isDisputed: decision.isDisputed,
    up: namesOf(all.filter((s) => s.health === 'up' && s.silentMs < context.holdDownMs)),
    down: namesOf(all.filter((s) => s.health === 'down')),
    holdDownUntil: until,
    reason: until === null ? text : `${text}; hold-down until ${until}`,
  }
}

/** True if some site that is not its own finds the address down, or a quorum decided about it. */
export function isNoted({ statements: { home, observers }, decision }: DecidedAddress): boolean {
  if (decision.outcome === 'down' || observers.some(({ health }) => health === 'down')) return true
  return new Set(home.map(({ health }) => health).filter((one) => one !== 'unknown')).size > 1
}

/** True if a site that has the address is silent. */
export function isSilent({ statements }: DecidedAddress, { heardMs }: QuorumRules): boolean {
  return statements.home.some(({ silentMs }) => silentMs >= heardMs)
}

/** A site that has the address decides for each of its endpoints. Any of them that is up serves the address. */
function isDown({ home }: Statements, { outcome }: HealthDecision): boolean {
  if (outcome !== 'home') return outcome === 'down'
  return home.some((s) => s.health === 'down') && home.every((s) => s.health !== 'up')
}

function reasonOf(
  statements: Statements,
  decision: HealthDecision,
  context: DecisionContext,
): Reason {
  switch (decision.outcome) {
    case 'home':
      return reasonOfHome(statements, decision, context)
    case 'up':
      return reasonOfUp(statements, context)
    case 'down':
      return { text: `down: ${printQuorum(statements, context)}` }
    default:
      return reasonOfUnknown(statements, context)
  }
}

function reasonOfHome(
  statements: Statements,
  decision: HealthDecision,
  { heardMs, holdDownMs }: DecisionContext,
): Reason {
  const isOut = isDown(statements, decision)
  const health = isOut ? 'down' : 'up'
  const said = statements.home.filter((s) => s.health === health)
  const sites = printSites(said)
  const silentMs = Math.min(...said.map((s) => s.silentMs))
  if (silentMs < heardMs) return { text: `${health}: its site ${sites} reports it` }
  const text = `${isOut ? 'down' : 'not down'}: its site ${sites} reported it ${health} and is silent`
  return { text, heldMs: holdDownMs - silentMs }
}

function reasonOfUp({ observers }: Statements, { holdDownMs, heardMs }: DecisionContext): Reason {
  const reaching = observers.filter((s) => s.health === 'up' && s.silentMs < holdDownMs)
  const text = `not down: ${printSites(reaching)} ${reaching.length === 1 ? 'finds' : 'find'} it up`
  const silentMs = Math.min(...reaching.map((s) => s.silentMs))
  return silentMs < heardMs ? { text } : { text, heldMs: holdDownMs - silentMs }
}

function reasonOfUnknown({ observers }: Statements, context: DecisionContext): Reason {
  const { quorum, holdDownMs, heardMs, isIsolated, heard, sites } = context
  if (isIsolated) {
    return {
      text: `not down: this site is isolated, ${heard} of ${sites} sites heard, ${quorum} needed`,
    }
  }
  const failing = observers.filter((s) => s.health === 'down' && s.silentMs < heardMs)
  const which = failing.length === 0 ? '' : ` (${printSites(failing)})`
  const text = `not down: ${failing.length} of ${quorum} needed sites${which} find it down`
  if (failing.length < quorum) return { text }
  return { text, heldMs: holdDownMs - ageOfQuorum(failing, quorum) }
}

/** Prints which sites decided, and since when enough of them have found the address down. */
function printQuorum({ observers }: Statements, context: DecisionContext): string {
  const { quorum, heardMs, sites, nowMs, isIsolated } = context
  const failing = observers.filter((s) => s.health === 'down' && s.silentMs < heardMs)
  if (isIsolated || failing.length < quorum)
    return 'a quorum found it down before this site became isolated'
  const since = printTime(nowMs - ageOfQuorum(failing, quorum))
  return `${failing.length} of ${sites} sites (${printSites(failing)}) find it down since ${since}`
}

/** Returns for how many milliseconds at least `quorum` of the sites have found the address down. */
function ageOfQuorum(failing: readonly Statement[], quorum: number): number {
  return failing.map((s) => s.ageMs).sort((a, b) => b - a)[quorum - 1]!
}

function printSites(statements: readonly Statement[]): string {
  return namesOf(statements).join(', ')
}

function namesOf(statements: readonly Statement[]): string[] {
  return [...new Set(statements.map(({ site }) => site))].sort()
}

function printTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -5)}Z`
}
