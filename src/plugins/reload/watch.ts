import { InputError } from '../../base/errors.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'

interface WatchOptions {
  /** Digest of the running instance. */
  readonly loadedDigest: string
  /** Returns the digest of the current Corefile. Throws InputError if it can't be read or parsed. */
  readonly digest: () => string
  readonly intervalMs: number
  readonly timers: Timers
  readonly log: Logger
  /** Applies the new Corefile. Resolves to the reason of a failure; '' = success. */
  readonly reload: () => Promise<string>
  readonly countFailure: () => void
  /** Gets each fault once, beside the log. */
  readonly report: (fault: string) => void
}

/** Checks the Corefile at intervals, and reloads when it has changed. */
export class CorefileWatch {
  readonly #options: WatchOptions
  #seenDigest: string
  #lastFault = ''
  #reloadFault = ''
  #busy = false
  #stop = (): void => {}

  constructor(options: WatchOptions) {
    this.#options = options
    this.#seenDigest = options.loadedDigest
  }

  /** Why the present Corefile is not in use; '' = it is, or it was not checked yet. */
  get fault(): string {
    return this.#lastFault || this.#reloadFault
  }

  start(): void {
    const { intervalMs, log, timers } = this.#options
    const guarded = guarding(log, 'Checking the Corefile for changes')
    this.#stop = timers.every(intervalMs, () => void guarded(() => this.#check()))
  }

  stop(): void {
    this.#stop()
  }

  async #check(): Promise<void> {
    if (this.#busy) return
    const digest = this.#currentDigest()
    if (digest === undefined || digest === this.#seenDigest) return
    // After a failed reload, the Corefile is not tried again until it changes.
    this.#seenDigest = digest
    this.#busy = true
    const fault = await this.#options.reload().finally(() => {
      this.#busy = false
    })
    this.#reloadFault = fault
    if (fault === '') return
    this.#options.countFailure()
    this.#options.log.error(
      `Corefile changed but reload failed: ${fault}`,
      'corefile-reload-failed',
    )
    this.#options.report(fault)
  }

  /** Undefined while the Corefile can't be read or is invalid. Each fault is logged once. */
  #currentDigest(): string | undefined {
    try {
      const digest = this.#options.digest()
      this.#lastFault = ''
      return digest
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      if (error.message !== this.#lastFault) {
        this.#options.log.warning(
          `Corefile parse failed: ${error.message}`,
          'corefile-parse-failed',
        )
        this.#options.report(error.message)
      }
      this.#lastFault = error.message
      return undefined
    }
  }
}
