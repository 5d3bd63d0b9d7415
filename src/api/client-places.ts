import { isIPv6 } from 'node:net'
import type { Peer } from '../base/places.ts'
import { exactAddress } from './node-addresses.ts'

/** Most connections of clients without a reserved place. */
const PLACES = 256
/** Most connections of one client: an IPv4 address or an IPv6 /64. */
const PLACES_PER_CLIENT = 16
/** Most clients with reserved places, beside loopback. */
const REGULARS = 32
/** A regular client that got no reply for this long can lose its reservation to another client. */
const REGULAR_MS = 5 * 60_000

/**
 * Most new connections per second of one client, and of all clients without a reserved place. Loopback has no
 * limit.
 */
const RATE_PER_CLIENT = 32
const RATE = 128
/**
 * Connections per second above RATE that are the first of their client, and that are among the first of their
 * network.
 */
const RATE_FIRST = 32
const RATE_NETWORKS = 1024
/**
 * Maximum of connections per second that count as the first ones of a network: enough for a client that asks several
 * times a second. It is lower if many networks came in the second before, so that the quota lasts for the whole second.
 */
const FIRST_OF_NETWORK = 8

/** One connection. */
export interface ClientPlace extends Peer {
  /** True if it does not use a place that clients without a reservation share. */
  isReserved: boolean
  readonly client: string
  /** Ends the connection, at once. */
  readonly end: () => void
}

/**
 * Decides which connections an HTTP address keeps. If places run out, the oldest connection of the client with the most
 * connections ends. The first clients that get a reply, such as Prometheus, become *regular*: they, loopback and the
 * addresses of the node have reserved places, which no other client can take. So probes get replies during an attack.
 */
export class ClientPlaces {
  /** Each is a client of its own, with reserved places. */
  readonly #reserved: ReadonlySet<string>
  /** By client, the oldest first. */
  readonly #clients = new Map<string, Set<ClientPlace>>()
  /** When each was served last, monotonic. */
  readonly #regulars = new Map<string, number>()
  /** Places in use that are not reserved. */
  #shared = 0
  /** New connections since `#rateMs`, by client, and those of them without a reserved place. */
  readonly #arrivals = new Map<string, number>()
  #sharedArrivals = 0
  /** Arrivals by network, also refused ones, and connections of the two quotas above RATE. */
  readonly #networks = new Map<string, number>()
  #firstOfEach = FIRST_OF_NETWORK
  #firstOfClients = 0
  #firstOfNetworks = 0
  #rateMs = 0

  /** `reserved`: addresses in canonical form. */
  constructor(reserved: ReadonlySet<string> = new Set()) {
    this.#reserved = reserved
  }

  /**
   * Returns a place for a connection from `address`, and ends another connection if needed. Undefined if connections
   * arrive too fast: reading their requests would take too long.
   */
  admit(address: string, nowMs: number, end: () => void): ClientPlace | undefined {
    const exact = exactAddress(address)
    const client = this.#reserved.has(exact) ? exact : clientOf(exact)
    const isReserved = this.isRegular(client)
    if (!isLoopback(client) && this.#isTooFast(client, isReserved, nowMs)) return undefined
    const own = this.#clients.get(client)
    if (own !== undefined && own.size >= PLACES_PER_CLIENT) this.#evict(own)
    else if (!isReserved && this.#shared >= PLACES) this.#evict(this.#largest())
    const place = { isReserved, client, network: networkOf(client), end }
    // `own` is deleted if its last place was evicted.
    const places = this.#clients.get(client) ?? new Set()
    this.#clients.set(client, places.add(place))
    if (!isReserved) this.#shared++
    return place
  }

  #isTooFast(client: string, isReserved: boolean, nowMs: number): boolean {
    if (nowMs - this.#rateMs >= 1000) {
      const isNext = nowMs - this.#rateMs < 2000
      const share = Math.floor(RATE_NETWORKS / Math.max(1, isNext ? this.#networks.size : 1))
      this.#firstOfEach = Math.min(FIRST_OF_NETWORK, Math.max(1, share))
      this.#rateMs = nowMs
      this.#arrivals.clear()
      this.#networks.clear()
      this.#sharedArrivals = this.#firstOfClients = this.#firstOfNetworks = 0
    }
    const arrivals = this.#arrivals.get(client) ?? 0
    if (arrivals >= RATE_PER_CLIENT) return true
    if (!isReserved && !this.#takeArrival(client, arrivals === 0)) return true
    this.#arrivals.set(client, arrivals + 1)
    return false
  }

  /** False if the quotas of this second are used up. A flood from few networks leaves room for a probe from another. */
  #takeArrival(client: string, isFirst: boolean): boolean {
    const network = networkOf(client)
    const before = this.#networks.get(network) ?? 0
    this.#networks.set(network, before + 1)
    if (this.#sharedArrivals < RATE) this.#sharedArrivals++
    else if (isFirst && this.#firstOfClients < RATE_FIRST) this.#firstOfClients++
    else if (before < this.#firstOfEach && this.#firstOfNetworks < RATE_NETWORKS)
      this.#firstOfNetworks++
    else return false
    return true
  }

  /** Frees a place; does nothing if it was evicted. */
  leave(place: ClientPlace): void {
    const places = this.#clients.get(place.client)
    if (places?.delete(place) !== true) return
    if (!place.isReserved) this.#shared--
    if (places.size === 0) this.#clients.delete(place.client)
  }

  /** Notes that a request was answered: the client becomes regular, if one more can. */
  noteServed({ client }: ClientPlace, nowMs: number): void {
    if (isLoopback(client) || this.#reserved.has(client)) return
    if (!this.#regulars.has(client) && !this.#hasRoom(nowMs)) return
    this.#regulars.set(client, nowMs)
    for (const place of this.#clients.get(client) ?? []) {
      if (place.isReserved) continue
      place.isReserved = true
      this.#shared--
    }
  }

  isRegular(client: string): boolean {
    return isLoopback(client) || this.#reserved.has(client) || this.#regulars.has(client)
  }

  /** True if one more client can be regular. Removes a regular client that sends no requests any more. */
  #hasRoom(nowMs: number): boolean {
    if (this.#regulars.size < REGULARS) return true
    for (const [client, servedMs] of this.#regulars) {
      if (nowMs - servedMs > REGULAR_MS) return this.#regulars.delete(client)
    }
    return false
  }

  #evict(places: ReadonlySet<ClientPlace>): void {
    const [oldest] = places
    if (oldest === undefined) return
    this.leave(oldest)
    oldest.end()
  }

  /** The places of the client that has the most, regular ones excepted. */
  #largest(): ReadonlySet<ClientPlace> {
    let largest: ReadonlySet<ClientPlace> = new Set()
    for (const [client, places] of this.#clients) {
      if (places.size > largest.size && !this.isRegular(client)) largest = places
    }
    return largest
  }
}

function isLoopback(client: string): boolean {
  return client === '127.0.0.1' || client === '::1'
}

/** What counts as one client: one host has a whole IPv6 /64. */
export function clientOf(address: string): string {
  const plain = exactAddress(address)
  if (!isIPv6(plain) || plain === '::1') return plain
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? 0 : tail.split(':').length
  const tailGroups = after === 0 ? [] : tail!.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - after
  return `${[...groups, ...new Array<string>(zeros).fill('0'), ...tailGroups].slice(0, 4).join(':')}::/64`
}

/** The IPv4 /24 or IPv6 /48 of a client. */
function networkOf(client: string): string {
  const isIPv4 = !client.includes(':')
  return client.split(isIPv4 ? '.' : ':', 3).join(isIPv4 ? '.' : ':')
}
