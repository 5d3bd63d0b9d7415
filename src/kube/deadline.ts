import type { Timers } from '../base/timers.ts'
import { ApiError } from './api.ts'

/** Ends a request on which nothing comes any more: a peer that is cut off says no goodbye. */
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

  /** Something came: the time starts anew. */
  touch(): void {
    this.#cancel()
    this.#cancel = this.#timers.after(this.#idleMs, () => {
      this.abort(new ApiError(0, `nothing came for ${this.#idleMs / 1000} s`))
    })
  }

  abort(reason: Error): void {
    this.#cancel()
    this.#controller.abort(reason)
  }

  /** The request is over. */
  end(): void {
    this.#cancel()
  }
}
