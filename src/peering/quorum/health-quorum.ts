import type { Clock } from '../../base/clock.ts'
import type { HealthObservation } from '../../health/address-health.ts'
import type { PeerObserver } from '../../health/observed-addresses.ts'
import type { Logger } from '../../telemetry/log.ts'
import { groupBy } from '../merge/part.ts'
import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import {
  decide,
  type HealthDecision,
  type HealthOutcome,
  majorityOf,
  type QuorumRules,
  type Statement,
  type Statements,
} from './decide.ts'
import { applyOutcomes, findForeign } from './foreign-addresses.ts'
import type { SiteObservation } from './observation-codec.ts'

/** Maximum silence of a site whose failures count. Longer than the interval of polls. */
const HEARD_MS = 20_000
/** Changes that are logged one by one between two checks. */
const LOGGED_MAX = 20
/** Sites that one log line lists. */
const NAMED_MAX = 8
const NONE: ReadonlySet<string> = new Set()

/** A peer as the quorum sees it. */
export interface QuorumPeer {
  /** `host:port`. */
  readonly address: string
  /** Monotonic milliseconds; -Infinity = never. */
  readonly lastSeenMs: number
  /** The site that it is a nameserver of; '' = several sites, or not known yet. */
  readonly ownSite: string
  observationsOf(host: string): readonly SiteObservation[]
}

/** What must survive a reload: else a dead site's addresses would be served again for a while. */
export class QuorumMemory {
  /** Monotonic milliseconds. Silence counts from here: before, this process heard no site. */
  readonly startMs: number
  /** Addresses that a quorum found down, by host without `*.`. */
  readonly down = new Map<string, ReadonlySet<string>>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.startMs = clock.monotonic()
  }
}

export interface HealthQuorumParts {
  readonly site: string
  readonly peers: readonly QuorumPeer[]
  /** Sites that must find an address down; 0 = a majority of all sites. */
  readonly quorum: number
  readonly holdDownMs: number
  readonly memory: QuorumMemory
  readonly observer: PeerObserver
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly log: Logger
}

/** One host, as this site has it. */
export interface QuorumHost {
  /** Without `*.`. */
  readonly host: string
  /** Endpoints of our own records. */
  readonly own: readonly PeerEndpoint[]
  /** Our own addresses that are down; `own` may lack them. */
  readonly ownDown: readonly string[]
  /** Our own record whose health check is applied to addresses of peers; '' = we have no such record. */
  readonly checkedKey: string
  /** What our probes found of peers' addresses. */
  readonly observed: readonly HealthObservation[]
  readonly siteStates: readonly SiteState[]
}

export interface Settled {
  /** As given, with the health that all sites agree on. */
  readonly siteStates: readonly SiteState[]
  /** Monotonic milliseconds of the next change by age; undefined = none. */
  readonly dueMs: number | undefined
}

export interface QuorumStatus {
  readonly isIsolated: boolean
  /** Sites that are heard, with our own, and all sites. */
  readonly heard: number
  readonly sites: number
  readonly quorum: number
  /** Addresses of silent sites that are down by quorum. */
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
  readonly #heardMs: number
  /** State of each peer at the last check, as one text. */
  #hearing = ''
  #isIsolated = true
  #isReportedIsolated = false
  #sites = 1
  #heard = 1
  /** By host: the record whose health check its foreign addresses use. */
  readonly #checkedKeys = new Map<string, string>()
  readonly #disputed = new Map<string, ReadonlySet<string>>()
  #logged = 0

  constructor(parts: HealthQuorumParts) {
    this.#parts = parts
    this.#heardMs = Math.min(HEARD_MS, parts.holdDownMs)
    this.check()
  }

