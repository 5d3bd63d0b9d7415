/** Longest that all connections together are served before others get the event loop. */
const TURN_MS = 2

/**
 * Shares the event loop between the connections of a listener, and between them and the rest of the
 * process. A kernel that takes replies as fast as they are made calls back without the loop ever going
 * on, so a connection with thousands of queries in its buffer could keep everybody else waiting:
 *
 *     turn: serve, serve, … 2 ms ─▶ isOver ─▶ wait(…) ─▶ UDP, timers, accept, … ─▶ next turn, in order
 */
export class Turns {
  /** When the turn under way is over; 0 = none has begun. */
  #endMs = 0
  #waiting: (() => void)[] = []
  readonly #next = (): void => this.#goOn()

  /** Asked before each query: true = no more in this turn of the loop; `wait` for the next. */
  isOver(): boolean {
    const nowMs = performance.now()
    if (this.#endMs !== 0) return nowMs >= this.#endMs
    this.#endMs = nowMs + TURN_MS
    setImmediate(this.#next)
    return false
  }

  /** Calls `run` in a later turn, after those that waited before. Only once `isOver` has said so. */
  wait(run: () => void): void {
    this.#waiting.push(run)
  }

  #goOn(): void {
    this.#endMs = 0
    const waiting = this.#waiting
    this.#waiting = []
    let ran = 0
    while (ran < waiting.length && !this.isOver()) waiting[ran++]!()
    // Who waited longer goes before those that have just had a turn.
    if (ran < waiting.length) this.#waiting = waiting.slice(ran).concat(this.#waiting)
  }
}
