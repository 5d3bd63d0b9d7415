import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import { printLatin1 } from '../../base/latin1.ts'
import { StateFile } from '../../base/persist/state-file.ts'
import { runInSlices, runWhole } from '../../base/slices.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import type { Cidr } from '../../dns/text/address.ts'
import { type Acknowledgement, firstFault, Gate, type GateResult } from '../gate.ts'
import type { AddressRules } from '../learned/address-rules.ts'
import type { Observation } from '../learned/observation.ts'
import type { Enforcer } from '../sinks/enforcer.ts'
import { agentState, type ClientState, printState } from './agent-file.ts'
import type { AgentLimits } from './agent-limits.ts'
import type { Client } from './client.ts'
import { ClientGrants } from './client-grants.ts'
import { ClientTable, withoutSharedAddresses } from './client-table.ts'
import { ConnectionCutter } from './connection-cutter.ts'
import type { Connections } from './connections.ts'
import { type AgentCounts, type Decision, EMPTY_COUNTS } from './decision.ts'
import type { EgressGate } from './egress-gate.ts'
import { FormerClients } from './former-clients.ts'
import { type RuleProfile, RuleProfiles } from './rule-profiles.ts'

const COLLECT_MS = 60_000
const SECOND_MS = 1000

export interface EgressAgentParts {
  readonly enforcer: Enforcer
  readonly rules: AddressRules
  /** Undefined = it is unknown which connections are open, so no name has an address after its TTL. */
  readonly connections: Connections | undefined
  readonly limits: AgentLimits
  /** Longest time that a reply waits. */
  readonly maxDelayMs: number
  /** True: open connections end when a change of the rules no longer allows them. */
  readonly cutsConnections: boolean
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Called after each answer that a client gets, once its wait has ended. */
  readonly onDecision?: (decision: Decision) => void
  /** Absolute path of the file that stores what clients learned over a restart; '' = none. */
  readonly statePath: string
}

/**
 * Joins the clients of this node, their rules and the answers that they get, and has the enforcer allow
 * what follows.
 *
 *     setClients ─▶ profiles (equal rules once) ─┐
 *     learn ─▶ address rules ─▶ cache of the client ─▶ allowances ─▶ enforcer ─▶ the reply leaves
 *     each minute: connections ─▶ zombies, cache ─▶ allowances that end or are extended; never new ones
 *
 * A client knows only its own answers: what one client looks up allows nothing to another.
 */
export class EgressAgent implements EgressGate {
  readonly #parts: EgressAgentParts
  readonly #profiles = new RuleProfiles()
  readonly #name = new NameBuffer()
  readonly #guarded: Guarded
  readonly #file: StateFile<readonly ClientState[]> | undefined
  readonly #cutter: ConnectionCutter | undefined
  readonly #former = new FormerClients()
  #clients = new Map<string, ClientGrants>()
  #byAddress = new Map<string, ClientGrants>()
  #table = new ClientTable([])
  /** Addresses of all names of all clients. */
  #addresses = 0
  #restored: Promise<string> | undefined
  /** True: clients may have learned more from an earlier process, so the file is not written, and nothing collected. */
  #mustRestore: boolean
  /** False: the clients are those of an earlier process. */
  #isSynced = false
  /** True: a client that is new is one that no policy selected before. */
  #knowsClients = false
  #isCollecting = false
  #isClosed = false
  /** Why the last dump of the connections was incomplete; '' = it was complete. */
  #dumpFault = ''
  /** Addresses removed at limits when this was logged last. */
  #loggedEvictions = 0
  #stopTimer: () => void = () => {}
  readonly #listeners = new Set<() => void>()
  readonly counts: AgentCounts = { ...EMPTY_COUNTS }
  readonly gate: Gate

