import { assert } from '../../base/assert.ts'
import { DueHeap } from '../../base/due-heap.ts'
import { printName } from '../../dns/name/name.ts'
import {
  type AddressFact,
  countFailure,
  mergeAddress,
  mergeOutcomes,
  type NameFacts,
  NO_OUTCOME,
  type Outcomes,
} from './facts.ts'
import type { Observation } from './observation.ts'

export interface NameLimits {
  readonly addressesPerName: number
  /** Names that one wildcard holds. */
  readonly namesPerWildcard: number
  /** Addresses of all names. */
  readonly addresses: number
}

/** NPEP-133 asks for 100 addresses per name and more, Antrea has 1024 names per wildcard. */
export const NAME_LIMITS_DEFAULT: NameLimits = {
  addressesPerName: 1000,
  namesPerWildcard: 1024,
  addresses: 100_000,
}

/** One address of one name. */
interface Held {
  readonly entry: Entry
  fact: AddressFact
}

interface Entry {
  readonly name: string
  readonly wire: Uint8Array
  readonly held: Map<string, Held>
  outcomes: Outcomes
  /** Keys of the selectors that select the name. */
  readonly holders: Set<string>
}

/**
 * The addresses of the names that policies select. Each name is *held* by the selectors that select
 * it, and is dropped with its last holder or its last address. At a limit, the address or name that
 * ends first is evicted. Nothing is dropped only because its TTL has ended: the readers' validity
 * rules differ, and `collect` gets the longest of them.
 */
export class NameStore {
  readonly #limits: NameLimits
  readonly #entries = new Map<string, Entry>()
  /** All addresses by the end of their TTL. */
  readonly #ends = new DueHeap<Held>()
  /** Names of each holder, by the end of their last address. */
  readonly #holders = new Map<string, DueHeap<Entry>>()
  #changed = new Set<string>()
  /** Addresses that were evicted at a limit, from the store or from one selector. */
  evictions = 0

  constructor(limits: NameLimits) {
    this.#limits = limits
  }

  get nameCount(): number {
    return this.#entries.size
  }

  get addressCount(): number {
    return this.#ends.size
  }

  /** Returns the facts about a name in text form: lower case, with the final dot. */
  get(name: string): NameFacts | undefined {
    const entry = this.#entries.get(name)
    return entry === undefined ? undefined : factsOf(entry)
  }

