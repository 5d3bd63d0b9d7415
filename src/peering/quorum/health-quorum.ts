import type { Clock } from '../../base/clock.ts'
import type { QuorumAddress, QuorumMember } from '../../base/telemetry/status.ts'
import type { HealthObservation } from '../../health/address-health.ts'
import { type PeerObserver, RECORD_ADDRESSES_MAX } from '../../health/observed-addresses.ts'
import type { Leaf } from '../../health/record-probes.ts'
import type { HealthCheck } from '../../records/health-check.ts'
import { groupBy } from '../merge/part.ts'
import { listTargets, type PeerEndpoint, type SiteState } from '../peer-endpoint.ts'
import {
  DISPUTE_MS,
  decide,
  type HealthDecision,
  type QuorumRules,
  type Statement,
  type Statements,
} from './decide.ts'
import {
  type DecidedAddress,
  type DecisionContext,
  explainDecision,
  isNoted,
  isSilent,
} from './explain-decision.ts'
import type { FindingReader } from './finding-ages.ts'
import { findForeign } from './foreign-addresses.ts'
import { HeardSites, type HeardSitesParts } from './heard-sites.ts'
import { type EarlierDecisions, earlierDecisions, keepDown } from './keep-down.ts'
import { findLastTargets } from './last-targets.ts'
import { findProbed } from './probed-addresses.ts'
import type { QuorumMemory } from './quorum-memory.ts'

/** Changes that are logged one by one between two checks. */
const LOGGED_MAX = 20
/** Sites that one log line lists. */
const NAMED_MAX = 8
const NONE: ReadonlySet<string> = new Set()

export interface HealthQuorumParts extends Omit<HeardSitesParts, 'startMs' | 'clock'> {
  readonly memory: QuorumMemory
  /** Requests probes of peers' addresses; undefined = this site does not probe them. */
  readonly observer: PeerObserver | undefined
  /** How long sites must have found an address down; 0 = at once. */
  readonly holdDownMs: number
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}

/** One host, as this site has it. */
export interface QuorumHost {
  /** Without `*.`. */
  readonly host: string
  /** Identifies the host, or one record of it if records are settled one by one; missing = `host`. */
  readonly id?: string
  /** Missing = none. */
  readonly earlier?: EarlierDecisions | undefined
  /** Endpoints of our own records; drained ones are down. */
  readonly own: readonly PeerEndpoint[]
  /** What our own probes found of addresses of our own records. */
  readonly ownFindings: ReadonlyMap<string, 'up' | 'down'>
  /** Our own record whose health check is applied to addresses of peers; '' = we have no such record. */
  readonly checkedKey: string
  /** What our probes found of peers' addresses. */
  readonly observed: readonly HealthObservation[]
  readonly siteStates: readonly SiteState[]
}

/** The nameserver that reported something, and when it last confirmed it. */
type Exporter = Pick<SiteState, 'exporter' | 'seenMs'>

/** What was decided about one address, and why. */
export interface AddressDecision extends Pick<HealthDecision, 'outcome' | 'by'> {
  /** `2 of 3 sites (berlin, paris) find it down since …`. */
  readonly reason: string
}

export interface Settled {
  /** By address or host name; without those about which nothing is reported. */
  readonly decisions: ReadonlyMap<string, AddressDecision>
  /** Monotonic milliseconds of the next change by age; undefined = none. */
  readonly dueMs: number | undefined
  /** Addresses that are taken out or served again from now on, as text; '' = none. */
  readonly changes: string
}

export interface QuorumStatus {
  readonly isIsolated: boolean
  /** Sites that are heard, with our own, and all sites. */
  readonly heard: number
  readonly sites: number
  readonly quorum: number
  /** Addresses of other sites that are taken out although their own sites do not report them down. */
  readonly down: number
  /** Addresses about which sites contradict each other. */
  readonly disputed: number
}

/**
 * Decides about the health of peers' addresses by the findings of all sites: see `decide`. It
 * requests probes of these addresses, and reports decisions, contradictions and isolation.
 */
