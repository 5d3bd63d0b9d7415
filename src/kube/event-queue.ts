import type { Timers } from '../base/timers.ts'
import type { WatchEvent } from './watch-event.ts'

/** Quiet time before events are passed on: what an operator writes in several steps should be one. */
const QUIET_MS = 4
/** Events that are passed on without waiting. While they are taken in, nothing is read: so there are never more. */
const EVENTS_MAX = 512

/** Gathers the events of a watch into batches. */
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

  /** Passes on what is there. */
  flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const events = this.#events
    if (events.length === 0) return
    this.#events = []
    this.#take(events)
  }
}
