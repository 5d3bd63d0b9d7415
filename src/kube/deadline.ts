import type { Timers } from '../base/timers.ts'
import { ApiError } from './api.ts'

/**
 * Aborts a request on which no data arrives for a while: a peer whose connection is cut does not
 * close it.
 */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #timers: Timers
  readonly #idleMs: number
  #cancel: () => void = () => {}

  constructor(timers: Timers, idleMs: number) {
    this.#timers = timers
    this.#idleMs = idleMs
    this.touch()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Restarts the time after data was received. */
  touch(): void {
    this.#cancel()
    this.#cancel = this.#timers.after(this.#idleMs, () => {
      this.abort(new ApiError(0, `no data for ${this.#idleMs / 1000} s`))
    })
  }

  abort(reason: Error): void {
    this.#cancel()
    this.#controller.abort(reason)
  }

  /** Stops the deadline when the request has ended. */
  end(): void {
    this.#cancel()
  }
}
