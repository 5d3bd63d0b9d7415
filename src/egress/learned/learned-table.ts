import { DueHeap } from '../../base/due-heap.ts'
import {
  type Dumps,
  decideZombies,
  type Zombie,
  type ZombieDecision,
  type ZombieEntry,
  type ZombieLimits,
} from './zombies.ts'

/** One answer to a client. Times are monotonic milliseconds. */
export interface Answer {
  /** The key of the name of the question, as `nameKey` returns it. */
  readonly name: string
  /** In canonical form. */
  readonly addresses: readonly string[]
  readonly lookupMs: number
  /** As in the answer. */
  readonly ttlSeconds: number
}

/** An answer as the table keeps it. */
export interface DatedAnswer extends Answer {
  /** By the rule of the holder. The answer is valid at this time. */
  readonly endMs: number
}

/** What a holder learned. */
export type Learned = DatedAnswer | Zombie

/** What an answer changed. */
interface CacheChange {
  /** Addresses that the name did not have. */
  readonly added: readonly string[]
  /** Addresses that are valid for longer now. */
  readonly extended: readonly string[]
}

/** An address that a name has no more. */
export interface EndedAddress {
  readonly name: string
  readonly address: string
  /** When it was removed, or its end if that is later. */
  readonly endMs: number
  /** Its end by the rule of the holder. */
  readonly ttlEndMs: number
}

/** When the addresses of an answer end, in monotonic milliseconds: each language of policies has its own rule. */
type EndRule = (answer: Answer) => number

/** They end with the TTL, or with the minimum TTL if that is later. */
export function ttlRule(minTtlSeconds: number): EndRule {
  return ({ lookupMs, ttlSeconds }) => lookupMs + Math.max(ttlSeconds, minTtlSeconds) * 1000
}

interface TableRules {
  readonly endOf: EndRule
  /** Addresses of one name that a collection leaves; 0 = no limit. */
  readonly addressesPerName: number
  /** Of the addresses that are kept after their end; missing = none is. */
  readonly zombies?: ZombieLimits
}

/** An address, and when it ends, in monotonic milliseconds. */
export type AddressEnd = readonly [address: string, endMs: number]

/** A name that has an address. */
interface NameAt {
  readonly name: string
  /** When it ends, or until when the zombie is kept. It may have ended. */
  readonly endMs: number
  readonly isZombie: boolean
}

const NO_ZOMBIES: ZombieLimits = { most: 0, perName: 0, idleGraceMs: 0, keepMs: 0 }

/** Names of one zombie. More would make each decision about it slow. */
const ZOMBIE_NAMES_MAX = 256

/** One address of one name. */
interface Pair {
  readonly name: string
  readonly address: string
  answer: DatedAnswer
}

/**
 * The answers that one holder learned, such as a client: which names have which addresses, and until when. Of
 * several answers with one address of one name, the one that ends last counts, so their order does not matter.
 * Addresses that have ended stay until they are removed. After Cilium's DNSCache.
 *
 *     add ─▶ valid ── collect ─▶ removed, or retire ─▶ zombie ── collectZombies ─▶ removed
 *              ▲                                                     │
 *              └───────────────────── add ◀──────────────────────────┘
 */
export class LearnedTable {
  readonly #rules: TableRules
  readonly #byName = new Map<string, Map<string, Pair>>()
  readonly #byAddress = new Map<string, Map<string, Pair>>()
  readonly #ends = new DueHeap<Pair>()
  /** Names that may have more addresses than the limit. */
  readonly #overLimit = new Set<string>()
  /** By address, the one that was added first is first. */
  readonly #zombies = new Map<string, ZombieEntry>()
  #dumps: Dumps = { count: 0, startMs: Number.NEGATIVE_INFINITY }

  constructor(rules: TableRules) {
    this.#rules = rules
  }

  get nameCount(): number {
    return this.#byName.size
  }

  get addressCount(): number {
    return this.#byAddress.size
  }

  /** Number of pairs of a name and an address, without zombies. */
  get size(): number {
    return this.#ends.size
  }

  /** Number of addresses that are zombies. */
  get zombieCount(): number {
    return this.#zombies.size
  }

  /** Adds a new answer. Its addresses are no zombies of the name any more. */
  add(answer: Answer): CacheChange {
    if (this.#zombies.size > 0) {
      const { name, addresses } = answer
      for (const address of addresses) this.#strip(address, (one) => one === name)
    }
    return this.put(this.dated(answer))
  }

