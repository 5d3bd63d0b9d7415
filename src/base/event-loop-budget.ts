import type { Peer } from './places.ts'

/** Longest time for which all connections together are served before other work gets the event loop. */
const TURN_MS = 2
/** More of it for each network that waits, and the most in all. */
const NETWORK_TURN_MS = 0.04
const TURN_MS_MAX = 10
/** Slices for the networks that used the fewest, for each slice for the one that waits longest. */
const LIGHT_SLICES = 4
/** How long slices count; half of them are forgotten after this time. */
const HALF_LIFE_MS = 1000
/** Networks whose slices are counted; above this, all are forgotten. */
const NETWORKS_MAX = 65_536
/** Longest time for which one connection is served while others wait. */
const SLICE_MS = 0.25

type Run = () => void

/** Connections that the listeners of this thread have accepted. */
let accepted = 0

/** Counts a connection that a listener has accepted. */
export function noteAccepted(): void {
  accepted++
}

/**
 * Divides the time of the event loop between connections and the other work of the thread. The connections are those
 * of a listener, or those to upstream servers. If the kernel accepts a reply at once, Node.js calls back in the same
 * turn of the loop. So a connection with thousands of queries in its buffer could delay all others:
 *
 *     turn: serve, serve, … 2 ms ─▶ isOver ─▶ wait(…) ─▶ UDP, timers, accept, … ─▶ next turn
 *
 * The event loop accepts one connection in each of its turns (libuv 1.45 and later). At one
 * connection per 2 ms, a connection would wait in the queue for many seconds during a flood. So
 * accepting, by all listeners together, gets as much time as the turn before took:
 *
 *     turn: serve, … 2 ms ─▶ accept ─▶ accept ─▶ … 2 ms, or until the queue is empty ─▶ next turn
 *
 * Networks take turns, and so do the clients of a network, and the connections of a client. A
 * client with a hundred connections gets no more time than a client with one. Four of five slices
 * are for the network that used the fewest in the last seconds. So a client with few queries does
 * not wait for all clients with many.
 */
export class EventLoopBudget {
  /** End of the current turn; 0 = no turn has begun. */
  #endMs = 0
  /** Time at which the current connection has to wait again, if others wait. */
  #sliceEndMs = 0
  /** `accepted` at the turn before. If it is higher now, more connections may be queued. */
  #acceptedBefore = 0
  /** Before this time, turns of the event loop that accept a connection serve no query. */
  #acceptEndMs = 0
  /** Networks that wait, the one that waits longest first. */
  readonly #networks = new Map<string, Clients>()
  /** Slices that each network used. */
  readonly #used = new Map<string, number>()
  #halvedMs = 0
  /** Slices since the last one for the network that waits longest. */
  #lightSlices = 0
  /** The network whose turn it is; undefined = none. */
  #network: string | undefined = undefined
  #clients = new Clients()
  readonly #next = (): void => this.#goOn()
  readonly #now: () => number

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Called before each query: true = serve no more in this turn of the loop, and call `wait`. */
  isOver(): boolean {
    const nowMs = this.#now()
    if (this.#endMs !== 0) return nowMs >= this.#sliceEndMs
    const networks = this.#networks.size
    this.#endMs = nowMs + Math.min(TURN_MS + networks * NETWORK_TURN_MS, TURN_MS_MAX)
    this.#sliceEndMs = this.#endMs
    setImmediate(this.#next)
    return false
  }

  /** Calls `run` when it is the turn of the peer again. Call it only after `isOver` has returned true. */
  wait({ network, client }: Peer, run: Run): void {
    let clients = network === this.#network ? this.#clients : this.#networks.get(network)
    if (clients === undefined) this.#networks.set(network, (clients = new Clients()))
    clients.push(client, run)
  }

  get #isEmpty(): boolean {
    return this.#networks.size === 0
  }

  #goOn(): void {
    if (!this.#isEmpty && this.#isAccepting()) {
      setImmediate(this.#next)
      return
    }
    const startMs = this.#now()
    this.#endMs = 0
    this.#forget(startMs)
    while (!this.#isEmpty && !this.#isTurnOver()) {
      const network = this.#takeNetwork()
      const sliceMs = this.#now()
      this.#sliceEndMs = this.#isEmpty ? this.#endMs : Math.min(sliceMs + SLICE_MS, this.#endMs)
      // Queries that cost little share a slice, so that many of them do not wait for as many turns.
      do this.#clients.take()()
      while (!this.#clients.isEmpty && this.#now() < this.#sliceEndMs)
      if (this.#now() - sliceMs >= SLICE_MS / 2) this.#count(network)
      if (!this.#clients.isEmpty) this.#networks.set(network, this.#clients)
    }
    this.#network = undefined
    this.#sliceEndMs = this.#endMs
    const nowMs = this.#now()
    this.#acceptEndMs = nowMs + (nowMs - startMs)
  }

  /** True if the next turn of the event loop is for accepting connections only. */
  #isAccepting(): boolean {
    const hasAccepted = accepted !== this.#acceptedBefore
    this.#acceptedBefore = accepted
    return hasAccepted && this.#now() < this.#acceptEndMs
  }

  #isTurnOver(): boolean {
    this.#sliceEndMs = this.#endMs
    return this.isOver()
  }

  #takeNetwork(): string {
    const isLight = this.#lightSlices < LIGHT_SLICES
    this.#lightSlices = isLight ? this.#lightSlices + 1 : 0
    const [[oldest]] = this.#networks as unknown as [[string, Clients]]
    const network = isLight ? this.#lightest(oldest) : oldest
    this.#network = network
    this.#clients = this.#networks.get(network)!
    this.#networks.delete(network)
    return network
  }

  /** Returns the network that used the fewest slices; of several, the one that waits longest. */
  #lightest(oldest: string): string {
    let lightest = oldest
    let least = Number.POSITIVE_INFINITY
    for (const network of this.#networks.keys()) {
      const used = this.#used.get(network) ?? 0
      if (used >= least) continue
      lightest = network
      least = used
      if (used === 0) break
    }
    return lightest
  }

  #count(network: string): void {
    if (this.#used.size >= NETWORKS_MAX) this.#used.clear()
    this.#used.set(network, (this.#used.get(network) ?? 0) + 1)
  }

  #forget(nowMs: number): void {
    if (nowMs - this.#halvedMs < HALF_LIFE_MS) return
    this.#halvedMs = nowMs
    for (const [network, used] of this.#used) {
      if (used > 1) this.#used.set(network, used >> 1)
      else this.#used.delete(network)
    }
  }
}

/** What waits in one network, by client. The first run of the first client is next. */
class Clients {
  readonly #runs = new Map<string, Run[]>()

  get isEmpty(): boolean {
    return this.#runs.size === 0
  }

  push(client: string, run: Run): void {
    const runs = this.#runs.get(client)
    if (runs === undefined) this.#runs.set(client, [run])
    else runs.push(run)
  }

  /** Removes and returns the next run, and puts its client last. */
  take(): Run {
    const [[client, runs]] = this.#runs as unknown as [[string, Run[]]]
    const run = runs.shift()!
    this.#runs.delete(client)
    if (runs.length > 0) this.#runs.set(client, runs)
    return run
  }
}
