import type { EndedAddress } from './learned-table.ts'

export interface ZombieLimits {
  /** Zombies of one client; 0 = none are kept. */
  readonly most: number
  /** Zombies of one name; 0 = no limit. */
  readonly perName: number
  /** How long a connection may be idle until it counts as closed. */
  readonly idleGraceMs: number
  /** How long a zombie is kept after its TTL, and after a collection, if no further collection comes. */
  readonly keepMs: number
}

/** An address whose TTL has ended, while connections to it may be open. Times are monotonic milliseconds. */
export interface Zombie {
  readonly address: string
  /** Never empty. */
  readonly names: readonly string[]
  /** Last time at which a connection was known to be open; -Infinity = never. */
  readonly aliveMs: number
  /** When the address should have been removed. */
  readonly endMs: number
  /** Until when it is kept without a collection. Afterwards it is never kept again. */
  readonly keptMs: number
}

/** What a collection decided. */
interface ZombieDecision {
  /** Addresses that are kept for longer now. */
  readonly extended: readonly string[]
  readonly dead: readonly string[]
  /** Those among `dead` that may have open connections, but are above a limit. */
  readonly evictions: number
}

interface Entry {
  readonly address: string
  readonly names: Set<string>
  aliveMs: number
  endMs: number
  keptMs: number
  /** Number of complete dumps at the time at which it was added. */
  addedAt: number
}

/** Names of one zombie. More would make each decision about it slow. */
const NAMES_MAX = 256

/** Complete dumps of the connections that an address must have been in none of. */
const DUMPS = 2

/**
 * The addresses of one client whose TTL has ended, but to which connections may be open. An address
 * stays until two complete dumps of the connection tracking table did not have it. While one address
 * of a name is alive, all addresses of that name are: the client may connect again to any of
 * them. After Cilium's DNSZombieMappings.
 *
 * An address that was not kept for a time, such as during a pause of the process, is dead: a collection
 * allows nothing that was not allowed just before.
 */
export class Zombies {
  readonly #limits: ZombieLimits
  readonly #entries = new Map<string, Entry>()
  #dumps = 0
  /** When the last complete dump began. */
  #dumpMs = Number.NEGATIVE_INFINITY

  constructor(limits: ZombieLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#entries.size
  }