export class HealthQuorum {
  readonly #parts: HealthQuorumParts
  readonly #sites: HeardSites
  /** By host: the record whose health check its foreign addresses use. */
  readonly #checkedKeys = new Map<string, string>()
  readonly #disputed = new Map<string, ReadonlySet<string>>()
  /** By host: number of addresses to list in a status, and of our own observations. */
  readonly #noted = new Map<string, number>()
  readonly #observed = new Map<string, number>()
  /** Hosts with more addresses than are probed. */
  readonly #crowded = new Set<string>()
  #logged = 0

  constructor(parts: HealthQuorumParts) {
    this.#parts = parts
    this.#sites = new HeardSites({ ...parts, startMs: parts.memory.startMs })
    this.check()
  }

  get status(): QuorumStatus {
    return {
      isIsolated: this.#sites.isReportedIsolated,
      heard: this.#sites.heard,
      sites: this.#sites.count,
      quorum: this.#sites.quorum,
      down: countIn(this.#parts.memory.down),
      disputed: countIn(this.#disputed),
    }
  }

  /** Checks which sites are heard. Returns true if every host must be settled again. */
  check(): boolean {
    const unlogged = this.#logged - LOGGED_MAX
    if (unlogged > 0)
      this.#parts.log.warning(
        `and ${unlogged} more changes of the health of peers' addresses`,
        'quorum-changes-more',
      )
    this.#logged = 0
    return this.#sites.check()
  }

  /** Decides about the addresses of a host, and requests the probes that this needs. */
  settle(facts: QuorumHost): Settled {
    const { host, id = host, observed, ownFindings } = facts
    const { memory, clock } = this.#parts
    const foreign = findForeign(facts)
    const ages = memory.ages.read(id, clock)
    const decided = this.#decide(facts, ages, foreign)
    const ours = new Set([...ownFindings.keys(), ...listTargets(facts.own)])
    this.#watch(facts, findProbed(new Map([...foreign].filter(([address]) => !ours.has(address)))))
    const wasDown = memory.downOf(id)
    const wasOut = memory.outOf(id)
    const wasDisputed = this.#disputed.get(id) ?? NONE
    const down = new Set<string>()
    const out = findOut(facts, decided)
    const disputed = new Set<string>()
    const decisions = new Map<string, AddressDecision>()
    const changes: string[] = []
    const context = this.#contextOf(facts)
    let nextMs = Number.POSITIVE_INFINITY
    for (const one of decided) {
      const { address, statements, decision } = one
      const { outcome, by, isDisputed } = decision
      nextMs = Math.min(nextMs, decision.nextMs ?? nextMs)
      decisions.set(address, { outcome, by, reason: reasonOf(one, context) })
      // What its own site reports down is no decision of other sites.
      const isTakenOut = outcome === 'down' && by !== 'home'
      if (isTakenOut) down.add(address)
      if (isDisputed) disputed.add(address)
      const isOut = { before: wasOut.has(address), after: out.has(address) }
      const isInDispute = { before: wasDisputed.has(address), after: isDisputed }
      this.#report(`${address} of ${host}`, isOut, isInDispute, statements)
      // If its own site reports it down meanwhile, it is not served again.
      const isReported = outcome === 'down' && !isTakenOut
      if (isTakenOut !== (wasDown.has(address) && !isReported)) {
        changes.push(`${address} ${printChange(isTakenOut, statements)}`)
      }
    }
    for (const { address, statements, decision } of this.#decideOurs(facts, ages, foreign)) {
      const isDisputed = { before: wasDisputed.has(address), after: decision.isDisputed }
      nextMs = Math.min(nextMs, decision.nextMs ?? nextMs)
      if (isDisputed.after) disputed.add(address)
      this.#report(`${address} of ${host}`, { before: false, after: false }, isDisputed, statements)
    }
    ages.store()
    memory.note(id, down, out)
    note(this.#disputed, id, disputed)
    this.#count(this.#noted, id, decided.filter(isNoted).length)
    this.#count(this.#observed, id, observed.length)
    const isDue = nextMs !== Number.POSITIVE_INFINITY
    return {
      decisions,
      dueMs: isDue ? clock.monotonic() + nextMs : undefined,
      changes: changes.slice(0, NAMED_MAX).join('; '),
    }
  }

  /**
   * Returns what an earlier process decided about a host; undefined = nothing. `check`: of our record, for addresses of
   * peers; undefined = none has one.
   */
  earlierOf(host: string, check: HealthCheck | undefined): EarlierDecisions | undefined {
    const { memory } = this.#parts
    const down = memory.earlierOf(host)
    if (down.size === 0) return undefined
    return earlierDecisions(down, memory.startMs, this.isObserving ? check : undefined)
  }

  /** False = this site does not probe addresses of peers. */
  get isObserving(): boolean {
    return this.#parts.observer !== undefined
  }

  get holdDownMs(): number {
    return this.#parts.holdDownMs
  }

  /** Number of addresses that `inspect` returns, by host. */
  get noted(): ReadonlyMap<string, number> {
    return this.#noted
  }

  /**
   * Returns the addresses that some site found down although they are not its own, and why they are served or
   * not; with 'silent too' also those of silent sites. Changes nothing.
   */
  inspect(facts: QuorumHost, which: 'noted' | 'silent too' = 'noted'): readonly QuorumAddress[] {
    const context = this.#contextOf(facts)
    const { memory, clock } = this.#parts
    const ages = memory.ages.read(facts.id ?? facts.host, clock)
    const listed = this.#decide(facts, ages).filter((one) => {
      return isNoted(one) || (which === 'silent too' && isSilent(one, context))
    })
    return listed.map((one) => explainDecision(one, context))
  }

