import type { Clock } from '../../base/clock.ts'

/** An hour of a time zone, or an adjustment, is no reason to stop; a day is. */
const JUMP_MS = 86_400_000
/** After a jump forward, the clock is right again if it was steady for this long. */
const STEADY_MS = 3_600_000
/** 2023-01-01: a computer without a battery starts decades before it. */
const EARLIEST_MS = 1_672_531_200_000

/**
 * Decides whether the system's time can be trusted for new signatures. With a wrong time, they would be invalid for
 * everyone, while those that the zone has are valid for days.
 */
export class ClockGuard {
  readonly #clock: Clock
  /** The system's time minus the monotonic time, as last trusted. */
  #trustedMs: number
  /** The same after a jump, and since when; undefined = no jump. */
  #jump: { offsetMs: number; sinceMs: number } | undefined
  /** The time at which the machine started, as last trusted. */
  #startMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#trustedMs = clock.now() - clock.monotonic()
    this.#startMs = this.#machineStart()
  }

  /**
   * Returns why no signature can be made now; '' = it can. `newestInceptionSeconds`: of all signatures of the zone; 0 =
   * it has none.
   */
  refusal(newestInceptionSeconds: number): string {
    const nowMs = this.#clock.now()
    if (nowMs < EARLIEST_MS) return `the system's time is ${print(nowMs)}; set the clock`
    if (nowMs < newestInceptionSeconds * 1000) {
      const newest = print(newestInceptionSeconds * 1000)
      return `the system's time ${print(nowMs)} is before the newest signature of ${newest}; set the clock`
    }
    return this.#refusalOfJump(nowMs)
  }

  #refusalOfJump(nowMs: number): string {
    const monotonicMs = this.#clock.monotonic()
    const offsetMs = nowMs - monotonicMs
    if (Math.abs(offsetMs - this.#trustedMs) < JUMP_MS || this.#hasSlept()) {
      this.#trust(offsetMs)
      return ''
    }
    if (this.#jump === undefined || Math.abs(offsetMs - this.#jump.offsetMs) >= JUMP_MS) {
      this.#jump = { offsetMs, sinceMs: monotonicMs }
    }
    if (monotonicMs - this.#jump.sinceMs >= STEADY_MS) {
      this.#trust(offsetMs)
      this.#startMs = this.#machineStart()
      return ''
    }
    const hours = Math.round((offsetMs - this.#trustedMs) / 3_600_000)
    return `the system's time jumped by ${hours} h; it is trusted again when it was steady for an hour`
  }

  #trust(offsetMs: number): void {
    this.#trustedMs = offsetMs
    this.#jump = undefined
  }

  /** True if the machine slept for the time of the jump. It costs a system call, so it is asked after a jump only. */
  #hasSlept(): boolean {
    return Math.abs(this.#machineStart() - this.#startMs) < JUMP_MS
  }

  #machineStart(): number {
    return this.#clock.now() - (this.#clock.uptime?.() ?? Number.NaN)
  }
}

function print(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
