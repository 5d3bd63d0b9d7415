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