  /** Returns the sites, ours first. */
  members(): readonly QuorumMember[] {
    return this.#sites.members([...this.#observed.values()].reduce((sum, count) => sum + count, 0))
  }

  /** Forgets a host without endpoints of peers. `id`: as in QuorumHost. */
  forget(id: string): void {
    const key = this.#checkedKeys.get(id)
    if (key !== undefined) this.#parts.observer?.watch(key, [])
    this.#checkedKeys.delete(id)
    this.#parts.memory.forget(id)
    this.#disputed.delete(id)
    this.#noted.delete(id)
    this.#crowded.delete(id)
    this.#observed.delete(id)
  }

  /** Withdraws the requests for probes. */
  close(): void {
    this.#parts.observer?.close()
  }

  #decide(
    facts: QuorumHost,
    ages: FindingReader,
    foreign = findForeign(facts),
  ): readonly DecidedAddress[] {
    const { host, id = host, ownFindings, earlier } = facts
    const { site, clock, memory } = this.#parts
    const wasDown = memory.downOf(id)
    const observers = this.#observersOf(facts, ages)
    const rules = this.#rulesOf(facts)
    const decided = [...foreign].map(([address, endpoints]) => {
      const home = endpoints.map((one) => {
        // Not by nameserver: of several of a site, the state is that of the one that was heard last, which alternates.
        return this.#stateOf(one, one, () => ages.ageOf(`${one.site} ${address}`))
      })
      const own = ownFindings.get(address)
      if (own !== undefined) home.push({ site, health: own, ageMs: DISPUTE_MS, silentMs: 0 })
      const statements = { home, observers: observers.get(address) ?? [] }
      const decided = decide(statements, wasDown.has(address), rules)
      const known = { address, statements, decision: decided }
      const decision = keepDown(known, earlier, site, clock.monotonic())
      return { host, address, statements, decision }
    })
    return keepReached(facts, decided, site)
  }

  /** Finds reports about our own addresses. Our checks decide about these, so a report can only be in dispute. */
  #decideOurs(
    facts: QuorumHost,
    ages: FindingReader,
    foreign: ReadonlyMap<string, unknown>,
  ): DecidedAddress[] {
    const { host, own, ownFindings } = facts
    const { site } = this.#parts
    const rules = this.#rulesOf(facts)
    const observed = this.#observersOf(facts, ages)
    if (observed.size === 0) return []
    const ours = new Set(listTargets(own))
    const about = [...observed].filter(([address]) => {
      return ours.has(address) && !foreign.has(address) && ownFindings.get(address) !== 'down'
    })
    return about.map(([address, observers]) => {
      // Without checks of our own, the address is served like one that is up.
      const home = [{ site, health: 'up', ageMs: 0, silentMs: 0 } as const]
      const statements = { home, observers }
      return { host, address, statements, decision: decide(statements, false, rules) }
    })
  }

  #count(counts: Map<string, number>, id: string, count: number): void {
    if (count === 0) counts.delete(id)
    else counts.set(id, count)
  }

  #rulesOf({ checkedKey }: QuorumHost): QuorumRules {
    const { site, quorum, holdDownMs } = this.#parts
    const { count: sites, heardMs, isUndecided: isIsolated } = this.#sites
    return { site, sites, quorum, holdDownMs, heardMs, isIsolated, isProbing: checkedKey !== '' }
  }

  #contextOf(facts: QuorumHost): DecisionContext {
    return { ...this.#rulesOf(facts), heard: this.#sites.heard, nowMs: this.#parts.clock.now() }
  }

  #watch({ host, id = host, checkedKey }: QuorumHost, leaves: readonly Leaf[]): void {
    const { observer, log } = this.#parts
    if (observer === undefined) return
    const before = this.#checkedKeys.get(id) ?? ''
    if (before !== checkedKey && before !== '') observer.watch(before, [])
    if (checkedKey === '') this.#checkedKeys.delete(id)
    else {
      this.#checkedKeys.set(id, checkedKey)
      observer.watch(checkedKey, leaves)
    }
    const unprobed = leaves.length - RECORD_ADDRESSES_MAX
    if (unprobed <= 0) this.#crowded.delete(id)
    else if (!this.#crowded.has(id)) {
      this.#crowded.add(id)
      log.warning(
        `${host}: ${leaves.length} addresses of peers, ${RECORD_ADDRESSES_MAX} are probed`,
        'quorum-addresses-limit',
      )
    }
  }

  /** Returns what sites found of addresses of other sites, by address: one statement per site. */
  #observersOf({ host, observed }: QuorumHost, ages: FindingReader): Map<string, Statement[]> {
    const { site, peers, clock, observer } = this.#parts
    if (observer === undefined) return new Map()
    const bySite = new Map<string, Statement & { readonly address: string }>()
    const add = (of: string, one: HealthObservation, by: Exporter): void => {
      const ageOf = (): number => ages.ageOf(`${of} ${by.exporter} ${one.address}`)
      const state = this.#stateOf({ ...one, site: of }, by, ageOf)
      const statement = { ...state, address: one.address }
      const key = `${of} ${one.address}`
      const known = bySite.get(key)
      if (known === undefined || this.#isBefore(statement, known)) bySite.set(key, statement)
    }
    for (const one of observed) add(site, one, { exporter: '', seenMs: clock.monotonic() })
    for (const peer of peers) {
      const { ownSite, address: exporter, lastAnswerMs: seenMs } = peer
      // The observations of a relay do not count, nor those that a peer sends under the name of our site.
      if (ownSite === '' || ownSite === site) continue
      for (const one of peer.observationsOf(host)) {
        if (one.site === ownSite) add(ownSite, one, { exporter, seenMs })
      }
    }
    return groupBy([...bySite.values()], ({ address }) => address)
  }

  #stateOf(
    { site, health }: Pick<PeerEndpoint, 'site' | 'health'>,
    { exporter, seenMs }: Exporter,
    ageOf: () => number,
  ): Statement {
    // Ages of failures count, and most addresses have none.
    const ageMs = health === 'down' ? ageOf() : 0
    return { site, health, ageMs, silentMs: this.#sites.silentMs(exporter, seenMs) }
  }

  /**
   * Of two statements of one site by different nameservers: the one of a nameserver that is heard, then the success,
   * then the last one. So another peer that claims the site cannot hide its success.
   */
  #isBefore(a: Statement, b: Statement): boolean {
    const isHeard = (s: Statement): boolean => s.silentMs < this.#sites.heardMs
    if (isHeard(a) !== isHeard(b)) return isHeard(a)
    if (isHeard(a) && a.health !== b.health) return a.health === 'up'
    if (a.silentMs !== b.silentMs) return a.silentMs < b.silentMs
    if (a.health !== b.health) return a.health === 'up'
    return a.ageMs < b.ageMs
  }

  /** Logs that an address is taken out or served again for a reason that is no decision about its health. */
  report(name: string, isOut: boolean, reason: string): void {
    if (this.#logged++ < LOGGED_MAX) this.#logOut(name, isOut, reason)
  }

  #logOut(name: string, isOut: boolean, reason: string): void {
    const { log } = this.#parts
    if (isOut) log.warning(`${name} is taken out: ${reason}`, 'quorum-taken-out')
    else log.info(`${name} is served again: ${reason}`, 'quorum-served-again')
  }

  /** Logs what changed, whatever decided it. */
  #report(name: string, isOut: Change, isDisputed: Change, statements: Statements): void {
    if (isOut.before === isOut.after && isDisputed.before === isDisputed.after) return
    if (this.#logged++ >= LOGGED_MAX) return
    const { log } = this.#parts
    const said = printStatements(statements)
    if (isOut.after !== isOut.before) this.#logOut(name, isOut.after, said)
    if (isDisputed.after && !isDisputed.before)
      log.warning(`sites disagree about ${name}: ${said}`, 'sites-disagree')
    if (!isDisputed.after && isDisputed.before)
      log.info(`sites no longer disagree about ${name}: ${said}`, 'sites-agree')
  }
}

