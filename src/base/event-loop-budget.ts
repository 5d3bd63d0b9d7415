import type { Peer } from './places.ts'

/** Longest time for which all connections together are served before other work gets the event loop. */
const TURN_MS = 2
/** Slices of networks that wait for their first one, for each slice of a network that had one already. */
const FRESH_SLICES_MAX = 4
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
 * client with a hundred connections gets no more time than a client with one. In four of five
 * slices, networks that wait for their first slice are served before the others. So a client with
 * few queries does not wait for all clients with many.
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
  /** Networks that wait for their first slice, and those that wait for a later one. */
  readonly #fresh = new Map<string, Clients>()
  readonly #others = new Map<string, Clients>()
  /** Slices of `#fresh` since the last one of `#others`. */
  #freshSlices = 0
  /** The network whose turn it is; undefined = none. */
  #network: string | undefined = undefined
  #clients = new Clients()
  readonly #next = (): void => this.#goOn()

  /** Called before each query: true = serve no more in this turn of the loop, and call `wait`. */
  isOver(): boolean {
    const nowMs = performance.now()
    if (this.#endMs !== 0) return nowMs >= this.#sliceEndMs
    this.#endMs = nowMs + TURN_MS
    this.#sliceEndMs = this.#endMs
    setImmediate(this.#next)
    return false
  }

  /** Calls `run` when it is the turn of the peer again. Call it only after `isOver` has returned true. */
  wait({ network, client }: Peer, run: Run): void {
    let clients = network === this.#network ? this.#clients : this.#others.get(network)
    clients ??= this.#fresh.get(network)
    if (clients === undefined) this.#fresh.set(network, (clients = new Clients()))
    clients.push(client, run)
  }

  get #isEmpty(): boolean {
    return this.#fresh.size === 0 && this.#others.size === 0
  }

  #goOn(): void {
    if (!this.#isEmpty && this.#isAccepting()) {
      setImmediate(this.#next)
      return
    }
    const startMs = performance.now()
    this.#endMs = 0
    while (!this.#isEmpty && !this.#isTurnOver()) {
      const network = this.#takeNetwork()
      this.#sliceEndMs = this.#isEmpty
        ? this.#endMs
        : Math.min(performance.now() + SLICE_MS, this.#endMs)
      // Queries that cost little share a slice, so that many of them do not wait for as many turns.
      do this.#clients.take()()
      while (!this.#clients.isEmpty && performance.now() < this.#sliceEndMs)
      if (!this.#clients.isEmpty) this.#others.set(network, this.#clients)
    }
    this.#network = undefined
    this.#sliceEndMs = this.#endMs
    const nowMs = performance.now()
    this.#acceptEndMs = nowMs + (nowMs - startMs)
  }

  /** True if the next turn of the event loop is for accepting connections only. */
  #isAccepting(): boolean {
    const hasAccepted = accepted !== this.#acceptedBefore
    this.#acceptedBefore = accepted
    return hasAccepted && performance.now() < this.#acceptEndMs
  }

  #isTurnOver(): boolean {
    this.#sliceEndMs = this.#endMs
    return this.isOver()
  }

  #takeNetwork(): string {
    const mayBeFresh = this.#fresh.size > 0 && this.#freshSlices < FRESH_SLICES_MAX
    const isFresh = mayBeFresh || this.#others.size === 0
    this.#freshSlices = isFresh ? this.#freshSlices + 1 : 0
    const networks = isFresh ? this.#fresh : this.#others
    const [[network, clients]] = networks as unknown as [[string, Clients]]
    networks.delete(network)
    this.#network = network
    this.#clients = clients
    return network
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