  /** The names that a selector holds. */
  *namesOf(holder: string): Generator<NameFacts> {
    for (const entry of this.#holders.get(holder)?.keys() ?? []) yield factsOf(entry)
  }

  /** All names. */
  *all(): Generator<NameFacts> {
    for (const entry of this.#entries.values()) yield factsOf(entry)
  }

  /** Returns the selectors whose names or addresses changed since the last call. */
  takeChanged(): ReadonlySet<string> {
    const changed = this.#changed
    this.#changed = new Set()
    return changed
  }

  /**
   * Adds an observation of a name that these selectors select. A name that none selects is not stored. An
   * answer without addresses changes nothing. Failures count only for names with addresses.
   */
  observe(observation: Observation, holders: readonly string[]): void {
    if (observation.kind === 'nodata') return
    const { family, atMs } = observation
    const name = printName(observation.name)
    const known = this.#entries.get(name)
    if (observation.kind === 'failed') {
      if (known === undefined) return
      const outcome = countFailure(known.outcomes[family], atMs, observation.reason)
      known.outcomes = { ...known.outcomes, [family]: outcome }
      this.#noteChange(known)
      return
    }
    const answered = { answeredMs: atMs, failures: undefined }
    const outcomes = { 1: NO_OUTCOME, 2: NO_OUTCOME, [family]: answered }
    const entry = known ?? this.#add(name, observation.name)
    this.#merge(entry, observation.facts, outcomes)
    this.#hold(entry, holders)
    if (entry.holders.size === 0) this.#drop(entry)
  }

  /**
   * Merges facts of another process or an earlier time. A new name has no holder, so that the next
   * `rehold` decides about it.
   */
  merge(facts: NameFacts, wire: Uint8Array): void {
    const entry = this.#entries.get(facts.name) ?? this.#add(facts.name, wire)
    this.#merge(entry, facts.addresses.values(), facts.outcomes)
    this.#dropIfEmpty(entry)
  }

  /**
   * Finds the holders of all names again, because selectors changed or facts were merged.
   * `holdersOf` gets the lower-case wire form of a name. Drops names without holders.
   */
  rehold(holdersOf: (wire: Uint8Array) => readonly string[]): void {
    for (const entry of [...this.#entries.values()]) {
      // Another name may have evicted it since.
      if (!this.#entries.has(entry.name)) continue
      const holders = holdersOf(entry.wire)
      for (const holder of [...entry.holders]) {
        if (!holders.includes(holder)) this.#release(entry, holder)
      }
      if (holders.length === 0) this.#drop(entry)
      else this.#hold(entry, holders)
    }
  }

  /**
   * Drops the addresses whose TTL ended more than `graceMs` ago, and whose name did not fail in this
   * time. `graceMs`: the longest time that any reader grants after the end of a TTL.
   */
  collect(nowMs: number, graceMs: number): void {
    for (;;) {
      const held = this.#ends.first()
      if (held === undefined || this.#ends.firstMs + graceMs >= nowMs) return
      const failedMs = held.entry.outcomes[held.fact.family].failures?.lastMs ?? 0
      if (failedMs > this.#ends.firstMs) this.#ends.put(held, failedMs)
      else this.#remove(held)
    }
  }

  #add(name: string, wire: Uint8Array): Entry {
    const outcomes = { 1: NO_OUTCOME, 2: NO_OUTCOME }
    const entry: Entry = { name, wire, held: new Map(), outcomes, holders: new Set() }
    this.#entries.set(name, entry)
    return entry
  }

  #merge(entry: Entry, facts: Iterable<AddressFact>, outcomes: Outcomes): void {
    entry.outcomes = {
      1: mergeOutcomes(entry.outcomes[1], outcomes[1]),
      2: mergeOutcomes(entry.outcomes[2], outcomes[2]),
    }
    for (const fact of facts) {
      const held = entry.held.get(fact.address)
      const next = held === undefined ? { entry, fact } : held
      if (held !== undefined) held.fact = mergeAddress(held.fact, fact)
      else entry.held.set(fact.address, next)
      this.#ends.put(next, next.fact.endMs)
    }
    this.#noteChange(entry)
    while (entry.held.size > this.#limits.addressesPerName) this.#evict(firstToEnd(entry))
    while (this.#ends.size > this.#limits.addresses) this.#evict(this.#ends.first()!)
    for (const holder of entry.holders) this.#holders.get(holder)?.put(entry, endOf(entry))
  }

  #hold(entry: Entry, holders: readonly string[]): void {
    // The limits may have left nothing of it.
    if (entry.held.size === 0) return
    const added = holders.filter((holder) => !entry.holders.has(holder))
    for (const holder of added) {
      entry.holders.add(holder)
      this.#changed.add(holder)
      const names = this.#holders.get(holder) ?? new DueHeap()
      this.#holders.set(holder, names)
      names.put(entry, endOf(entry))
    }
    for (const holder of added) this.#trim(holder)
  }

  /** Takes the name that ends first from a selector above its limit. */
  #trim(holder: string): void {
    const names = this.#holders.get(holder)
    if (names === undefined || names.size <= this.#limits.namesPerWildcard) return
    const first = names.first()!
    this.evictions += first.held.size
    this.#release(first, holder)
    if (first.holders.size === 0) this.#drop(first)
  }

  #release(entry: Entry, holder: string): void {
    entry.holders.delete(holder)
    this.#changed.add(holder)
    const names = this.#holders.get(holder)
    names?.remove(entry)
    if (names?.size === 0) this.#holders.delete(holder)
  }

  #evict(held: Held): void {
    this.evictions++
    this.#remove(held)
  }

  #remove(held: Held): void {
    const { entry, fact } = held
    const isHeld = this.#ends.remove(held) && entry.held.delete(fact.address)
    assert(isHeld, 'an address is in the heap while its name has it')
    this.#noteChange(entry)
    this.#dropIfEmpty(entry)
  }

  #dropIfEmpty(entry: Entry): void {
    if (entry.held.size === 0) this.#drop(entry)
  }

  #drop(entry: Entry): void {
    for (const holder of [...entry.holders]) this.#release(entry, holder)
    for (const held of entry.held.values()) this.#ends.remove(held)
    this.#entries.delete(entry.name)
  }

  #noteChange({ holders }: Entry): void {
    for (const holder of holders) this.#changed.add(holder)
  }
}

function factsOf({ name, held, outcomes }: Entry): NameFacts {
  const addresses = new Map<string, AddressFact>()
  for (const [address, { fact }] of held) addresses.set(address, fact)
  return { name, addresses, outcomes }
}

/** The end of the address that ends last. */
function endOf({ held }: Entry): number {
  let endMs = Number.NEGATIVE_INFINITY
  for (const { fact } of held.values()) endMs = Math.max(endMs, fact.endMs)
  return endMs
}

/** The address to evict. Addresses with the same end are ordered, so that all replicas evict the same one. */
function firstToEnd({ held }: Entry): Held {
  let first: Held | undefined
  for (const next of held.values()) {
    if (first === undefined || endsBefore(next.fact, first.fact)) first = next
  }
  assert(first !== undefined, 'a name over its limit has addresses')
  return first
}

function endsBefore(a: AddressFact, b: AddressFact): boolean {
  return a.endMs < b.endMs || (a.endMs === b.endMs && a.address < b.address)
}
