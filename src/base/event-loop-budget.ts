import type { Peer } from './places.ts'

/** Longest time for which all connections together are served before other work gets the event loop. */
const TURN_MS = 2
/** More of it for each network that waits, and the most in all. */
const NETWORK_TURN_MS = 0.04
const TURN_MS_MAX = 10
/**
 * If the thread's other work since the turn before took longer than a turn, the next turn is as long as that work: at
 * most this, and at most a slice for each network that waits.
 */
const EQUAL_TURN_MS_MAX = 100
/** Slices for the networks that used the least time, for each slice for the one that waits longest. */
const LIGHT_SLICES = 4
/** Unit in which served time is counted. Each slice costs its network at least one. */
const UNIT_MS = 1 / 16
/** Units that one slice counts at most: other threads may have had the processor meanwhile. */
const SLICE_UNITS_MAX = 32
/** After so many counted units for each network, half of all units are forgotten. These are some slices for each. */
const REMEMBERED_UNITS = 16
/**
 * Half of all units are also forgotten after this time. With a shorter time, a thread that gets little
 * processor time would forget all units before each network had its next slice. Then quiet networks would wait for all
 * others.
 */
const HALF_LIFE_MS = 5000
/** Networks whose units are counted; above this, all are forgotten. */
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

/** Milliseconds for which this thread has accepted and served connections. */
let connectionsMs = 0

/** Counts time that was spent on connections. */
export function noteConnectionsMs(ms: number): void {
  connectionsMs += ms
}

/**
 * Measures how long the thread did other work than connections. What accepts and what serves connections gets as much
 * time as that. If each of them counted the other as such work, both would grow without need.
 */
export class OtherWork {
  #fromMs = Number.POSITIVE_INFINITY
  #connectionsMs = 0

  /** Begins to measure. */
  begin(nowMs: number): void {
    this.#fromMs = nowMs
    this.#connectionsMs = connectionsMs
  }

  /** Until the next `begin`, there is no such work. */
  end(): void {
    this.#fromMs = Number.POSITIVE_INFINITY
  }

  /** Milliseconds since `begin`. */
  since(nowMs: number): number {
    return Math.max(0, nowMs - this.#fromMs - (connectionsMs - this.#connectionsMs))
  }
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
 * If many networks wait and the other work took longer than such a turn, the next turn is as long as that work.
 *
 * Networks take turns, and so do the clients of a network, and the connections of a client. A
 * client with a hundred connections gets no more time than a client with one. Four of five slices
 * are for the network that used the least time lately. So a client with few queries does
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
  /** Units of time for which each network was served. `Clients` has them for a network that waits. */
  readonly #used = new Map<string, number>()
  /** Units that were counted since half of all units were last forgotten. */
  #counted = 0
  #halvedMs = 0
  /** Since the last turn, also one that only accepted, if some waited then. */
  readonly #other = new OtherWork()
  /** Slices since the last one for the network that waits longest. */
  #lightSlices = 0
  /** The network whose turn it is; undefined = none. */
  #network: string | undefined = undefined
  #clients = new Clients(0)
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
    const turnMs = Math.min(TURN_MS + networks * NETWORK_TURN_MS, TURN_MS_MAX)
    const equalMs = Math.min(this.#other.since(nowMs), networks * SLICE_MS, EQUAL_TURN_MS_MAX)
    this.#endMs = nowMs + Math.max(turnMs, equalMs)
    this.#sliceEndMs = this.#endMs
    setImmediate(this.#next)
    return false
  }

  /** Calls `run` when it is the turn of the peer again. Call it only after `isOver` has returned true. */
  wait({ network, client }: Peer, run: Run): void {
    let clients = network === this.#network ? this.#clients : this.#networks.get(network)
    if (clients === undefined) {
      clients = new Clients(this.#used.get(network) ?? 0)
      this.#networks.set(network, clients)
    }
    clients.push(client, run)
  }

  get #isEmpty(): boolean {
    return this.#networks.size === 0
  }

  #goOn(): void {
    if (!this.#isEmpty && this.#isAccepting()) {
      this.#other.begin(this.#now())
      setImmediate(this.#next)
      return
    }
    const startMs = this.#now()
    this.#endMs = 0
    while (!this.#isEmpty && !this.#isTurnOver()) {
      const network = this.#takeNetwork()
      const sliceMs = this.#now()
      this.#sliceEndMs = this.#isEmpty ? this.#endMs : Math.min(sliceMs + SLICE_MS, this.#endMs)
      // Queries that cost little share a slice, so that many of them do not wait for as many turns.
      do this.#clients.take()()
      while (!this.#clients.isEmpty && this.#now() < this.#sliceEndMs)
      this.#count(network, sliceMs, this.#now())
      if (!this.#clients.isEmpty) this.#networks.set(network, this.#clients)
    }
    this.#network = undefined
    this.#sliceEndMs = this.#endMs
    const nowMs = this.#now()
    this.#acceptEndMs = nowMs + (nowMs - startMs)
    noteConnectionsMs(nowMs - startMs)
    if (this.#isEmpty) this.#other.end()
    else this.#other.begin(nowMs)
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

  /** Returns the network that used the least time; of several, the one that waits longest. */
  #lightest(oldest: string): string {
    let lightest = oldest
    let least = Number.POSITIVE_INFINITY
    for (const [network, { used }] of this.#networks) {
      if (used >= least) continue
      lightest = network
      least = used
      if (used === 0) break
    }
    return lightest
  }

  #count(network: string, startMs: number, endMs: number): void {
    const units = Math.min(Math.max(1, Math.round((endMs - startMs) / UNIT_MS)), SLICE_UNITS_MAX)
    if (this.#used.size >= NETWORKS_MAX) this.#used.clear()
    this.#clients.used += units
    this.#used.set(network, this.#clients.used)
    this.#counted += units
    const isSoon = this.#counted < REMEMBERED_UNITS * this.#used.size
    if (isSoon && endMs - this.#halvedMs < HALF_LIFE_MS) return
    this.#counted = 0
    this.#halvedMs = endMs
    this.#clients.used >>= 1
    for (const waiting of this.#networks.values()) waiting.used >>= 1
    for (const [other, used] of this.#used) {
      if (used > 1) this.#used.set(other, used >> 1)
      else this.#used.delete(other)
    }
  }
}

/** What waits in one network, by client. The first run of the first client is next. */
class Clients {
  readonly #runs = new Map<string, Run[]>()
  /** Units of time for which the network was served. */
  used: number

  constructor(used: number) {
    this.used = used
  }

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