  /** All zombies, without a decision about them. */
  *all(): Generator<Zombie> {
    for (const entry of this.#entries.values()) yield zombieOf(entry)
  }

  get(address: string): Zombie | undefined {
    const entry = this.#entries.get(address)
    return entry === undefined ? undefined : zombieOf(entry)
  }

  /** Adds an address of a name that has ended. */
  add({ address, name, endMs, ttlEndMs }: EndedAddress): void {
    const known = this.#entries.get(address)
    const keptMs = ttlEndMs + this.#limits.keepMs
    if (known === undefined) {
      const entry = {
        address,
        names: new Set([name]),
        aliveMs: this.#dumpMs,
        endMs,
        keptMs,
        addedAt: this.#dumps,
      }
      this.#entries.set(address, entry)
      return
    }
    if (known.names.size < NAMES_MAX) known.names.add(name)
    known.endMs = Math.max(known.endMs, endMs)
    known.keptMs = Math.max(known.keptMs, keptMs)
    // Until the next dump it is unknown whether its connections are closed.
    known.aliveMs = Math.max(known.aliveMs, this.#dumpMs)
    known.addedAt = this.#dumps
  }

  /** Adds zombies of an earlier process. None of them dies before there are two new dumps. */
  restore(zombies: Iterable<Zombie>): void {
    for (const { address, names, aliveMs, endMs, keptMs } of zombies) {
      const ttlEndMs = keptMs - this.#limits.keepMs
      for (const name of names) this.add({ address, name, endMs, ttlEndMs })
      this.markAlive(address, aliveMs)
    }
  }

  /** Notes that the client has an open connection to an address. Call it before `noteDump`. */
  markAlive(address: string, atMs: number): void {
    const entry = this.#entries.get(address)
    if (entry !== undefined) entry.aliveMs = Math.max(entry.aliveMs, atMs)
  }

  /** Notes that a complete dump of the connections, begun at `startMs`, has been applied. */
  noteDump(startMs: number): void {
    this.#dumpMs = startMs
    this.#dumps++
  }

  /** Removes the zombie that was added first. Returns its address, or undefined if no zombie is left. */
  evict(): string | undefined {
    for (const address of this.#entries.keys()) {
      this.#entries.delete(address)
      return address
    }
    return undefined
  }

  /** Forgets these addresses of a name, because a new answer has them. */
  forget(name: string, addresses: Iterable<string>): void {
    for (const address of addresses) this.#strip(address, (one) => one === name)
  }

  /** Forgets the names that ended before a time and for which `isSelected` is true. */
  expire(beforeMs: number, isSelected: (name: string) => boolean): void {
    for (const { address, endMs } of [...this.#entries.values()]) {
      if (endMs < beforeMs) this.#strip(address, isSelected)
    }
  }

  /** Decides which zombies live, and forgets the others. */
  collect(nowMs: number): ZombieDecision {
    const { most, perName, keepMs } = this.#limits
    const aliveNames = new Set<string>()
    for (const entry of this.#entries.values()) {
      if (this.#isConnected(entry)) for (const name of entry.names) aliveNames.add(name)
    }
    const isAlive = ({ names, keptMs }: Entry): boolean => {
      return keptMs >= nowMs && [...names].some((name) => aliveNames.has(name))
    }
    const alive = new Set([...this.#entries.values()].filter(isAlive))
    const before = alive.size
    if (perName > 0) {
      for (const entries of entriesOf(aliveNames, alive).values()) evict(alive, entries, perName)
    }
    evict(alive, alive, most)
    const dead: string[] = []
    for (const entry of this.#entries.values()) if (!alive.has(entry)) dead.push(entry.address)
    for (const address of dead) this.#entries.delete(address)
    // Not at each collection, because each change is one in the kernel too. Without dumps it is unknown
    // which connections are open: then addresses end.
    const isKnown = this.#dumpMs >= nowMs - keepMs
    const ending = [...alive].filter((entry) => isKnown && entry.keptMs < nowMs + keepMs / 2)
    for (const entry of ending) entry.keptMs = nowMs + keepMs
    const extended = ending.map(({ address }) => address)
    return { extended, dead, evictions: before - alive.size }
  }

  /** True unless the dumps show that all connections are closed. */
  #isConnected({ endMs, aliveMs, addedAt }: Entry): boolean {
    if (this.#dumps - addedAt < DUMPS) return true
    return this.#dumpMs <= endMs + this.#limits.idleGraceMs || this.#dumpMs <= aliveMs
  }

  #strip(address: string, isSelected: (name: string) => boolean): void {
    const entry = this.#entries.get(address)
    if (entry === undefined) return
    for (const name of [...entry.names]) if (isSelected(name)) entry.names.delete(name)
    if (entry.names.size === 0) this.#entries.delete(address)
  }
}

/** The entries of each of these names. */
function entriesOf(
  wanted: ReadonlySet<string>,
  entries: Iterable<Entry>,
): ReadonlyMap<string, readonly Entry[]> {
  const found = new Map<string, Entry[]>()
  for (const entry of entries) {
    for (const name of entry.names) {
      if (!wanted.has(name)) continue
      const list = found.get(name)
      if (list === undefined) found.set(name, [entry])
      else list.push(entry)
    }
  }
  return found
}

/** Takes the least important of `some` from the set until it has at most `limit` of them. */
function evict(alive: Set<Entry>, some: Iterable<Entry>, limit: number): void {
  const entries = [...some].filter((entry) => alive.has(entry))
  if (entries.length <= limit) return
  entries.sort(compareImportance)
  for (const entry of entries.slice(0, entries.length - limit)) alive.delete(entry)
}

/** The least important first: idle for longest, ended first, fewest names. */
function compareImportance(a: Entry, b: Entry): number {
  return (
    compareNumbers(a.aliveMs, b.aliveMs) ||
    compareNumbers(a.endMs, b.endMs) ||
    a.names.size - b.names.size ||
    (a.address < b.address ? -1 : 1)
  )
}

/** As a - b, also for two infinities. */
function compareNumbers(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1
}

function zombieOf({ address, names, aliveMs, endMs, keptMs }: Entry): Zombie {
  return { address, names: [...names], aliveMs, endMs, keptMs }
}