  get status(): QuorumStatus {
    return {
      isIsolated: this.#isReportedIsolated,
      heard: this.#heard,
      sites: this.#sites,
      quorum: this.#quorum,
      down: countIn(this.#parts.memory.down),
      disputed: countIn(this.#disputed),
    }
  }

  /** Checks which sites are heard. Returns true if every host must be settled again. */
  check(): boolean {
    const { peers, site, holdDownMs, memory, clock, log } = this.#parts
    const unlogged = this.#logged - LOGGED_MAX
    if (unlogged > 0) log.warning(`and ${unlogged} more changes of the health of peers' addresses`)
    this.#logged = 0
    const nowMs = clock.monotonic()
    const sites = new Set([site])
    const heard = new Set([site])
    let hearing = ''
    for (const peer of peers) {
      const silentMs = this.#silentMs(peer.lastSeenMs)
      const isHeard = nowMs - peer.lastSeenMs < this.#heardMs
      const id = peer.ownSite === '' ? peer.address : peer.ownSite
      sites.add(id)
      if (isHeard) heard.add(id)
      hearing += `${id} ${isHeard} ${silentMs < holdDownMs}\n`
    }
    this.#sites = sites.size
    this.#heard = heard.size
    this.#isIsolated = heard.size < this.#quorum
    // At the start, no site was heard yet.
    const isReported = this.#isIsolated && nowMs - memory.startMs >= this.#heardMs
    if (isReported !== this.#isReportedIsolated) this.#reportIsolation(isReported)
    const isChanged = hearing !== this.#hearing
    this.#hearing = hearing
    return isChanged
  }

  /** Applies the decisions about the host, and requests the probes that they need. */
  settle(facts: QuorumHost): Settled {
    const { host, siteStates } = facts
    const { memory, clock } = this.#parts
    const foreign = findForeign(facts)
    this.#watch(facts, [...foreign.keys()].sort())
    const observers = this.#observersOf(facts)
    const wasDown = memory.down.get(host) ?? NONE
    const wasDisputed = this.#disputed.get(host) ?? NONE
    const down = new Set<string>()
    const disputed = new Set<string>()
    const outcomes = new Map<string, HealthOutcome>()
    let nextMs = Number.POSITIVE_INFINITY
    for (const [address, endpoints] of foreign) {
      const home = endpoints.map((one) => this.#stateOf(one.site, one, one.seenMs))
      const statements = { home, observers: observers.get(address) ?? [] }
      const decision = decide(statements, wasDown.has(address), this.#rules)
      outcomes.set(address, decision.outcome)
      nextMs = Math.min(nextMs, decision.nextMs ?? nextMs)
      if (decision.outcome === 'down') down.add(address)
      if (decision.isDisputed) disputed.add(address)
      const was = { isDown: wasDown.has(address), isDisputed: wasDisputed.has(address) }
      this.#report(`${address} of ${host}`, was, decision, statements)
    }
    note(memory.down, host, down)
    note(this.#disputed, host, disputed)
    const isDue = nextMs !== Number.POSITIVE_INFINITY
    return {
      siteStates: applyOutcomes(siteStates, outcomes),
      dueMs: isDue ? clock.monotonic() + nextMs : undefined,
    }
  }

  /** Forgets a host without endpoints of peers. */
  forget(host: string): void {
    const key = this.#checkedKeys.get(host)
    if (key !== undefined) this.#parts.observer.watch(key, [])
    this.#checkedKeys.delete(host)
    this.#parts.memory.down.delete(host)
    this.#disputed.delete(host)
  }

  /** Withdraws the requests for probes. */
  close(): void {
    this.#parts.observer.close()
  }

  get #quorum(): number {
    return this.#parts.quorum || majorityOf(this.#sites)
  }

  get #rules(): QuorumRules {
    const { holdDownMs } = this.#parts
    return {
      quorum: this.#quorum,
      holdDownMs,
      heardMs: this.#heardMs,
      isIsolated: this.#isIsolated,
    }
  }

  #watch({ host, checkedKey }: QuorumHost, addresses: readonly string[]): void {
    const { observer } = this.#parts
    const before = this.#checkedKeys.get(host) ?? ''
    if (before !== checkedKey && before !== '') observer.watch(before, [])
    if (checkedKey === '') this.#checkedKeys.delete(host)
    else {
      this.#checkedKeys.set(host, checkedKey)
      observer.watch(checkedKey, addresses)
    }
  }

  /** Returns what sites found of addresses of other sites, by address: one statement per site. */
  #observersOf({ host, observed }: QuorumHost): Map<string, Statement[]> {
    const { site, peers, memory, clock } = this.#parts
    const bySite = new Map<string, Statement & { readonly address: string }>()
    const add = (of: string, one: HealthObservation, seenMs: number): void => {
      const statement = { ...this.#stateOf(of, one, seenMs), address: one.address }
      const key = `${of} ${one.address}`
      const known = bySite.get(key)
      if (known === undefined || isBefore(statement, known)) bySite.set(key, statement)
    }
    for (const one of observed) add(site, one, clock.monotonic())
    for (const peer of peers) {
      const { ownSite, lastSeenMs } = peer
      // A relay speaks for no site, and no peer speaks for ours.
      if (ownSite === '' || ownSite === site) continue
      for (const one of peer.observationsOf(host)) {
        // A failure from the peer cache may be over.
        const isOld = one.health === 'down' && lastSeenMs < memory.startMs
        if (one.site === ownSite && !isOld) add(ownSite, one, lastSeenMs)
      }
    }
    return groupBy([...bySite.values()], ({ address }) => address)
  }

  #stateOf(
    site: string,
    { health, sinceSeconds }: Pick<PeerEndpoint, 'health' | 'sinceSeconds'>,
    seenMs: number,
  ): Statement {
    const ageMs = Math.max(0, this.#parts.clock.now() - sinceSeconds * 1000)
    return { site, health, ageMs, silentMs: this.#silentMs(seenMs) }
  }

  /** Returns for how long a site has been silent. Before the start, this process heard no site. */
  #silentMs(seenMs: number): number {
    const { clock, memory } = this.#parts
    return clock.monotonic() - Math.max(seenMs, memory.startMs)
  }

  #reportIsolation(isIsolated: boolean): void {
    this.#isReportedIsolated = isIsolated
    const { log } = this.#parts
    const heard = `${this.#heard} of ${this.#sites} sites heard, ${this.#quorum} needed`
    if (isIsolated) log.warning(`site is isolated: ${heard}; no address of a peer is taken out`)
    else log.info(`site is no longer isolated: ${heard}`)
  }

  #report(
    name: string,
    was: { readonly isDown: boolean; readonly isDisputed: boolean },
    { outcome, isDisputed }: HealthDecision,
    statements: Statements,
  ): void {
    const { log } = this.#parts
    const isDown = outcome === 'down'
    if (isDown === was.isDown && isDisputed === was.isDisputed) return
    if (this.#logged++ >= LOGGED_MAX) return
    const said = printStatements(statements)
    if (isDown && !was.isDown) log.warning(`${name} is taken out: a quorum finds it down: ${said}`)
    if (!isDown && was.isDown) log.info(`${name} is served again: ${said}`)
    if (isDisputed && !was.isDisputed) log.warning(`sites disagree about ${name}: ${said}`)
    if (!isDisputed && was.isDisputed) log.info(`sites no longer disagree about ${name}: ${said}`)
  }
}

/** Of two statements of one site, the one that was received last; at equal times, the success. */
function isBefore(a: Statement, b: Statement): boolean {
  if (a.silentMs !== b.silentMs) return a.silentMs < b.silentMs
  if (a.health !== b.health) return a.health === 'up'
  return a.ageMs < b.ageMs
}

/** Prints for a log line what each site says. */
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