  /** The answer with its end. */
  dated(answer: Answer): DatedAnswer {
    return { ...answer, endMs: this.#rules.endOf(answer) }
  }

  /** Adds an answer of another table, or of an earlier process. */
  put(answer: DatedAnswer): CacheChange {
    const { name, addresses, endMs } = answer
    const added: string[] = []
    const extended: string[] = []
    for (const address of addresses) {
      const known = this.#byName.get(name)?.get(address)
      if (known !== undefined && known.answer.endMs >= endMs) continue
      const pair = known ?? { name, address, answer }
      pair.answer = answer
      this.#ends.put(pair, endMs)
      if (known !== undefined) extended.push(address)
      else {
        added.push(address)
        entryOf(this.#byName, name).set(address, pair)
        entryOf(this.#byAddress, address).set(name, pair)
      }
    }
    const { addressesPerName } = this.#rules
    const count = this.#byName.get(name)?.size ?? 0
    if (addressesPerName > 0 && count > addressesPerName) this.#overLimit.add(name)
    return { added, extended }
  }

  /** All addresses, also those that have ended, and zombies. */
  addresses(): Set<string> {
    return new Set([...this.#byAddress.keys(), ...this.#zombies.keys()])
  }

  /** All names, also those whose addresses have ended. */
  names(): Iterable<string> {
    return this.#byName.keys()
  }

  /** The names of an address, also those that have ended, and those of the zombie. */
  *namesAt(address: string): Generator<NameAt> {
    for (const { name, answer } of this.#byAddress.get(address)?.values() ?? []) {
      yield { name, endMs: answer.endMs, isZombie: false }
    }
    const { names = [], keptMs: endMs = 0 } = this.#zombies.get(address) ?? {}
    for (const name of names) yield { name, endMs, isZombie: true }
  }

  /** True if the name has any address. */
  hasName(name: string): boolean {
    return this.#byName.has(name)
  }

  /** The addresses of a name with their ends, also those that have ended. */
  *endsOf(name: string): Generator<AddressEnd> {
    for (const { address, answer } of this.#byName.get(name)?.values() ?? []) {
      yield [address, answer.endMs]
    }
  }

  /** When an address of a name ends; undefined = the name does not have it. It may have ended. */
  endOf(name: string, address: string): number | undefined {
    return this.#byName.get(name)?.get(address)?.answer.endMs
  }

  /** The answers that still have addresses, each with these addresses. */
  *answers(): Generator<DatedAnswer> {
    yield* answersIn(this.#ends.keys())
  }

  /** The zombies as they are now. */
  *zombies(): Generator<Zombie> {
    for (const entry of this.#zombies.values()) yield { ...entry, names: new Set(entry.names) }
  }

  /** Removes a name. Returns its answers, each with the addresses that it still had. */
  take(name: string): readonly DatedAnswer[] {
    const pairs = [...(this.#byName.get(name)?.values() ?? [])]
    const answers = [...answersIn(pairs)]
    for (const pair of pairs) this.#remove(pair, pair.answer.endMs)
    return answers
  }

  /**
   * Removes the addresses that ended before a time. Then removes from each name above the limit the
   * addresses that end first. Returns what it removed.
   */
  collect(nowMs: number): readonly EndedAddress[] {
    const removals: EndedAddress[] = []
    for (;;) {
      const pair = this.#ends.first()
      if (pair === undefined || this.#ends.firstMs >= nowMs) break
      removals.push(this.#remove(pair, nowMs))
    }
    const { addressesPerName } = this.#rules
    for (const name of this.#overLimit) {
      const pairs = [...(this.#byName.get(name)?.values() ?? [])].sort(compareEnds)
      const count = Math.max(0, pairs.length - addressesPerName)
      for (const pair of pairs.slice(0, count)) removals.push(this.#remove(pair, nowMs))
    }
    this.#overLimit.clear()
    return removals
  }

  /** Removes the address that ends first. Undefined = the table is empty. */
  evict(nowMs: number): EndedAddress | undefined {
    const pair = this.#ends.first()
    return pair === undefined ? undefined : this.#remove(pair, nowMs)
  }

  /** If an address has more than `names` names, removes the one that ends first, and returns it. */
  evictName(address: string, names: number, nowMs: number): EndedAddress | undefined {
    const pairs = this.#byAddress.get(address)
    if (pairs === undefined || pairs.size <= names) return undefined
    let first: Pair | undefined
    for (const pair of pairs.values()) {
      if (first === undefined || pair.answer.endMs < first.answer.endMs) first = pair
    }
    return first === undefined ? undefined : this.#remove(first, nowMs)
  }

  /** Removes the names for which `isSelected` is true. Returns the addresses that they had. */
  forget(isSelected: (name: string) => boolean): ReadonlySet<string> {
    const addresses = new Set<string>()
    for (const pair of [...this.#ends.keys()]) {
      if (isSelected(pair.name)) addresses.add(this.#remove(pair, pair.answer.endMs).address)
    }
    for (const address of [...this.#zombies.keys()]) {
      if (this.#strip(address, isSelected)) addresses.add(address)
    }
    return addresses
  }

  /** Keeps an address that was removed, as a zombie. */
  retire({ address, name, endMs, ttlEndMs }: EndedAddress): void {
    const { count: addedAt, startMs } = this.#dumps
    const keptMs = ttlEndMs + this.#limits.keepMs
    const known = this.#zombies.get(address)
    if (known === undefined) {
      const names = new Set([name])
      this.#zombies.set(address, { address, names, aliveMs: startMs, endMs, keptMs, addedAt })
      return
    }
    if (known.names.size < ZOMBIE_NAMES_MAX) known.names.add(name)
    known.endMs = Math.max(known.endMs, endMs)
    known.keptMs = Math.max(known.keptMs, keptMs)
    // Until the next dump it is unknown whether its connections are closed.
    known.aliveMs = Math.max(known.aliveMs, startMs)
    known.addedAt = addedAt
  }

  /** Adds a zombie of an earlier process, except for names that have a valid answer. It stays for two new dumps. */
  putZombie({ address, names, aliveMs, endMs, keptMs }: Zombie): void {
    const ttlEndMs = keptMs - this.#limits.keepMs
    for (const name of names) {
      if (this.endOf(name, address) === undefined) this.retire({ address, name, endMs, ttlEndMs })
    }
    this.markAlive(address, aliveMs)
  }

  /** Notes that the holder has an open connection to an address. Call it before `noteDump`. */
  markAlive(address: string, atMs: number): void {
    const entry = this.#zombies.get(address)
    if (entry !== undefined) entry.aliveMs = Math.max(entry.aliveMs, atMs)
  }

  /** Notes that a complete dump of the connections, begun at `startMs`, has been applied. */
  noteDump(startMs: number): void {
    this.#dumps = { count: this.#dumps.count + 1, startMs }
  }

  /** Decides which zombies live, and removes the others. */
  collectZombies(nowMs: number): ZombieDecision {
    const entries = [...this.#zombies.values()]
    const decision = decideZombies(entries, this.#limits, this.#dumps, nowMs)
    for (const address of decision.dead) this.#zombies.delete(address)
    return decision
  }

  /** Removes the zombie that was added first. Returns its address, or undefined if no zombie is left. */
  evictZombie(): string | undefined {
    const [address] = this.#zombies.keys()
    if (address !== undefined) this.#zombies.delete(address)
    return address
  }

  get #limits(): ZombieLimits {
    return this.#rules.zombies ?? NO_ZOMBIES
  }

  /** Removes names of a zombie. Returns true if it had one of them. */
  #strip(address: string, isSelected: (name: string) => boolean): boolean {
    const names = this.#zombies.get(address)?.names
    if (names === undefined) return false
    const found = [...names].filter(isSelected)
    for (const name of found) names.delete(name)
    if (names.size === 0) this.#zombies.delete(address)
    return found.length > 0
  }

  #remove(pair: Pair, nowMs: number): EndedAddress {
    const { name, address, answer } = pair
    this.#ends.remove(pair)
    removeEntry(this.#byName, name, address)
    removeEntry(this.#byAddress, address, name)
    return { name, address, endMs: Math.max(nowMs, answer.endMs), ttlEndMs: answer.endMs }
  }
}

function* answersIn(pairs: Iterable<Pair>): Generator<DatedAnswer> {
  const left = new Map<DatedAnswer, string[]>()
  for (const { address, answer } of pairs) {
    const addresses = left.get(answer)
    if (addresses === undefined) left.set(answer, [address])
    else addresses.push(address)
  }
  for (const [answer, addresses] of left) yield { ...answer, addresses: addresses.sort() }
}

/** Orders pairs by their end; those with the same end by address, so that the order is always the same. */
function compareEnds(a: Pair, b: Pair): number {
  return a.answer.endMs - b.answer.endMs || (a.address < b.address ? -1 : 1)
}

function entryOf(map: Map<string, Map<string, Pair>>, key: string): Map<string, Pair> {
  const known = map.get(key)
  if (known !== undefined) return known
  const entry = new Map<string, Pair>()
  map.set(key, entry)
  return entry
}

function removeEntry(map: Map<string, Map<string, Pair>>, key: string, inner: string): void {
  const entry = map.get(key)
  entry?.delete(inner)
  if (entry?.size === 0) map.delete(key)
}
