import { assert } from '../../base/assert.ts'
import { DueHeap } from '../../base/due-heap.ts'
import { printName } from '../../dns/name/name.ts'
import type { AddressFamily } from '../../dns/text/address.ts'
import { type AddressFact, mergeAddress } from './facts.ts'
import type { Observation } from './observation.ts'

interface NameLimits {
  readonly addressesPerName: number
  /** Addresses of all names. */
  readonly addresses: number
}

/** NPEP-133 asks for 100 addresses per name and more. */
export const NAME_LIMITS_DEFAULT: NameLimits = { addressesPerName: 1000, addresses: 100_000 }

/** One address of one name. */
interface Held {
  readonly entry: Entry
  fact: AddressFact
}

interface Entry {
  readonly name: string
  readonly wire: Uint8Array
  readonly held: Map<string, Held>
  /** Last answer that had addresses, by the family that was asked for. */
  readonly answeredMs: Record<AddressFamily, number>
  /** Last failure; 0 = none since the last answer. */
  readonly failedMs: Record<AddressFamily, number>
}

/**
 * The addresses of names. At a limit, the address whose TTL ends first is evicted. Addresses stay
 * after the end of their TTL, because policies grant them for longer, until `collect` removes them.
 */
export class NameStore {
  readonly #limits: NameLimits
  readonly #entries = new Map<string, Entry>()
  /** All addresses by the end of their TTL. */
  readonly #ends = new DueHeap<Held>()
  /** Addresses that were evicted at a limit. */
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

  /** Returns the addresses of a name in text form: lower case, with the final dot. */
  *factsOf(name: string): Generator<AddressFact> {
    for (const { fact } of this.#entries.get(name)?.held.values() ?? []) yield fact
  }

  has(name: string, address: string): boolean {
    return this.#entries.get(name)?.held.has(address) === true
  }

  /** True if the store has any address of the name. */
  hasName(name: string): boolean {
    return this.#entries.has(name)
  }

  /** Adds an observation. An answer without addresses changes nothing. Failures count only for names with addresses. */
  observe(observation: Observation): void {
    if (observation.kind === 'nodata') return
    const { family, atMs } = observation
    const name = printName(observation.name)
    const known = this.#entries.get(name)
    if (observation.kind === 'failed') {
      if (known === undefined || atMs <= known.answeredMs[family]) return
      known.failedMs[family] = Math.max(known.failedMs[family], atMs)
      return
    }
    const entry = known ?? this.#add(name, observation.name)
    entry.answeredMs[family] = Math.max(entry.answeredMs[family], atMs)
    if (entry.failedMs[family] <= entry.answeredMs[family]) entry.failedMs[family] = 0
    for (const fact of observation.facts) {
      const held = entry.held.get(fact.address) ?? { entry, fact }
      held.fact = mergeAddress(held.fact, fact)
      entry.held.set(fact.address, held)
      this.#ends.put(held, held.fact.endMs)
    }
    while (entry.held.size > this.#limits.addressesPerName) this.#evict(firstToEnd(entry))
    while (this.#ends.size > this.#limits.addresses) this.#evict(this.#ends.first()!)
  }

  /** Drops the names that are not wanted. `isWanted` gets the lower-case wire form of a name. */
  retain(isWanted: (wire: Uint8Array) => boolean): void {
    for (const entry of this.#entries.values()) {
      if (isWanted(entry.wire)) continue
      for (const held of entry.held.values()) this.#ends.remove(held)
      this.#entries.delete(entry.name)
    }
  }

  /**
   * Drops the addresses whose TTL ended more than `graceMs` ago, and whose name did not fail in this
   * time. `graceMs`: the longest time that a policy grants an address after the end of its TTL.
   */
  collect(nowMs: number, graceMs: number): void {
    for (;;) {
      const held = this.#ends.first()
      if (held === undefined || this.#ends.firstMs + graceMs >= nowMs) return
      const failedMs = held.entry.failedMs[held.fact.family]
      if (failedMs > this.#ends.firstMs) this.#ends.put(held, failedMs)
      else this.#remove(held)
    }
  }

  #add(name: string, wire: Uint8Array): Entry {
    const answeredMs = { 1: Number.NEGATIVE_INFINITY, 2: Number.NEGATIVE_INFINITY }
    const entry: Entry = { name, wire, held: new Map(), answeredMs, failedMs: { 1: 0, 2: 0 } }
    this.#entries.set(name, entry)
    return entry
  }

  #evict(held: Held): void {
    this.evictions++
    this.#remove(held)
  }

  #remove(held: Held): void {
    const { entry, fact } = held
    const isHeld = this.#ends.remove(held) && entry.held.delete(fact.address)
    assert(isHeld, 'an address is in the heap while its name has it')
    if (entry.held.size === 0) this.#entries.delete(entry.name)
  }
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
