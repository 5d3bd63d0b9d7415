import type { Clock } from '../../base/clock.ts'
import { printLatin1 } from '../../base/latin1.ts'
import { StateFile } from '../../base/persist/state-file.ts'
import { runInSlices } from '../../base/slices.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { Observation } from '../../client/resolver/observation.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { Cidr } from '../../dns/text/address.ts'
import { type Acknowledgement, firstFault, Gate, type GateResult } from '../gate.ts'
import type { AddressRules } from '../learned/address-rules.ts'
import type { Enforcer } from '../sinks/enforcer.ts'
import { agentState, type ClientState, printState } from './agent-file.ts'
import type { AgentLimits } from './agent-limits.ts'
import type { Client } from './client.ts'
import { ClientCollector } from './client-collector.ts'
import type { ClientGrants } from './client-grants.ts'
import { ClientSet } from './client-set.ts'
import { withoutSharedAddresses } from './client-table.ts'
import { ConnectionCutter } from './connection-cutter.ts'
import type { Connections } from './connections.ts'
import { type AgentCounts, type Decision, EMPTY_COUNTS } from './decision.ts'
import type { EgressGate } from './egress-gate.ts'

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
  readonly #clients: ClientSet
  readonly #collector: ClientCollector
  readonly #guarded: Guarded
  readonly #file: StateFile<readonly ClientState[]> | undefined
  readonly #cutter: ConnectionCutter | undefined
  #restored: Promise<string> | undefined
  /** True: clients may have learned more from an earlier process, so the file is not written, and nothing collected. */
  #mustRestore: boolean
  /** False: the clients are those of an earlier process. */
  #isSynced = false
  /** True: a client that is new is one that no policy selected before. */
  #knowsClients = false
  #isClosed = false
  #stopTimer: () => void = () => {}
  readonly #listeners = new Set<() => void>()
  readonly counts: AgentCounts = { ...EMPTY_COUNTS }
  readonly gate: Gate

  constructor(parts: EgressAgentParts) {
    const { connections, limits: given } = parts
    const limits = connections === undefined ? { ...given, most: 0 } : given
    const onEviction = (): void => void this.counts.evictions++
    this.#parts = { ...parts, limits }
    this.#clients = new ClientSet({ ...this.#parts, onEviction })
    this.#collector = new ClientCollector({
      ...parts,
      clients: this.#clients,
      counts: this.counts,
      onRemoval: (grants) => this.#count(grants),
    })
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

  get file(): Pick<StateFile<unknown>, 'problems'> | undefined {
    return this.#file
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
    return this.#clients.profileCount
  }

  /** @hot */
  clientAt(bytes: Uint8Array, offset: number, family: number): Client | undefined {
    return this.#clients.at(bytes, offset, family)
  }

  clients(): readonly Client[] {
    return this.#clients.values().map(({ client }) => client)
  }

  onClients(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @hot */
  mayAsk({ id }: Client, protocol: 'udp' | 'tcp', name: HashedName): boolean {
    return this.#clients.mayAsk(id, protocol, name)
  }

  learn({ id }: Client, observed: Observation): Promise<GateResult> | undefined {
    const grants = this.#clients.find(id)
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
    const most = Math.max(0, limits.addresses - addresses.length)
    while (this.#clients.addressCount > most) {
      const largest = this.#clients.largest()
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
    if (!this.#isSynced || this.#collector.isCollecting || this.#mustRestore) return
    // Not awaited: it may take long.
    this.#cutter?.add([])
    await this.#collector.collect()
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
      const grants = this.#clients.find(id)
      if (grants === undefined) continue
      const refreshed = this.#refreshAll([grants])
      waits.push(refreshed)
      await refreshed
    }
    this.#noteChange()
    if (isLate && found !== undefined) {
      const rules = new Map(clients.map((client) => [client.id, client.rules]))
      this.#cutter?.add(this.#clients.changedSince(rules))
    }
    return firstFault(waits)
  }

  get #isFull(): boolean {
    return this.#clients.addressCount >= this.#parts.limits.addresses
  }

  *#restoreAll(states: Iterable<ClientState>): Generator<void, void> {
    for (const { client, learned } of states) {
      if (this.#isClosed) return
      const grants = this.#clients.find(client.id)
      if (grants === undefined) {
        this.#clients.noteFormer(client.id, learned)
      } else if (!this.#isFull) {
        yield* grants.restore(learned, this.#parts.clock.monotonic())
        this.#count(grants)
      }
      yield
    }
  }

  /**
   * Adds what clients learned from a process beside this one, such as the one that this one replaces: so the file
   * has all that both know, whichever writes last.
   */
  #merge(states: readonly ClientState[]): void {
    const nowMs = this.#parts.clock.monotonic()
    const merged: ClientGrants[] = []
    for (const { client, learned } of states) {
      const grants = this.#clients.find(client.id)
      if (grants === undefined || this.#isFull) continue
      if (grants.merge(learned, nowMs)) merged.push(grants)
      this.#clients.count(grants)
    }
    if (!this.#isClosed) void this.#refreshAll(merged)
  }

  /** `isComplete`: no other client is on this node. */
  #apply(clients: readonly Client[], isComplete: boolean): Promise<string> {
    const unique = withoutSharedAddresses(clients)
    const { added, changed } = this.#clients.replace(unique)
    const enforced = this.#parts.enforcer.setClients(unique, isComplete)
    this.#noteChange()
    for (const listener of this.#listeners) listener()
    const isKnown = added.filter(({ size }) => size > 0)
    const applied = firstFault([enforced, this.#refreshAll([...changed, ...isKnown])])
    const isNew = this.#knowsClients ? added : []
    void applied.then(() => this.#cutter?.add([...changed, ...isNew]))
    return applied
  }

  #createCutter(): ConnectionCutter | undefined {
    const { connections, cutsConnections, enforcer, rules, log } = this.#parts
    if (connections === undefined || !cutsConnections) return undefined
    return new ConnectionCutter({
      connections,
      rules,
      clientAt: (address) => this.#clients.findByAddress(address),
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
    if (this.#clients.count(grants)) this.#noteChange()
  }

  #noteChange(): void {
    if (!this.#mustRestore) this.#file?.noteChange()
  }

  #markAlive(client: string, address: string): void {
    this.#clients.findByAddress(client)?.cache.markAlive(address, this.#parts.clock.monotonic())
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
