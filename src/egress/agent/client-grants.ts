import { assert } from '../../base/assert.ts'
import { runWhole } from '../../base/slices.ts'
import type { NameBuffer } from '../../dns/name/hashed-name.ts'
import { type AddressFamily, printAddress, scanAddress } from '../../dns/text/address.ts'
import type { Acknowledgement } from '../gate.ts'
import type { AddressRules } from '../learned/address-rules.ts'
import {
  type Answer,
  type DatedAnswer,
  type EndedAddress,
  type Learned,
  LearnedTable,
  ttlRule,
} from '../learned/learned-table.ts'
import type { Connection, MatchedName } from '../rules/connection.ts'
import type { AddressPair, Allowance, Enforcer } from '../sinks/enforcer.ts'
import type { AgentLimits } from './agent-limits.ts'
import type { Client } from './client.ts'
import type { RuleProfile } from './rule-profiles.ts'

/** Names of one address. More would make each decision about it slow. */
const NAMES_PER_ADDRESS = 256
/** Zombies above their limit that start a collection: each reads all of them. */
const ZOMBIES_EXCESS = 1.1
const SPARE_ZOMBIES = 100
/** Maximum of removed names whose rules are kept. */
const OLD_MATCHES_MAX = 1000

const TOO_MANY: Acknowledgement = Promise.resolve('too many new addresses in a short time')
const SECOND_MS = 1000

export interface ClientGrantsParts {
  readonly limits: AgentLimits
  readonly enforcer: Enforcer
  /** Holds the name that the rules read. */
  readonly name: NameBuffer
  /** True: `mayContinue` is asked about open connections. */
  readonly cutsConnections: boolean
  /** Called when an address of a name is dropped at a limit. */
  readonly onEviction: () => void
  readonly rules: AddressRules
}

/**
 * What one client learned, and what this allows. Whatever changes, the enforcer gets the allowances
 * of the addresses concerned. Names are keys, as `nameKey` returns them:
 *
 *     answer ─▶ cache ── end of the TTL ─▶ zombie        allowances of an address: its rules × its names
 *       └─▶ unselected: names that no rule selects, until a change of the rules does
 */
export class ClientGrants {
  client: Client
  profile: RuleProfile
  /** Of names that rules select, with their zombies. */
  readonly cache: LearnedTable
  /** Answers with names that no rule selects. They take no room in `cache`. */
  readonly #unselected: LearnedTable
  /** Addresses that the total of all clients has of this one. */
  counted = 0
  readonly #limits: AgentLimits
  readonly #enforcer: Enforcer
  readonly #name: NameBuffer
  readonly #cutsConnections: boolean
  readonly #onEviction: () => void
  readonly #rules: AddressRules
  /** Number of changes of the rules, and of those that are applied to all that is granted. */
  #changes = 0
  #appliedChanges = 0
  #isGone = false
  /** New addresses that it may still learn, at a time. */
  #newLeft = Number.POSITIVE_INFINITY
  #newAtMs = Number.NEGATIVE_INFINITY
  /** The rules that select each name: an address is decided again with each of its names. */
  readonly #matches = new Map<string, readonly number[]>()
  /** What the enforcer has, by address. */
  readonly #granted = new Map<string, readonly Allowance[]>()
  /** True: an address may have more names than the cache has yet. */
  #isRestoring = false

  constructor(client: Client, profile: RuleProfile, parts: ClientGrantsParts) {
    this.client = client
    this.profile = profile
    this.#limits = parts.limits
    this.#enforcer = parts.enforcer
    this.#name = parts.name
    this.#cutsConnections = parts.cutsConnections
    this.#onEviction = parts.onEviction
    this.#rules = parts.rules
    const { minTtlSeconds, addressesPerName } = parts.limits
    const rules = { endOf: ttlRule(minTtlSeconds), addressesPerName }
    this.cache = new LearnedTable({ ...rules, zombies: parts.limits })
    this.#unselected = new LearnedTable(rules)
  }

  /** Addresses that names allow. */
  get grantCount(): number {
    return this.#granted.size
  }

  /** Addresses of all names, and zombies. */
  get size(): number {
    return this.cache.size + this.#unselected.size + this.cache.zombieCount
  }

  /** Also names that no rule selects. */
  get nameCount(): number {
    return this.cache.nameCount + this.#unselected.nameCount
  }

  /** Addresses of these names; one of names of both sorts counts twice. */
  get addressCount(): number {
    return this.cache.addressCount + this.#unselected.addressCount
  }

