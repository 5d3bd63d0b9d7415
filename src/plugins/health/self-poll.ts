import { get } from 'node:http'
import type { Clock } from '../../base/clock.ts'
import { printDuration } from '../../base/duration.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'

const INTERVAL_MS = 1000
const TIMEOUT_MS = 3000
/** A request inside one machine that takes longer shows that the process is overloaded. */
const SLOW_MS = 1000

/** Fetches `url`: resolves when the reply is there, rejects after `timeoutMs`. */
export type PollUrl = (url: string, timeoutMs: number) => Promise<void>

interface SelfPollOptions {
  readonly url: string
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  readonly fetch: PollUrl
  readonly observeSeconds: (seconds: number) => void
  readonly countFailure: () => void
}

/** Requests its own health endpoint every second, and measures the duration. */
export class SelfPoll {
  readonly #options: SelfPollOptions
  #busy = false
  #stopped = false
  #stop = (): void => {}

  constructor(options: SelfPollOptions) {
    this.#options = options
  }

  start(): void {
    this.#stop = this.#options.timers.every(INTERVAL_MS, () => void this.#poll())
  }

  stop(): void {
    this.#stopped = true
    this.#stop()
  }

  async #poll(): Promise<void> {
    if (this.#busy) return
    this.#busy = true
    const { url, clock, log, fetch, observeSeconds, countFailure } = this.#options
    const startedMs = clock.monotonic()
    const failure = await fetch(url, TIMEOUT_MS).then(
      () => '',
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
    this.#busy = false
    // A request cut short by the end of the process is no failure.
    if (this.#stopped) return
    const tookMs = clock.monotonic() - startedMs
    observeSeconds(tookMs / 1000)
    if (failure !== '') {
      countFailure()
      log.warning(`Local health request to "${url}" failed: ${failure}`, 'health-poll-failed')
    } else if (tookMs > SLOW_MS) {
      log.warning(
        `Local health request to "${url}" took more than 1s: ${printDuration(tookMs)}`,
        'health-poll-slow',
      )
    }
  }
}

/** `Fetch` over Node's HTTP client, without a proxy and without keeping connections. */
export const fetchHttp: PollUrl = (url, timeoutMs) =>
  new Promise((resolve, reject) => {
    const request = get(url, { agent: false, timeout: timeoutMs }, (response) => {
      response.on('error', reject)
      response.on('end', resolve)
      response.resume()
    })
    request.on('timeout', () => request.destroy(new Error(`no reply within ${timeoutMs} ms`)))
    request.on('error', reject)
  })
