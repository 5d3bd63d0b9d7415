import type { Clock } from '../../base/clock.ts'
import { writeMoment } from '../../base/moment.ts'
import type { Client } from '../client.ts'
import type { ClientGrants } from './client-grants.ts'

/** One answer, or one address after its TTL, as Cilium's API shows them. Times are milliseconds since the epoch. */
export interface CacheEntry {
  readonly client: Client
  /** Lower case, with the final dot. */
  readonly name: string
  readonly addresses: readonly string[]
  /** When the client got the answer; of a connection: when it was last known to be open, 0 = never. */
  readonly lookupTimeMs: number
  /** 0 for a connection. */
  readonly ttlSeconds: number
  /** The end; of a connection: unless a collection extends it. */
  readonly expirationTimeMs: number
  /** `lookup`: an answer whose TTL has not ended. `connection`: kept for open connections. */
  readonly source: 'lookup' | 'connection'
}

/** Undefined = all. */
export interface CacheFilter {
  readonly clientId?: string
  readonly source?: CacheEntry['source']
  readonly matchesName?: (name: string) => boolean
  readonly matchesAddress?: (address: string) => boolean
}

/** Returns what clients have learned, with those addresses that the filter matches. */
export function* cacheEntries(
  clients: Iterable<ClientGrants>,
  clock: Clock,
  filter: CacheFilter = {},
): Generator<CacheEntry> {
  const { clientId, source, matchesName = () => true, matchesAddress = () => true } = filter
  for (const grants of clients) {
    if (clientId !== undefined && grants.client.id !== clientId) continue
    for (const entry of entriesOf(grants, clock)) {
      if (source !== undefined && entry.source !== source) continue
      const addresses = entry.addresses.filter(matchesAddress)
      if (addresses.length > 0 && matchesName(entry.name)) yield { ...entry, addresses }
    }
  }
}

function* entriesOf({ client, cache, zombies }: ClientGrants, clock: Clock): Generator<CacheEntry> {
  const nowMs = clock.monotonic()
  const timeOf = (ms: number): number => (Number.isFinite(ms) ? writeMoment(ms, clock) : 0)
  for (const { name, addresses, lookupMs, ttlSeconds, endMs } of cache.answers()) {
    if (endMs < nowMs) continue
    const [lookupTimeMs, expirationTimeMs] = [timeOf(lookupMs), timeOf(endMs)]
    const source = 'lookup'
    yield { client, name, addresses, lookupTimeMs, ttlSeconds, expirationTimeMs, source }
  }
  for (const { address, names, aliveMs, keptMs } of zombies.all()) {
    const [lookupTimeMs, expirationTimeMs] = [timeOf(aliveMs), timeOf(keptMs)]
    const rest = { addresses: [address], lookupTimeMs, ttlSeconds: 0, expirationTimeMs }
    for (const name of names) yield { client, name, ...rest, source: 'connection' }
  }
}

/** A selector of the rules of some clients. */
export interface SelectorUse {
  /** As in the policy. */
  readonly selector: string
  readonly clients: number
  /** Names that these clients have looked up, sorted. */
  readonly names: readonly string[]
  /** Addresses of these names, sorted. */
  readonly addresses: readonly string[]
}

/** Returns the selectors of all rules, by their text. */
export function selectorUses(clients: Iterable<ClientGrants>): readonly SelectorUse[] {
  const uses = new Map<string, { clients: number; names: Set<string>; addresses: Set<string> }>()
  const useOf = (text: string) => {
    const known = uses.get(text)
    const use = known ?? { clients: 0, names: new Set<string>(), addresses: new Set<string>() }
    if (known === undefined) uses.set(text, use)
    return use
  }
  for (const grants of clients) {
    for (const text of grants.selectors()) useOf(text).clients++
    for (const { name, addresses } of grants.cache.answers()) {
      for (const text of grants.selectorsOf(name)) {
        const use = useOf(text)
        use.names.add(name)
        for (const address of addresses) use.addresses.add(address)
      }
    }
  }
  return [...uses]
    .map(([selector, use]) => {
      const [names, addresses] = [[...use.names].sort(), [...use.addresses].sort()]
      return { selector, clients: use.clients, names, addresses }
    })
    .sort((a, b) => (a.selector < b.selector ? -1 : 1))
}
