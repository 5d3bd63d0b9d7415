import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { ApiClient } from '../../kube/api.ts'
import { Deadline } from '../../kube/deadline.ts'
import { readText } from '../../kube/read-body.ts'

/** How often the API server is asked whether it answers: twice while a site without an answer still counts as heard. */
const ASK_MS = 3000
const ANSWER_OCTETS_MAX = 65_536

interface ApiHeartbeatParts {
  readonly api: Pick<ApiClient, 'get'>
  readonly clock: Pick<Clock, 'monotonic'>
  readonly timers: Timers
}

/** Asks an API server all the time whether it is alive. An idle watch is silent for minutes. */
export class ApiHeartbeat {
  readonly #parts: ApiHeartbeatParts
  #heardMs = Number.NEGATIVE_INFINITY
  #asking: Deadline | undefined
  #stop: () => void = () => {}

  constructor(parts: ApiHeartbeatParts) {
    this.#parts = parts
  }

  /** When it last answered, in monotonic milliseconds; -Infinity = never. */
  get heardMs(): number {
    return this.#heardMs
  }

  start(): void {
    this.#stop = this.#parts.timers.every(ASK_MS, () => void this.#ask())
  }

  close(): void {
    this.#stop()
    this.#asking?.abort(new Error('closed'))
  }

  /** Notes an answer to another request. */
  note(): void {
    this.#heardMs = this.#parts.clock.monotonic()
  }

  /** Any answer but an error of the server shows that it is alive. */
  async #ask(): Promise<void> {
    if (this.#asking !== undefined) return
    const { api, timers } = this.#parts
    const deadline = new Deadline(timers, ASK_MS)
    this.#asking = deadline
    try {
      const response = await api.get('/version', deadline.signal)
      await readText(response, ANSWER_OCTETS_MAX, () => {})
      if (response.status < 500) this.note()
    } catch {
      // Silence counts, not its cause: the watch reports that.
    } finally {
      deadline.end()
      this.#asking = undefined
    }
  }
}
