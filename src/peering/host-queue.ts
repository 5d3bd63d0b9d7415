import type { Clock } from '../base/clock.ts'
import { SLICE_MS } from '../base/slices.ts'
import { type Guarded, guarding } from '../base/telemetry/guard.ts'
import type { Logger } from '../base/telemetry/log.ts'

interface HostQueueParts {
  /** Merges the hosts of a slice. It must read all of them. */
  readonly merge: (hosts: Iterable<string>) => void
  readonly clock: Clock
  readonly log: Logger
}

/** The hosts to merge again, each once: the first at once, the others in slices between other work. */
export class HostQueue {
  readonly #parts: HostQueueParts
  readonly #guarded: Guarded
  readonly #hosts = new Set<string>()
  /** A scheduled run will merge the hosts. */
  #isScheduled = false
  #isClosed = false

  constructor(parts: HostQueueParts) {
    this.#parts = parts
    this.#guarded = guarding(parts.log, 'Merging the endpoints of peers')
  }

  get size(): number {
    return this.#hosts.size
  }

  /** `work` merges it. */
  add(host: string): void {
    this.#hosts.add(host)
  }

  /** Moves the host to the end, if it is in the queue. */
  postpone(host: string): void {
    if (this.#hosts.delete(host)) this.#hosts.add(host)
  }

  work(): void {
    if (this.#isScheduled || this.#isClosed || this.#hosts.size === 0) return
    void this.#guarded(() => this.#parts.merge(this.#slice()))
    if (this.#hosts.size === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.work()
    })
  }

  /** Merges all hosts. Resolves then, or when the queue is closed. */
  async finish(): Promise<void> {
    this.work()
    while (this.#hosts.size > 0 && !this.#isClosed) {
      await new Promise((resume) => setImmediate(resume))
    }
  }

  close(): void {
    this.#isClosed = true
  }

  *#slice(): Generator<string> {
    const { clock } = this.#parts
    const endMs = clock.monotonic() + SLICE_MS
    for (const host of this.#hosts) {
      this.#hosts.delete(host)
      yield host
      if (clock.monotonic() >= endMs) return
    }
  }
}
