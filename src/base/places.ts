/**
 * The other end of a connection or the sender of a query, as keys for limits: equal keys likely belong to one
 * client, or to one network.
 */
export interface Peer {
  /** An IPv4 address, or the /64 of an IPv6 address: a host with one address of a /64 has all of them. */
  readonly client: string
  /**
   * An IPv4 /24, or an IPv6 /48: the size that a site gets (RFC 6177), and that one owner can get
   * at low cost.
   */
  readonly network: string
}

/** `a`: an address; IPv4: at least 4 octets, IPv6: at least 8. A key has a character for each octet. */
export function peerOf(a: Uint8Array, isIPv4: boolean): Peer {
  const network = String.fromCharCode(a[0]!, a[1]!, a[2]!)
  if (isIPv4) return { client: network + String.fromCharCode(a[3]!), network }
  const site = network + String.fromCharCode(a[3]!, a[4]!, a[5]!)
  return { client: site + String.fromCharCode(a[6]!, a[7]!), network: site }
}

/** What holds a place: a connection, or a query that waits. */
export interface Holder {
  /** Of several holders, the one with the lowest number ends first. */
  precedence(nowMs: number): number
}

/**
 * Places that connections or queries hold, by client and by network. All counts are sizes of these sets, so
 * they always equal the number of holders.
 *
 *     network (/24, /48) ─▶ client (address, /64) ─▶ holders
 */
export class Places<H extends Holder> {
  readonly #networks = new Map<string, Network<H>>()
  readonly #peers = new Map<H, Peer>()

  get size(): number {
    return this.#peers.size
  }

  holders(): IterableIterator<H> {
    return this.#peers.keys()
  }

  has(holder: H): boolean {
    return this.#peers.has(holder)
  }

  /** Holders of the client. */
  countOf({ network, client }: Peer): number {
    return this.#networks.get(network)?.clients.get(client)?.size ?? 0
  }

  /** Gives `holder`, which has none, a place. */
  enter(holder: H, peer: Peer): void {
    const { network, client } = peer
    this.#peers.set(holder, peer)
    let found = this.#networks.get(network)
    if (found === undefined) this.#networks.set(network, (found = { size: 0, clients: new Map() }))
    found.size++
    const holders = found.clients.get(client)
    if (holders === undefined) found.clients.set(client, new Set([holder]))
    else holders.add(holder)
  }

  /** False if `holder` has no place. */
  leave(holder: H): boolean {
    const peer = this.#peers.get(holder)
    if (peer === undefined) return false
    this.#peers.delete(holder)
    const network = this.#networks.get(peer.network)!
    const holders = network.clients.get(peer.client)!
    holders.delete(holder)
    network.size--
    if (holders.size === 0) network.clients.delete(peer.client)
    if (network.size === 0) this.#networks.delete(peer.network)
    return true
  }

  /**
   * The holder to end: of the client with the most places in the network with the most. Undefined without holders.
   * `few`: all numbers of places up to this one count as equal.
   */
  worst(nowMs: number, few = 1): H | undefined {
    const networks = largest(this.#networks.values(), few)
    const clients: ReadonlySet<H>[] = []
    for (const network of networks)
      for (const holders of network.clients.values()) clients.push(holders)
    return firstToEnd(largest(clients, few), nowMs)
  }

  /**
   * As `worst`, but returns up to `count` holders with a precedence below `limit`. The last one is the first to end. If
   * a network has more places than `few`, returns at most one, because the next one may be of another network.
   */
  worstBelow(nowMs: number, few: number, limit: number, count: number): H[] {
    for (const { size } of this.#networks.values()) {
      if (size <= few) continue
      const worst = this.worst(nowMs, few)
      return worst !== undefined && worst.precedence(nowMs) < limit ? [worst] : []
    }
    const found: { holder: H; precedence: number }[] = []
    for (const holder of this.#peers.keys()) {
      const precedence = holder.precedence(nowMs)
      if (precedence < limit) found.push({ holder, precedence })
    }
    found.sort((a, b) => b.precedence - a.precedence)
    return found.slice(-count).map(({ holder }) => holder)
  }

  /** The holder of the client to end. */
  worstOf({ network, client }: Peer, nowMs: number): H | undefined {
    const holders = this.#networks.get(network)?.clients.get(client)
    return holders && firstToEnd([holders], nowMs)
  }
}

interface Network<H> {
  /** Holders of all clients. */
  size: number
  readonly clients: Map<string, Set<H>>
}

/** All items of the largest size. Sizes up to `few` count as equal. */
function largest<T extends { readonly size: number }>(items: Iterable<T>, few: number): T[] {
  const found: T[] = []
  let most = 0
  for (const item of items) {
    const size = Math.max(item.size, few)
    if (size < most) continue
    if (size > most) found.length = 0
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
