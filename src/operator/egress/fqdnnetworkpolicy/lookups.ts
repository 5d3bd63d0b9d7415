import type { Clock } from '../../../base/clock.ts'
import type { Random } from '../../../base/random.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import type { Timers } from '../../../base/timers.ts'
import { type AskAddresses, askerOf } from '../../../client/resolver/ask-addresses.ts'
import type { Observation } from '../../../client/resolver/observation.ts'
import { Resolver } from '../../../client/resolver/resolver.ts'
import { RESOLVER_RULES_DEFAULT } from '../../../client/resolver/waits.ts'
import { printHostPort } from '../../../dns/host-port.ts'
import { printRcode, Rcode } from '../../../dns/iana/index.ts'
import { nameKey, printName } from '../../../dns/name/name.ts'
import type { AddressFamily } from '../../../dns/text/address.ts'
import { type AddressEnd, LearnedTable } from '../../../egress/learned/learned-table.ts'
import { type DnsServers, FileServers } from './dns-servers.ts'
import type { FqdnMetrics } from './metrics.ts'
import type { FqdnSettings } from './settings.ts'

/**
 * Time after the end of the TTL at which a name is resolved again: by then, the caches of the DNS
 * servers have dropped the old answer.
 */
const AFTER_TTL_MS = 800
/** Timeout of a query to a server of the Service; a file has its own. */
const TIMEOUT_MS = 2000
const TRIES = 2
/** Interval at which expired addresses are dropped, and at which a silent server is tried again. */
const COLLECT_MS = 10_000
/** NPEP-133 asks for 100 addresses per name and more. */
const ADDRESSES_PER_NAME = 1000
/** Addresses of all names. */
const ADDRESSES_MAX = 100_000
const NXDOMAIN = printRcode(Rcode.NXDOMAIN)

interface LookupParts {
  readonly servers: DnsServers
  readonly settings: FqdnSettings
  readonly metrics: FqdnMetrics
  /** A policy has a new address, or a first result for a name. */
  readonly onNews: (policy: string) => void
  /** A name without addresses cannot be resolved. Called when the reason changes. */
  readonly onFailure: (policy: string, name: string, reason: string) => void
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

/** One name of any policies. */
interface Entry {
  readonly wire: Uint8Array
  /** Lower case, with the final dot. */
  readonly text: string
  /** By policy: whether it wants IPv6 addresses too. */
  readonly holders: Map<string, boolean>
  /** True once a server said which addresses the name has, or that it does not exist. */
  hasReply: boolean
  /** True once all servers were asked and one of them said so. */
  isSettled: boolean
  /** When it is resolved again, in monotonic milliseconds; undefined = not known yet. */
  dueMs: number | undefined
  /** Why the last query failed; '' = it did not. */
  fault: string
  /** Servers that did not say in the last round which addresses the name has. */
  missing: readonly string[]
}

/** Resolves the names of all policies, each once for all policies that have it. */
export class Lookups {
  readonly #parts: LookupParts
  readonly #entries = new Map<string, Entry>()
  /** The names of each policy, by key. */
  readonly #names = new Map<string, ReadonlySet<string>>()
  /** By key of a name. An address ends a fixed time after it was seen last. */
  readonly #learned: LearnedTable
  readonly #resolver: Resolver
  /** Names with missing servers; the one that was resolved last is last. */
  readonly #partial = new Set<Entry>()
  readonly #stopCollecting: () => void
  #hasReleased = false
  /** Addresses that were removed at a limit. */
  evictions = 0

