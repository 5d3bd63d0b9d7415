import { setImmediate as nextTurn } from 'node:timers/promises'

/** Tasks that wait, by default. More are refused. */
const WAITING_MAX = 32

/**
 * Runs tasks one at a time, each from a turn of the event loop of its own, so that clients of the API
 * can't keep the thread from its other work.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  readonly #waitingMax: number

  constructor(waitingMax = WAITING_MAX) {
    this.#waitingMax = waitingMax
  }

  /** Resolves or rejects as the task does; resolves to undefined if too many tasks wait. */
  async run<T>(task: () => Promise<T>): Promise<T | undefined> {
    if (this.#waiting >= this.#waitingMax) return undefined
    this.#waiting++
    const done = this.#last.then(() => nextTurn()).then(task)
    this.#last = done.catch(() => {})
    try {
      return await done
    } finally {
      this.#waiting--
    }
  }
}