  constructor(parts: EgressAgentParts) {
    const { connections, limits } = parts
    this.#parts = connections === undefined ? { ...parts, limits: { ...limits, most: 0 } } : parts
    this.gate = new Gate(parts, parts.maxDelayMs)
    this.#guarded = guarding(parts.log, 'Collecting addresses of clients')
    const { clock, timers, log, statePath: path } = parts
    const print = (): Iterable<string> => printState(this.#snapshot(), clock)
    const merge = (states: readonly ClientState[]): void => this.#merge(states)
    const file = { path, kind: agentState(clock), log, clock, timers, print, merge }
    this.#file = path === '' ? undefined : new StateFile(file)
    this.#mustRestore = path !== ''
    this.#cutter = this.#createCutter()
  }

  /**
   * Takes over what clients learned from an earlier process, from its file, and what the enforcer allows them because
   * of that. If `setClients` was not called yet, also takes over the clients until then. Queries may be answered
   * meanwhile. Resolves as `setClients`. The first call counts.
   */
  restore(): Promise<string> {
    this.#restored ??= this.#restore()
    return this.#restored
  }

  /** Begins to collect what has ended, once the clients are set. */
  start(): void {
    const { timers, connections } = this.#parts
    this.#stopTimer = timers.every(COLLECT_MS, () => void this.#guarded(() => this.collect()))
    connections?.watch(({ source, destination }) => this.#markAlive(source, destination))
  }

  /** Ends the collection, and writes the file. What is in force stays. */
  close(): void {
    this.#isClosed = true
    this.#stopTimer()
    if (!this.#mustRestore) this.#file?.close()
    this.#cutter?.close()
    this.#parts.connections?.close()
  }

  /** Names may not allow IPv4 addresses through this prefix of NAT64 that they may not allow at all. */
  addNat64(prefix: Cidr): void {
    this.#parts.rules.addNat64(prefix)
  }

  /** Each client with what it learned. */
  states(): Iterable<ClientGrants> {
    return this.#clients.values()
  }

  get clientCount(): number {
    return this.#clients.size
  }

  /** Sets of rules that differ. */
  get profileCount(): number {
    return this.#profiles.size
  }

  /** @hot */
  clientAt(bytes: Uint8Array, offset: number, family: number): Client | undefined {
    return this.#table.at(bytes, offset, family)
  }

  clients(): readonly Client[] {
    return [...this.#clients.values()].map(({ client }) => client)
  }

  onClients(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @hot */
  mayAsk({ id }: Client, protocol: 'udp' | 'tcp', name: HashedName): boolean {
    const grants = this.#clients.get(id)
    return grants !== undefined && this.#profiles.mayAsk(grants.profile, protocol, name)
  }

  learn({ id }: Client, observed: Observation): Promise<GateResult> | undefined {
    const grants = this.#clients.get(id)
    // A client that is gone learns nothing.
    if (observed.kind !== 'answer' || grants === undefined) return undefined
    const { clock, limits, rules } = this.#parts
    const nowMs = clock.monotonic()
    // Its nameKey, because it is in lower case.
    const name = printLatin1(observed.name)
    const ttls = new Map<string, number>()
    const denied: string[] = []
    for (const { address, ttlSeconds } of observed.facts) {
      if (rules.denialOf(address) !== undefined) denied.push(address)
      else ttls.set(address, Math.max(ttlSeconds, ttls.get(address) ?? 0))
    }
    const addresses = [...ttls.keys()]
    this.counts.answers++
    this.counts.denied += denied.length
    while (this.#addresses > limits.addresses - addresses.length && this.#addresses > 0) {
      const largest = this.#largest()
      largest.evict(nowMs)
      this.#count(largest)
    }
    // All answers of a second end at the same time: most of them change nothing.
    const lookupMs = Math.ceil(nowMs / SECOND_MS) * SECOND_MS
    const waits: Acknowledgement[] = []
    for (const [ttlSeconds, own] of byTtl(ttls)) {
      waits.push(...grants.learn({ name, addresses: own, ttlSeconds, lookupMs }, nowMs))
    }
    this.#count(grants)
    const decide = this.#decider(grants, name, { name: observed.name, addresses, denied })
    if (waits.length > 0) return this.gate.hold(waits, decide)
    decide('acknowledged', 0)
    return undefined
  }

  /**
   * Replaces the clients of an earlier process, or of the last call. A client with the same id keeps what it
   * learned. Resolves with '' once everything is in force, otherwise with the reason why it is not.
   */
  setClients(clients: readonly Client[]): Promise<string> {
    this.#isSynced = true
    const enforced = this.#apply(clients, true)
    this.#knowsClients = true
    return enforced
  }

  /** Removes what has ended and has no open connections. */
  async collect(): Promise<void> {
    if (!this.#isSynced || this.#isCollecting || this.#mustRestore) return
    this.#isCollecting = true
    // Not awaited: it may take long.
    this.#cutter?.add([])
    try {
      const { clock } = this.#parts
      await runInSlices(this.#retireAll(), clock)
      // It must show which of the new zombies are connected, before some of them are removed at a limit.
      await this.#dumpConnections()
      await runInSlices(this.#collectZombies(), clock)
    } finally {
      this.#isCollecting = false
    }
  }

  /** Forgets names, by their keys, at once, and withdraws what they allowed. Returns how many addresses. */
  forget(isSelected: (name: string) => boolean): number {
    const nowMs = this.#parts.clock.monotonic()
    let count = 0
    for (const grants of this.#clients.values()) {
      count += grants.forget(isSelected, nowMs).size
      this.#count(grants)
    }
    return count
  }

  async #restore(): Promise<string> {
    const { clock, enforcer } = this.#parts
    const found = await this.#file?.openInSlices()
    const states = new Map(found?.map((state) => [state.client.id, state]))
    const clients = [...states.values()].map(({ client }) => client)
    const isLate = this.#isSynced
    const enforced = isLate ? '' : this.#apply(clients, false)
    if (!isLate) this.#knowsClients = found !== undefined
    await runInSlices(this.#restoreAll(states.values()), clock)
    if (this.#isClosed) return ''
    this.#mustRestore = false
    const waits = [enforced, enforcer.adopt()]
    await Promise.all(waits)
    // One after the other, so that replies wait for few elements of others.
    for (const id of states.keys()) {
      const grants = this.#clients.get(id)
      if (grants === undefined) continue
      const refreshed = this.#refreshAll([grants])
      waits.push(refreshed)
      await refreshed
    }
    this.#noteChange()
    if (isLate && found !== undefined) this.#cutter?.add(this.#changedSince(states))
    return firstFault(waits)
  }

  *#restoreAll(states: Iterable<ClientState>): Generator<void, void> {
    for (const { client, learned } of states) {
      if (this.#isClosed) return
      const grants = this.#clients.get(client.id)
      if (grants === undefined) {
        this.#former.note(client.id, [...learned])
      } else if (this.#addresses < this.#parts.limits.addresses) {
        yield* grants.restore(learned, this.#parts.clock.monotonic())
        this.#count(grants)
      }
      yield
    }
  }

  /** The clients that are new since an earlier process, or have other rules. */
  #changedSince(states: ReadonlyMap<string, ClientState>): readonly ClientGrants[] {
    return [...this.#clients.values()].filter(({ client, profile }) => {
      const before = states.get(client.id)?.client.rules
      return before === undefined || this.#profiles.textOf(before) !== profile.text
    })
  }

  /**
   * Adds what clients learned from a process beside this one, such as the one that this one replaces: so the file
   * has all that both know, whichever writes last.
   */
  #merge(states: readonly ClientState[]): void {
    const nowMs = this.#parts.clock.monotonic()
    const merged: ClientGrants[] = []
    for (const { client, learned } of states) {
      const grants = this.#clients.get(client.id)
      if (grants === undefined || this.#addresses >= this.#parts.limits.addresses) continue
      if (grants.merge(learned, nowMs)) merged.push(grants)
      this.#countOf(grants)
    }
    if (!this.#isClosed) void this.#refreshAll(merged)
  }

  /** `isComplete`: no other client is on this node. */
  #apply(clients: readonly Client[], isComplete: boolean): Promise<string> {
    const unique = withoutSharedAddresses(clients)
    const before = this.#clients
    const next = new Map<string, ClientGrants>()
    const changed: ClientGrants[] = []
    const added: ClientGrants[] = []
    for (const client of unique) {
      const profile = this.#profiles.of(client.rules)
      const known = before.get(client.id)
      const grants = known ?? this.#recreate(client, profile)
      next.set(client.id, grants)
      if (known === undefined) added.push(grants)
      else if (known.update(client, profile)) changed.push(known)
    }
    for (const [id, grants] of before) {
      if (next.has(id)) continue
      this.#addresses -= grants.counted
      this.#former.note(grants.client.id, [...grants.learned()])
      grants.close()
    }
    this.#clients = next
    this.#byAddress = new Map()
    for (const grants of next.values()) {
      for (const address of grants.client.addresses) this.#byAddress.set(address, grants)
    }
    this.#table = new ClientTable(unique)
    const isKnown = added.filter(({ size }) => size > 0)
    for (const grants of isKnown) this.#countOf(grants)
    this.#profiles.keep(new Set([...next.values()].map(({ profile }) => profile)))
    const enforced = this.#parts.enforcer.setClients(unique, isComplete)
    this.#noteChange()
    for (const listener of this.#listeners) listener()
    const applied = firstFault([enforced, this.#refreshAll([...changed, ...isKnown])])
    const isNew = this.#knowsClients ? added : []
    void applied.then(() => this.#cutter?.add([...changed, ...isNew]))
    return applied
  }

  #create(client: Client, profile: RuleProfile): ClientGrants {
    const onEviction = (): void => void this.counts.evictions++
    const parts = { ...this.#parts, name: this.#name, onEviction }
    return new ClientGrants(client, profile, parts)
  }

  /** A client that was one before has what it learned then. */
  #recreate(client: Client, profile: RuleProfile): ClientGrants {
    const grants = this.#create(client, profile)
    const learned = this.#former.take(client.id)
    if (learned === undefined) return grants
    runWhole(grants.restore(learned, this.#parts.clock.monotonic()))
    return grants
  }

  #createCutter(): ConnectionCutter | undefined {
    const { connections, cutsConnections, enforcer, rules, log } = this.#parts
    if (connections === undefined || !cutsConnections) return undefined
    return new ConnectionCutter({
      connections,
      rules,
      clientAt: (address) => this.#byAddress.get(address),
      enforced: async () => {
        // Names that are not restored yet may allow connections.
        if (this.#mustRestore && this.#restored === undefined) return 'names are not read yet'
        await this.#restored
        return enforcer.setClients(this.clients(), true)
      },
      log,
    })
  }

  /** Applies the rules to what clients learned before. Resolves as `setClients`. */
  async #refreshAll(clients: readonly ClientGrants[]): Promise<string> {
    const { clock } = this.#parts
    const waits: Acknowledgement[] = []
    const work = function* (): Generator<void, void> {
      for (const grants of clients) {
        for (const wait of yield* grants.refreshAll(clock.monotonic())) waits.push(wait)
      }
    }
    await runInSlices(work(), clock)
    return firstFault(waits)
  }

  *#retireAll(): Generator<void, void> {
    this.#former.collect(this.#parts.clock.monotonic())
    for (const grants of [...this.#clients.values()]) {
      this.counts.removals += yield* grants.retire(this.#parts.clock.monotonic())
      this.#count(grants)
      yield
    }
  }

  *#collectZombies(): Generator<void, void> {
    for (const grants of [...this.#clients.values()]) {
      this.counts.zombieEvictions += yield* grants.collectZombies(this.#parts.clock.monotonic())
      this.#count(grants)
      yield
    }
    const evictions = this.counts.evictions + this.counts.zombieEvictions
    const added = evictions - this.#loggedEvictions
    this.#loggedEvictions = evictions
    if (added > 0) this.#parts.log.warning(`addresses removed at a limit: ${added} in a minute`)
  }

  /** Returns what reports a decision. */
  #decider(
    grants: ClientGrants,
    name: string,
    learned: Pick<Decision, 'name' | 'addresses' | 'denied'>,
  ): (result: GateResult, waitMs: number) => void {
    const { onDecision } = this.#parts
    if (onDecision === undefined) return () => {}
    const { client } = grants
    const allowed = learned.addresses.filter((address) => grants.allowancesOf(address).length > 0)
    const selectors = grants.selectorsOf(name)
    return (result, waitMs) => {
      onDecision({ ...learned, client, allowed, selectors, result, waitMs })
    }
  }

  *#snapshot(): Generator<ClientState> {
    for (const grants of this.#clients.values()) {
      yield { client: grants.client, learned: grants.learned() }
    }
  }

  /** Notes a change of what a client learned. */
  #count(grants: ClientGrants): void {
    // What a client learned that is gone is not counted any more.
    if (this.#clients.get(grants.client.id) !== grants) return
    this.#countOf(grants)
    this.#noteChange()
  }

  #noteChange(): void {
    if (!this.#mustRestore) this.#file?.noteChange()
  }

  #countOf(grants: ClientGrants): void {
    this.#addresses += grants.size - grants.counted
    grants.counted = grants.size
  }

  /** The client with the most addresses: it is the one to lose some at the limit of all. */
  #largest(): ClientGrants {
    let largest: ClientGrants | undefined
    for (const grants of this.#clients.values()) {
      if (largest === undefined || grants.size > largest.size) largest = grants
    }
    assert(largest !== undefined, 'a client has the addresses')
    return largest
  }

  #markAlive(client: string, address: string, atMs = this.#parts.clock.monotonic()): void {
    this.#byAddress.get(client)?.cache.markAlive(address, atMs)
  }

  /** Only a complete dump shows that connections are closed. */
  async #dumpConnections(): Promise<void> {
    const { connections, clock, log } = this.#parts
    const hasZombies = [...this.#clients.values()].some(({ cache }) => cache.zombieCount > 0)
    if (connections === undefined || !hasZombies) return
    const startMs = clock.monotonic()
    const fault = await connections.dump(({ source, destination, isOpen }) => {
      if (isOpen) this.#markAlive(source, destination, startMs)
    })
    if (fault !== '' && this.#dumpFault === '') log.warning(`connections cannot be read: ${fault}`)
    if (fault === '' && this.#dumpFault !== '') log.info('connections can be read again')
    this.#dumpFault = fault
    if (fault !== '') {
      this.counts.failedDumps++
      return
    }
    this.counts.dumps++
    for (const { cache } of this.#clients.values()) cache.noteDump(startMs)
  }
}

/** Groups the addresses of an answer by their TTL. */
function byTtl(ttls: ReadonlyMap<string, number>): ReadonlyMap<number, readonly string[]> {
  const groups = new Map<number, string[]>()
  for (const [address, ttlSeconds] of ttls) {
    const group = groups.get(ttlSeconds)
    if (group === undefined) groups.set(ttlSeconds, [address])
    else group.push(address)
  }
  return groups
}
