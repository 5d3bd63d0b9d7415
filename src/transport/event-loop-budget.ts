import type { Peer } from '../base/places.ts'

/** Longest time for which all connections together are served before other work gets the event loop. */
const TURN_MS = 2
/** Longest time for which one connection is served while others wait. */
const SLICE_MS = 0.25

type Run = () => void

/**
 * Distributes the event loop among the clients of a listener, and between them and the rest of the
 * process. A kernel that accepts replies at once calls back in the same turn of the loop. So a
 * connection with thousands of queries in its buffer could delay all others:
 *
 *     turn: serve, serve, … 2 ms ─▶ isOver ─▶ wait(…) ─▶ UDP, timers, accept, … ─▶ next turn
 *
 * The event loop accepts one connection in each of its turns (libuv 1.45 and later). At one
 * connection per 2 ms, a flood of them would keep others in the queue for many seconds. So
 * accepting gets as much time as the turn before took:
 *
 *     turn: serve, … 2 ms ─▶ accept ─▶ accept ─▶ … 2 ms, or until the queue is empty ─▶ next turn
 *
 * Networks take turns, and so do the clients of a network, and the connections of a client. A
 * client with a hundred connections gets no more time than a client with one.
 */
export class EventLoopBudget {
  /** End of the current turn; 0 = no turn has begun. */
  #endMs = 0
  /** Time at which the current connection has to wait again, if others wait. */
  #sliceEndMs = 0
  /** True if the turn of the event loop has accepted a connection: more of them may be queued. */
  #hasAccepted = false
  /** Before this time, turns of the event loop that accept a connection serve no query. */
  #acceptEndMs = 0
  /** Those that wait, by network and client; the first of each is next. */
  readonly #networks = new Map<string, Map<string, Run[]>>()
  readonly #next = (): void => this.#goOn()

  /** Asked before each query: true = no more in this turn of the loop; `wait` for the next. */
  isOver(): boolean {
    const nowMs = performance.now()
    if (this.#endMs !== 0) return nowMs >= this.#sliceEndMs
    this.#endMs = nowMs + TURN_MS
    this.#sliceEndMs = this.#endMs
    setImmediate(this.#next)
    return false
  }

  /** A connection was accepted. */
  onAccept(): void {
    this.#hasAccepted = true
  }

  /** Calls `run` when it is the turn of the peer again. Call it only after `isOver` has returned true. */
  wait({ network, client }: Peer, run: Run): void {
    let clients = this.#networks.get(network)
    if (clients === undefined) this.#networks.set(network, (clients = new Map()))
    const runs = clients.get(client)
    if (runs === undefined) clients.set(client, [run])
    else runs.push(run)
  }

  #goOn(): void {
    if (this.#networks.size > 0 && this.#isAccepting()) {
      setImmediate(this.#next)
      return
    }
    const startMs = performance.now()
    this.#endMs = 0
    while (this.#networks.size > 0 && !this.#isTurnOver()) {
      const run = this.#take()
      const nowMs = performance.now()
      this.#sliceEndMs =
        this.#networks.size > 0 ? Math.min(nowMs + SLICE_MS, this.#endMs) : this.#endMs
      run()
    }
    this.#sliceEndMs = this.#endMs
    const nowMs = performance.now()
    this.#acceptEndMs = nowMs + (nowMs - startMs)
  }

  /** True if the next turn of the event loop is for accepting connections only. */
  #isAccepting(): boolean {
    const hasAccepted = this.#hasAccepted
    this.#hasAccepted = false
    return hasAccepted && performance.now() < this.#acceptEndMs
  }

  #isTurnOver(): boolean {
    this.#sliceEndMs = this.#endMs
    return this.isOver()
  }

  /** Removes and returns the next run, and puts its client and its network last. */
  #take(): Run {
    const [[network, clients]] = this.#networks as unknown as [[string, Map<string, Run[]>]]
    const [[client, runs]] = clients as unknown as [[string, Run[]]]
    const run = runs.shift()!
    clients.delete(client)
    if (runs.length > 0) clients.set(client, runs)
    this.#networks.delete(network)
    if (clients.size > 0) this.#networks.set(network, clients)
    return run
  }
}