  /** All answers, also those with names that no rule selects, then the zombies. */
  *learned(): Generator<Learned> {
    yield* this.cache.answers()
    yield* this.#unselected.answers()
    yield* this.cache.zombies()
  }

  /** What names allow for an address; empty = nothing. */
  allowancesOf(address: string): readonly Allowance[] {
    return this.#granted.get(address) ?? []
  }

  /** The texts of the selectors of its rules that select a name. */
  selectorsOf(name: string): readonly string[] {
    this.#name.setKey(name)
    return this.profile.compiled.selectorsOf(this.#name).map(({ text }) => text)
  }

  /** Adds an answer. Returns the waits for all its addresses that are not in force yet. */
  learn(answer: Answer, nowMs: number): readonly Acknowledgement[] {
    const { name, addresses } = answer
    if (this.#rulesOf(name).length === 0) {
      this.#setAside(this.cache.dated(answer))
      return []
    }
    if (!this.#takeNew(answer, nowMs)) return [TOO_MANY]
    this.#makeRoom(answer, nowMs)
    const { added, extended } = this.cache.add(answer)
    const changed = new Set([...added, ...extended])
    const isStale = this.#appliedChanges < this.#changes
    const waits: Acknowledgement[] = []
    for (const address of addresses) {
      const isChanged = isStale || changed.has(address)
      const wait = isChanged ? this.#refresh(address, nowMs) : this.#check(address)
      if (wait !== undefined) waits.push(wait)
    }
    return waits
  }

  /**
   * Adds what an earlier process had, except addresses that may not be allowed any more. Decides at once what that
   * changes for addresses that the client has got meanwhile, and `refreshAll` decides the rest. It may pause.
   */
  *restore(learned: Iterable<Learned>, nowMs: number): Generator<void, void> {
    // The enforcer may have them too.
    const note = (address: string): void => {
      if (!this.#granted.has(address)) this.#granted.set(address, [])
    }
    this.#isRestoring = true
    this.#changes++
    for (const one of learned) {
      if ('address' in one) {
        note(one.address)
        if (!this.#isDenied(one.address)) this.cache.putZombie(one)
      } else {
        one.addresses.forEach(note)
        this.#put(this.#withoutDenied(one), nowMs)
      }
      yield
    }
    this.#isRestoring = false
    for (const [address, allowances] of [...this.#granted]) {
      if (allowances.length > 0) void this.#refresh(address, nowMs)
    }
  }

  /**
   * Adds answers that the client got from a process beside this one, as far as there is room. Zombies stay with each
   * process. Returns true if `refreshAll` must follow.
   */
  merge(learned: Iterable<Learned>, nowMs: number): boolean {
    let isChanged = false
    for (const found of learned) {
      if ('address' in found) continue
      const answer = this.#withoutDenied(found)
      const size = this.cache.size + answer.addresses.length
      if (answer.endMs < nowMs || size > this.#limits.addressesPerClient) continue
      if (this.#put(answer, nowMs)) isChanged = true
    }
    if (isChanged) this.#changes++
    return isChanged
  }

  /** Sets the client, whose rules or addresses may have changed. Returns true if `refreshAll` must follow. */
  update(client: Client, profile: RuleProfile): boolean {
    const isMoved = this.client.addresses.join() !== client.addresses.join()
    if (isMoved) this.#withdrawAll()
    const isChanged = isMoved || this.profile !== profile
    if (this.profile !== profile) this.#matches.clear()
    this.client = client
    this.profile = profile
    if (isChanged) this.#changes++
    return isChanged
  }

  /** The client is gone: from now on, nothing is allowed. The enforcer removes what it has. */
  close(): void {
    this.#isGone = true
  }

  /** Computes all allowances again, and may pause after each. Returns the waits. */
  *refreshAll(nowMs: number): Generator<void, readonly Acknowledgement[]> {
    const waits: Acknowledgement[] = []
    const changes = this.#changes
    yield* this.#sortNames(nowMs)
    for (const address of this.#known()) {
      const wait = this.#refresh(address, nowMs)
      if (wait !== undefined) waits.push(wait)
      yield
    }
    this.#appliedChanges = changes
    return waits
  }

  /**
   * Decides whether the rules allow a connection that is open already. A name counts for as long as
   * connections to its address are open, also for rules that end with the TTL.
   */
  mayContinue(connection: Connection): boolean {
    const { bytes, family } = connection.address
    const address = printAddress(bytes, family)
    const places = new Set<number>()
    for (const { name } of this.cache.namesAt(address)) {
      for (const place of this.#rulesOf(name)) places.add(place)
    }
    return this.profile.compiled.accepts(connection, places)
  }

  /**
   * Removes what matters least: the oldest name that no rule selects, otherwise the oldest zombie, otherwise the
   * address that ends first.
   */
  evict(nowMs: number): void {
    if (this.#dropUnselected()) return
    const zombie = this.cache.evictZombie()
    if (zombie === undefined) this.#drop(this.cache.evict(nowMs), nowMs, false)
    else {
      this.#onEviction()
      void this.#refresh(zombie, nowMs)
    }
  }

  /** Makes zombies of what has ended, or removes it. Returns how many addresses of names. It may pause. */
  *retire(nowMs: number): Generator<void, number> {
    this.#unselected.collect(nowMs)
    const removals = this.cache.collect(nowMs)
    for (const removal of removals) {
      this.#retire(removal)
      yield
    }
    for (const address of new Set(removals.map((removal) => removal.address))) {
      void this.#refresh(address, nowMs)
      yield
    }
    return removals.length
  }

  /**
   * Extends the zombies that may have open connections, and removes the others. Returns how many above a limit
   * may have had some. It may pause.
   */
  *collectZombies(nowMs: number): Generator<void, number> {
    const { dead, extended, evictions } = this.cache.collectZombies(nowMs)
    for (const address of [...dead, ...extended]) {
      void this.#refresh(address, nowMs)
      yield
    }
    return evictions
  }

  /** Forgets names at once. Returns the addresses that some of them had. */
  forget(isSelected: (name: string) => boolean, nowMs: number): ReadonlySet<string> {
    const caches = [this.cache, this.#unselected]
    const touched = new Set(caches.flatMap((cache) => [...cache.forget(isSelected)]))
    for (const address of touched) void this.#refresh(address, nowMs)
    return touched
  }

  /** Adds an answer of an earlier time. Returns true if it changes what names allow. */
  #put(answer: DatedAnswer, nowMs: number): boolean {
    if (this.#rulesOf(answer.name).length === 0) {
      this.#setAside(answer)
      return false
    }
    this.#makeRoom(answer, nowMs)
    const { added, extended } = this.cache.put(answer)
    return added.length > 0 || extended.length > 0
  }

  /** Keeps an answer whose name no rule selects. The names that came first make room for it. */
  #setAside(answer: DatedAnswer): void {
    const most = this.#limits.unselectedAddresses
    this.#unselected.put({ ...answer, addresses: answer.addresses.slice(0, most) })
    while (this.#unselected.size > most) this.#dropUnselected()
  }

  /** Removes the oldest name that no rule selects. Returns false if no name is left to remove. */
  #dropUnselected(): boolean {
    for (const name of this.#unselected.names()) return this.#unselected.take(name).length > 0
    return false
  }

  /** Moves names that a change of the rules selects, or no longer selects. It may pause. */
  *#sortNames(nowMs: number): Generator<void> {
    const [selected, others] = [[...this.cache.names()], [...this.#unselected.names()]]
    for (const name of selected) {
      if (this.#rulesOf(name).length > 0) continue
      for (const answer of this.cache.take(name)) this.#setAside(answer)
      yield
    }
    for (const name of others) {
      if (this.#rulesOf(name).length === 0) continue
      for (const answer of this.#unselected.take(name)) this.#put(answer, nowMs)
      yield
    }
  }

  /** True for addresses that no name may allow. */
  #isDenied(address: string): boolean {
    return this.#rules.denialOf(address) !== undefined
  }

  #withoutDenied(answer: DatedAnswer): DatedAnswer {
    const addresses = answer.addresses.filter((address) => !this.#isDenied(address))
    return { ...answer, addresses }
  }

  #withdrawAll(): void {
    for (const address of this.#granted.keys()) {
      const pair = this.#pairOf(address)
      if (pair !== undefined) void this.#enforcer.allow(pair, [])
    }
    this.#granted.clear()
  }

  #known(): ReadonlySet<string> {
    const known = this.cache.addresses()
    for (const address of this.#granted.keys()) known.add(address)
    return known
  }

  /**
   * Takes the new addresses of an answer from the budget; false = there are too many. While one client makes
   * thousands of elements with each query, those of others would wait.
   */
  #takeNew({ name, addresses }: Answer, nowMs: number): boolean {
    const { newAddresses, newAddressesPerSecond } = this.#limits
    const earned = ((nowMs - this.#newAtMs) / SECOND_MS) * newAddressesPerSecond
    this.#newLeft = Math.min(newAddresses, this.#newLeft + earned)
    this.#newAtMs = nowMs
    let count = 0
    for (const address of addresses) if (this.cache.endOf(name, address) === undefined) count++
    if (count > this.#newLeft) return false
    this.#newLeft -= count
    return true
  }

  /** Removes what ends first until the answer is within the limits, so that it stays itself. */
  #makeRoom({ name, addresses }: Answer, nowMs: number): void {
    const added = addresses.filter((address) => this.cache.endOf(name, address) === undefined)
    for (const address of added) {
      this.#drop(this.cache.evictName(address, NAMES_PER_ADDRESS - 1, nowMs), nowMs)
    }
    const most = this.#limits.addressesPerClient - added.length
    while (this.cache.size > Math.max(0, most)) this.#drop(this.cache.evict(nowMs), nowMs)
    // So that a client with many names has few more zombies until the next collection.
    if (this.cache.zombieCount > ZOMBIES_EXCESS * this.#limits.most + SPARE_ZOMBIES)
      runWhole(this.collectZombies(nowMs))
  }

  #drop(removal: EndedAddress | undefined, nowMs: number, mayLive = true): void {
    if (removal === undefined) return
    this.#onEviction()
    if (mayLive) this.#retire(removal)
    void this.#refresh(removal.address, nowMs)
  }

  /** A zombie is of use only for rules that last as long as connections, and for `mayContinue`. */
  #retire(removal: EndedAddress): void {
    const isUsed = this.profile.usesConnections || this.#cutsConnections
    if (!isUsed || this.#limits.most === 0) return
    if (this.#rulesOf(removal.name).length > 0) this.cache.retire(removal)
  }

  /** Hands over what an address is allowed now. */
  #refresh(address: string, nowMs: number): Acknowledgement | undefined {
    if (this.#isGone) return undefined
    const parsed = scanAddress(address)
    assert(parsed !== undefined, 'answers have valid addresses')
    const names = this.#namesOf(address)
    const allowances = this.profile.compiled.allowancesOf(parsed, names, nowMs)
    const mustStay = this.#isRestoring || !this.#granted.has(address)
    if (allowances.length === 0 && mustStay) return undefined
    const pair = this.#pairOf(address)
    // A client without an address of this family cannot connect.
    if (pair === undefined) return undefined
    if (allowances.length === 0) this.#granted.delete(address)
    else this.#granted.set(address, allowances)
    return this.#enforcer.allow(pair, allowances)
  }

  /** Returns the wait for an address whose allowances have not changed. */
  #check(address: string): Acknowledgement | undefined {
    const allowances = this.#granted.get(address)
    const pair = this.#pairOf(address)
    if (allowances === undefined || pair === undefined) return undefined
    return this.#enforcer.allow(pair, allowances)
  }

  #pairOf(address: string): AddressPair | undefined {
    const family = familyOf(address)
    const client = this.client.addresses.find((own) => familyOf(own) === family)
    return client === undefined ? undefined : { client, address }
  }

  /** The names of an address that rules select. */
  #namesOf(address: string): readonly MatchedName[] {
    const { usesConnections } = this.profile
    const names: MatchedName[] = []
    for (const { name, endMs, isZombie } of this.cache.namesAt(address)) {
      const rules = this.#rulesOf(name)
      if (rules.length === 0) continue
      if (!isZombie) names.push({ rules, endMs, isZombie })
      if (!usesConnections) continue
      // Its end makes it a zombie: without this, there would be a gap until the next collection.
      const keptMs = isZombie ? endMs : endMs + this.#limits.keepMs
      names.push({ rules, endMs: keptMs, isZombie: true })
    }
    return names
  }

  #rulesOf(name: string): readonly number[] {
    const known = this.#matches.get(name)
    if (known !== undefined) return known
    if (this.#matches.size > 2 * this.cache.nameCount + OLD_MATCHES_MAX) this.#matches.clear()
    this.#name.setKey(name)
    const rules = this.profile.compiled.rulesOf(this.#name)
    this.#matches.set(name, rules)
    return rules
  }
}

function familyOf(address: string): AddressFamily {
  return address.includes(':') ? 2 : 1
}
