import type { Peer } from './peer-address.ts'

/** What holds a place. */
export interface Holder {
  /** Of several holders, the one with the lowest number ends first. */
  precedence(nowMs: number): number
}

/**
 * The places that connections hold, by client and by network. All counts are sizes of these sets, so they always
 * equal the number of open connections.
 *
 *     network (/24, /48) ─▶ client (address, /64) ─▶ holders
 */
export class Places<H extends Holder> {
  readonly #networks = new Map<string, Map<string, Set<H>>>()
  readonly #peers = new Map<H, Peer>()

  get size(): number {
    return this.#peers.size
  }

  holders(): IterableIterator<H> {
    return this.#peers.keys()
  }

  /** Holders of the client. */
  countOf({ network, client }: Peer): number {
    return this.#networks.get(network)?.get(client)?.size ?? 0
  }

  /** Gives `holder`, which has none, a place. */
  enter(holder: H, peer: Peer): void {
    const { network, client } = peer
    this.#peers.set(holder, peer)
    let clients = this.#networks.get(network)
    if (clients === undefined) this.#networks.set(network, (clients = new Map()))
    const holders = clients.get(client)
    if (holders === undefined) clients.set(client, new Set([holder]))
    else holders.add(holder)
  }

  /** False if `holder` has no place. */
  leave(holder: H): boolean {
    const peer = this.#peers.get(holder)
    if (peer === undefined) return false
    this.#peers.delete(holder)
    const clients = this.#networks.get(peer.network)!
    const holders = clients.get(peer.client)!
    holders.delete(holder)
    if (holders.size === 0) clients.delete(peer.client)
    if (clients.size === 0) this.#networks.delete(peer.network)
    return true
  }

  /** The holder to end: of the client with the most places in the network with the most. Undefined without holders. */
  worst(nowMs: number): H | undefined {
    const networks = largest(this.#networks.values(), countHolders)
    const clients = networks.flatMap((network) => [...network.values()])
    return firstToEnd(
      largest(clients, (holders) => holders.size),
      nowMs,
    )
  }

  /** The holder of the client to end. */
  worstOf({ network, client }: Peer, nowMs: number): H | undefined {
    const holders = this.#networks.get(network)?.get(client)
    return holders && firstToEnd([holders], nowMs)
  }
}

function countHolders(clients: ReadonlyMap<string, ReadonlySet<unknown>>): number {
  let count = 0
  for (const holders of clients.values()) count += holders.size
  return count
}

/** All items of the largest size. */
function largest<T>(items: Iterable<T>, sizeOf: (item: T) => number): T[] {
  let found: T[] = []
  let most = 0
  for (const item of items) {
    const size = sizeOf(item)
    if (size < most) continue
    if (size > most) found = []
    most = size
    found.push(item)
  }
  return found
}

function firstToEnd<H extends Holder>(sets: readonly ReadonlySet<H>[], nowMs: number) {
  let first: H | undefined
  let lowest = Number.POSITIVE_INFINITY
  for (const holders of sets) {
    for (const holder of holders) {
      const precedence = holder.precedence(nowMs)
      if (precedence >= lowest) continue
      first = holder
      lowest = precedence
    }
  }
  return first
}