/** Returns the addresses that are down, except for those of our own records that are not down there. */
function findOut(
  { own, ownFindings }: QuorumHost,
  decided: readonly DecidedAddress[],
): ReadonlySet<string> {
  const targets = listTargets(own.filter(({ health }) => health !== 'down'))
  const served = new Set(targets.filter((target) => ownFindings.get(target) !== 'down'))
  const down = decided.filter(({ decision }) => decision.outcome === 'down')
  return new Set(down.map(({ address }) => address).filter((address) => !served.has(address)))
}

/** Where clients would get nothing else, they get what this site reaches, although other sites do not. */
function keepReached(
  facts: QuorumHost,
  decided: readonly DecidedAddress[],
  site: string,
): readonly DecidedAddress[] {
  const isReached = ({ statements, decision }: DecidedAddress): boolean => {
    const ours = statements.observers.find((one) => one.site === site)
    return decision.by === 'sites' && decision.outcome === 'down' && ours?.health === 'up'
  }
  if (!decided.some(isReached)) return decided
  const down = decided.filter(({ decision }) => decision.outcome === 'down')
  const downTargets = new Set(down.map(({ address }) => address))
  const last = findLastTargets(facts, (target) => downTargets.has(target))
  return decided.map((one) => {
    if (!last.has(one.address) || !isReached(one)) return one
    return { ...one, decision: { ...one.decision, outcome: 'up', by: 'this site' } }
  })
}

/** Returns why an address is down; '' = it is not. */
function reasonOf(one: DecidedAddress, context: DecisionContext): string {
  if (one.decision.outcome !== 'down') return ''
  return explainDecision(one, context).reason.replace(/^down: /, '')
}

interface Change {
  readonly before: boolean
  readonly after: boolean
}

function printChange(isOut: boolean, statements: Statements): string {
  return `${isOut ? 'is taken out' : 'is served again'}: ${printStatements(statements)}`
}

/** Prints for a log line what each site reports. */
function printStatements({ home, observers }: Statements): string {
  const ofHome = home.map(({ site, health, silentMs }) => {
    return `${site} (home) ${health} ${Math.floor(silentMs / 1000)} s ago`
  })
  const others = observers.map(({ site, health }) => `${site} ${health}`)
  return [...new Set([...ofHome, ...others])].sort().slice(0, NAMED_MAX).join(', ')
}

function note(sets: Map<string, ReadonlySet<string>>, host: string, set: Set<string>): void {
  if (set.size === 0) sets.delete(host)
  else sets.set(host, set)
}

function countIn(sets: ReadonlyMap<string, ReadonlySet<string>>): number {
  let count = 0
  for (const set of sets.values()) count += set.size
  return count
}