  constructor(parts: LookupParts) {
    this.#parts = parts
    const { settings, servers, clock, timers, random, log } = parts
    this.#learned = new LearnedTable({
      endOf: ({ lookupMs }) => lookupMs + settings.ipExpirationMs,
      addressesPerName: ADDRESSES_PER_NAME,
    })
    this.#resolver = new Resolver({
      rules: {
        ...RESOLVER_RULES_DEFAULT,
        serversMax: Number.POSITIVE_INFINITY,
        minMs: settings.minimumSyncMs,
        maxMs: longestWaitMs(settings),
        afterMs: AFTER_TTL_MS,
        // The number of queries at once is bounded anyway, and a random wait would be downtime.
        spreadMs: 0,
      },
      familiesOf: (name) => this.#familiesOf(name),
      servers: () => servers.list(),
      ask: this.#asker(),
      onObservation: (observation) => this.#observe(observation),
      onResolved: (name, dueMs, found) => this.#settle(name, dueMs, found),
      clock,
      timers,
      random,
      log,
    })
    this.#stopCollecting = timers.every(COLLECT_MS, () => this.#collect())
  }

  /** Number of names. */
  get size(): number {
    return this.#entries.size
  }

  get addressCount(): number {
    return this.#learned.size
  }

  /** Time since the name that waits longest was due. */
  get lagMs(): number {
    return this.#resolver.lagMs
  }

  /**
   * Sets the names of a policy, in place of those before. `dueMs`: when a name is to be resolved
   * first, in monotonic milliseconds, by nameKey; missing = now, unless it has been resolved.
   */
  hold(
    policy: string,
    names: Iterable<Uint8Array>,
    wantsIpv6: boolean,
    dueMs: ReadonlyMap<string, number>,
  ): void {
    const keys = new Set<string>()
    for (const wire of names) {
      const key = nameKey(wire)
      keys.add(key)
      const known = this.#entries.get(key)
      const entry = known ?? this.#add(key, wire)
      const asksIpv6 = this.#familiesOf(wire).length > 1
      // Another policy may have scheduled its first lookup for later.
      const isWanted = !entry.isSettled && !entry.holders.has(policy) && !dueMs.has(key)
      entry.holders.set(policy, wantsIpv6)
      if (known === undefined) this.#start(entry, dueMs.get(key))
      else if (isWanted || (wantsIpv6 && !asksIpv6)) this.#resolver.hasten(wire)
    }
    for (const key of this.#names.get(policy) ?? []) if (!keys.has(key)) this.#release(policy, key)
    if (keys.size > 0) this.#names.set(policy, keys)
    else this.#names.delete(policy)
  }

  /** Forgets a policy. */
  release(policy: string): void {
    this.hold(policy, [], false, new Map())
  }

  /** Resolves all names now: a new server may have other answers. */
  hasten(): void {
    for (const { wire } of this.#entries.values()) this.#resolver.hasten(wire)
  }

  /** The addresses that servers returned for a name, until when they are granted. */
  endsOf(name: Uint8Array): Iterable<AddressEnd> {
    return this.#learned.endsOf(nameKey(name))
  }

  isSettled(name: Uint8Array): boolean {
    return this.#entries.get(nameKey(name))?.isSettled === true
  }

  /** When a name is resolved again, in monotonic milliseconds; undefined = just now. */
  dueMsOf(name: Uint8Array): number | undefined {
    return this.#entries.get(nameKey(name))?.dueMs
  }

  close(): void {
    this.#resolver.close()
    this.#stopCollecting()
  }

  #add(key: string, wire: Uint8Array): Entry {
    const entry: Entry = {
      wire,
      text: printName(wire),
      holders: new Map(),
      hasReply: false,
      isSettled: false,
      dueMs: undefined,
      fault: '',
      missing: [],
    }
    this.#entries.set(key, entry)
    return entry
  }

  #start(entry: Entry, dueMs: number | undefined): void {
    if (dueMs === undefined) {
      this.#resolver.want(entry.wire)
      return
    }
    const { clock, settings } = this.#parts
    entry.dueMs = Math.min(dueMs, clock.monotonic() + longestWaitMs(settings))
    this.#resolver.schedule(entry.wire, entry.dueMs)
  }

  #release(policy: string, key: string): void {
    const entry = this.#entries.get(key)
    entry?.holders.delete(policy)
    if (entry === undefined || entry.holders.size > 0) return
    this.#entries.delete(key)
    this.#partial.delete(entry)
    this.#resolver.forget(entry.wire)
    this.#parts.metrics.forgetName(entry.text)
    this.#hasReleased = true
  }

  #familiesOf(name: Uint8Array): readonly AddressFamily[] {
    const holders = this.#entries.get(nameKey(name))?.holders.values() ?? []
    return [...holders].includes(true) ? [1, 2] : [1]
  }

  #asker(): AskAddresses {
    const { servers, settings, metrics } = this.#parts
    return async (query) => {
      const config = servers instanceof FileServers ? servers.config() : undefined
      const tries = settings.dns.overTcp ? 0 : (config?.attempts ?? TRIES)
      const entry = this.#entries.get(nameKey(query.name))
      const answered = await askerOf({ timeoutMs: config?.timeoutMs ?? TIMEOUT_MS, tries })(query)
      // No policy has the name any more, or one has it anew: the resolver drops the reply too.
      if (entry === undefined || this.#entries.get(nameKey(query.name)) !== entry) return answered
      metrics.countLookup(entry.text, query.family, answered)
      if (answered.kind === 'failed') return answered
      const { rcode } = answered.message
      if (rcode === Rcode.NOERROR || rcode === Rcode.NXDOMAIN) entry.hasReply = true
      return answered
    }
  }

  #settle(name: Uint8Array, dueMs: number, found: readonly Observation[]): void {
    const entry = this.#entries.get(nameKey(name))
    if (entry === undefined) return
    entry.dueMs = dueMs
    this.#noteMissing(entry, found)
    if (entry.isSettled || !entry.hasReply) return
    entry.isSettled = true
    this.#tell(entry)
  }

  /**
   * A server that recovers may have other addresses. Its names are resolved then, not at the end of
   * the TTL of the others.
   */
  #noteMissing(entry: Entry, found: readonly Observation[]): void {
    const families = this.#familiesOf(entry.wire).length
    const servers = this.#parts.servers.list().map(printHostPort)
    const said = found.filter(saysAddresses).map(({ server }) => server)
    const missing = servers.filter(
      (one) => said.filter((server) => server === one).length < families,
    )
    const recovered = entry.missing.filter((one) => servers.includes(one) && !missing.includes(one))
    entry.missing = missing
    this.#partial.delete(entry)
    if (missing.length > 0) this.#partial.add(entry)
    if (recovered.length === 0) return
    for (const { wire, missing } of this.#partial) {
      if (missing.some((one) => recovered.includes(one))) this.#resolver.hasten(wire)
    }
  }

  #observe(observation: Observation): void {
    const key = nameKey(observation.name)
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    if (observation.kind === 'answer') {
      entry.fault = ''
      let isNews = false
      for (const { address, ttlSeconds } of observation.facts) {
        const answer = { name: key, addresses: [address], lookupMs: observation.atMs, ttlSeconds }
        if (this.#learned.add(answer).added.length > 0) isNews = true
      }
      this.#removeExcess(observation.atMs)
      if (isNews) this.#tell(entry)
      return
    }
    const reason = observation.kind === 'failed' ? observation.reason : 'no addresses'
    // NODATA is normal for one of the families.
    if (this.#learned.hasName(key) || observation.kind === 'nodata' || reason === entry.fault)
      return
    entry.fault = reason
    for (const policy of entry.holders.keys()) {
      this.#parts.onFailure(policy, entry.text, reason)
    }
  }

  #tell(entry: Entry): void {
    for (const policy of entry.holders.keys()) this.#parts.onNews(policy)
  }

  #collect(): void {
    this.#removeExcess(this.#parts.clock.monotonic())
    const [first] = this.#partial
    if (first !== undefined) this.#resolver.hasten(first.wire)
    if (!this.#hasReleased) return
    this.#hasReleased = false
    for (const key of [...this.#learned.names()])
      if (!this.#entries.has(key)) this.#learned.take(key)
  }

  /** Removes what has ended, and what is above a limit. */
  #removeExcess(nowMs: number): void {
    const removals = this.#learned.collect(nowMs)
    this.evictions += removals.filter(({ ttlEndMs }) => ttlEndMs >= nowMs).length
    for (; this.#learned.size > ADDRESSES_MAX; this.evictions++) this.#learned.evict(nowMs)
  }
}

/** True if a server knows which addresses a name has, or that it does not exist. */
function saysAddresses(observation: Observation): boolean {
  return observation.kind !== 'failed' || observation.reason === NXDOMAIN
}

/**
 * The longest time between two lookups of a name. An address must be seen again before its grant
 * ends, with time for lookups that fail.
 */
function longestWaitMs({ nextSyncMs, ipExpirationMs }: FqdnSettings): number {
  return Math.min(nextSyncMs + AFTER_TTL_MS, (ipExpirationMs * 3) / 4)
}
