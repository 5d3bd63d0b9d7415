import type { Timers } from '../base/timers.ts'
import type { WatchEvent } from './watch-event.ts'

/**
 * Milliseconds without an event before events are passed on, so that several writes of a user
 * become one batch.
 */
const QUIET_MS = 4
/**
 * Events that are passed on without waiting. Nothing is read while they are processed, so the queue
 * never holds more.
 */
const EVENTS_MAX = 512

/** Collects the events of a watch into batches. */
export class EventQueue {
  readonly #timers: Timers
  readonly #take: (events: readonly WatchEvent[]) => void
  #events: WatchEvent[] = []
  #cancel: (() => void) | undefined

  constructor(timers: Timers, take: (events: readonly WatchEvent[]) => void) {
    this.#timers = timers
    this.#take = take
  }

  add(event: WatchEvent): void {
    this.#events.push(event)
    if (this.#events.length >= EVENTS_MAX) this.flush()
    else this.#cancel ??= this.#timers.after(QUIET_MS, () => this.flush())
  }

  /** Passes on the queued events. */
  flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const events = this.#events
    if (events.length === 0) return
    this.#events = []
    this.#take(events)
  }
}
