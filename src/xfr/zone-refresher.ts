import type { Clock } from '../base/clock.ts'
import type { Guarded } from '../base/telemetry/guard.ts'
import type { Timers } from '../base/timers.ts'

export interface ZoneRefresherOptions {
  readonly clock: Clock
  readonly timers: Timers
  readonly guarded: Guarded
  /** Queries the primaries once. Resolves to true if one of them confirmed the zone. */
  readonly refresh: () => Promise<boolean>
  /** Milliseconds from a refresh to the next, after `failures` failed ones in a row. */
  readonly pauseMs: (failures: number) => number
  /** Minimum milliseconds from a refresh to the next, however many NOTIFYs arrive. */
  readonly gapMs: number
  /** Runs a refresh once there is room for it; absent = at once. */
  readonly queue?: (refresh: () => Promise<void>) => Promise<void>
  /** Monotonic milliseconds at which the zone expires; Infinity = it does not expire. */
  readonly expiryMs?: () => number
  /** Stops serving the zone. From then on, `expiryMs` returns Infinity. */
  readonly expire?: () => void
}

/**
 * Decides when a zone is refreshed from its primaries, and expires it if none of them confirms it
 * in time (RFC 1034 section 4.3.5):
 *
 *     start ─▶ queued ─▶ refresh ─┬▶ confirmed ─▶ pause ───────┐
 *                 ▲               └▶ failed ─▶ longer pauses ──┤
 *                 └────────────────── or NOTIFY (RFC 1996) ◀───┘
 */
export class ZoneRefresher {
  readonly #options: ZoneRefresherOptions
  #state: 'idle' | 'queued' | 'running' = 'idle'
  readonly #stopping = new AbortController()
  /** A NOTIFY arrived during a refresh. */
  #again = false
  /** Failed refreshes in a row. */
  #failures = 0
  /** Monotonic milliseconds: when the next refresh is due, and when the last one ended. */
  #nextMs = Number.NEGATIVE_INFINITY
  #endedMs = Number.NEGATIVE_INFINITY
  /** No refresh before this time. */
  #restUntilMs = Number.NEGATIVE_INFINITY
  #cancelTimer = (): void => {}
  #work: Promise<void> = Promise.resolve()

  constructor(options: ZoneRefresherOptions) {
    this.#options = options
  }

  /** Refreshes the zone now, and from then on when a refresh is due. */
  start(): void {
    this.#reconcile()
  }

  stop(): void {
    this.#stopping.abort()
    this.#cancelTimer()
  }

  /** Aborted by `stop`. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** Refreshes the zone soon, because a primary announced a new version. */
  notify(): void {
    if (this.#state === 'running') this.#again = true
    const dueMs = this.#notBefore(this.#endedMs + this.#options.gapMs)
    if (this.#state !== 'idle' || dueMs >= this.#nextMs) return
    this.#nextMs = dueMs
    this.#arm()
  }

  /** Delays the next refresh, to spare the primaries. */
  rest(milliseconds: number): void {
    this.#restUntilMs = this.#options.clock.monotonic() + milliseconds
  }

  /** Resolves when the current refresh ends. */
  async settled(): Promise<void> {
    await this.#work
  }

  #notBefore(dueMs: number): number {
    return Math.max(dueMs, this.#restUntilMs)
  }

  get #expiryMs(): number {
    return this.#options.expiryMs?.() ?? Number.POSITIVE_INFINITY
  }

  #arm(): void {
    this.#cancelTimer()
    const { clock, timers } = this.#options
    const nextMs = this.#state === 'idle' ? this.#nextMs : Number.POSITIVE_INFINITY
    const dueMs = Math.min(nextMs, this.#expiryMs)
    if (this.signal.aborted || dueMs === Number.POSITIVE_INFINITY) return
    const delayMs = Math.max(0, dueMs - clock.monotonic())
    this.#cancelTimer = timers.after(delayMs, () => this.#reconcile())
  }

  #reconcile(): void {
    const { clock, guarded, expire, queue } = this.#options
    const nowMs = clock.monotonic()
    if (nowMs >= this.#expiryMs) void guarded(() => expire?.())
    if (this.#state === 'idle' && nowMs >= this.#nextMs) {
      this.#state = 'queued'
      const run = (): Promise<void> => guarded(() => this.#refresh())
      this.#work = queue === undefined ? run() : queue(run)
    }
    this.#arm()
  }

  async #refresh(): Promise<void> {
    if (this.signal.aborted) return
    const { clock, refresh, pauseMs, gapMs } = this.#options
    this.#state = 'running'
    this.#again = false
    let isConfirmed = false
    try {
      isConfirmed = await refresh()
    } finally {
      this.#state = 'idle'
      this.#failures = isConfirmed ? 0 : this.#failures + 1
      this.#endedMs = clock.monotonic()
      const pause = pauseMs(this.#failures)
      this.#nextMs = this.#notBefore(this.#endedMs + (this.#again ? Math.min(pause, gapMs) : pause))
      this.#arm()
    }
  }
}
