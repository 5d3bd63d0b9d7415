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
  /** Keys of names; never empty. */
  readonly names: ReadonlySet<string>
  /** Last time at which a connection was known to be open; -Infinity = never. */
  readonly aliveMs: number
  /** When the address should have been removed. */
  readonly endMs: number
  /** Until when it is kept without a collection. Afterwards it is never kept again. */
  readonly keptMs: number
}

/** What a collection decided. */
export interface ZombieDecision {
  /** Addresses that are kept for longer now. */
  readonly extended: readonly string[]
  readonly dead: readonly string[]
  /** Those among `dead` that may have open connections, but are above a limit. */
  readonly evictions: number
}

/** A zombie as the table keeps it. */
export interface ZombieEntry extends Zombie {
  readonly names: Set<string>
  aliveMs: number
  endMs: number
  keptMs: number
  /** Number of complete dumps at the time at which it was added. */
  addedAt: number
}

/** The complete dumps of the connections so far. */
export interface Dumps {
  readonly count: number
  /** When the last one began. */
  readonly startMs: number
}

/** Complete dumps of the connections that an address must have been in none of. */
const DUMPS = 2

/**
 * Decides which zombies of one client live. A zombie stays until two complete dumps of the connection tracking table
 * did not have it. While one address of a name is alive, all addresses of that name are: the client may connect again
 * to any of them. After Cilium's DNSZombieMappings.
 *
 * A zombie that was not kept for a time, such as during a pause of the process, is dead: a collection allows nothing
 * that was not allowed just before.
 */
export function decideZombies(
  entries: readonly ZombieEntry[],
  { most, perName, idleGraceMs, keepMs }: ZombieLimits,
  dumps: Dumps,
  nowMs: number,
): ZombieDecision {
  // Unless the dumps show that all connections are closed.
  const isConnected = ({ endMs, aliveMs, addedAt }: ZombieEntry): boolean => {
    if (dumps.count - addedAt < DUMPS) return true
    return dumps.startMs <= endMs + idleGraceMs || dumps.startMs <= aliveMs
  }
  const aliveNames = new Set<string>()
  for (const entry of entries) {
    if (isConnected(entry)) for (const name of entry.names) aliveNames.add(name)
  }
  const isAlive = ({ names, keptMs }: ZombieEntry): boolean => {
    return keptMs >= nowMs && [...names].some((name) => aliveNames.has(name))
  }
  const alive = new Set(entries.filter(isAlive))
  const before = alive.size
  if (perName > 0) {
    for (const some of entriesOf(aliveNames, alive).values()) evict(alive, some, perName)
  }
  evict(alive, alive, most)
  // Not at each collection, because each change is one in the kernel too. Without dumps it is unknown
  // which connections are open: then addresses end.
  const isKnown = dumps.startMs >= nowMs - keepMs
  const ending = [...alive].filter((entry) => isKnown && entry.keptMs < nowMs + keepMs / 2)
  for (const entry of ending) entry.keptMs = nowMs + keepMs
  const addressOf = ({ address }: Zombie): string => address
  return {
    extended: ending.map(addressOf),
    dead: entries.filter((entry) => !alive.has(entry)).map(addressOf),
    evictions: before - alive.size,
  }
}

/** The entries of each of these names. */
function entriesOf(
  wanted: ReadonlySet<string>,
  entries: Iterable<ZombieEntry>,
): ReadonlyMap<string, readonly ZombieEntry[]> {
  const found = new Map<string, ZombieEntry[]>()
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
function evict(alive: Set<ZombieEntry>, some: Iterable<ZombieEntry>, limit: number): void {
  const entries = [...some].filter((entry) => alive.has(entry))
  if (entries.length <= limit) return
  entries.sort(compareImportance)
  for (const entry of entries.slice(0, entries.length - limit)) alive.delete(entry)
}

/** The least important first: idle for longest, ended first, fewest names. */
function compareImportance(a: ZombieEntry, b: ZombieEntry): number {
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
