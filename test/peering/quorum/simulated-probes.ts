export interface CheckTimes {
  /** Seconds between two probes. */
  readonly probeS: number
  readonly failures: number
  readonly successes: number
}

/** From a fault to the last answer with a dead address, and from a recovery to the first one with it again. */
export function boundsOf({ probeS, failures, successes }: CheckTimes) {
  return { downS: (failures + 2) * probeS + 10, upS: (successes + 1) * probeS + 10 }
}

/** Health of one address as the probes of one site find it. */
export class ProbedAddress {
  health: 'up' | 'down' | 'unknown' = 'unknown'
  sinceS = 0
  #failures = 0
  #successes = 0

  note(isReached: boolean, nowS: number, { failures, successes }: CheckTimes): void {
    this.#failures = isReached ? 0 : this.#failures + 1
    this.#successes = isReached ? this.#successes + 1 : 0
    const isUp = isReached && (this.health !== 'down' || this.#successes >= successes)
    const next = isUp ? 'up' : this.#failures > failures ? 'down' : this.health
    if (next === this.health) return
    this.health = next
    this.sinceS = nowS
  }
}
