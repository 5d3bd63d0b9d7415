import { assert } from '../base/assert.ts'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import { ApiError, clip } from './api.ts'
import { isAlreadyThere, isConflict } from './objects.ts'

const FIRST_RETRY_MS = 200
const LAST_RETRY_MS = 5 * 60_000
/**
 * Keys at the same time. One key exists per object, so more of them indicate a bug or an attack.
 */
const KEYS_MAX = 1_000_000

export interface WorkResult {
  /** Runs the key again after that time, unless it is added before. */
  readonly againMs?: number
}

interface WorkQueueOptions {
  /** The kind of the keys, for the log: `dnsrecords`. */
  readonly what: string
  /** Reconciles one key. After a rejection the key runs again, with growing waits. */
  readonly work: (key: string) => Promise<WorkResult | undefined>
  /** Maximum number of parallel runs; a key never runs twice at the same time. */
  readonly workers: number
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
  readonly keysMax?: number
  /** Longest wait after a failed run. Default 5 minutes. */
  readonly retryMsMax?: number
}

/** Counters since the start, for metrics. */
export interface WorkQueueCounts {
  runs: number
  failures: number
  /** Rejected keys: the queue was full. */
  dropped: number
}

/** One key that is waiting, running, or due later. */
interface Entry {
  isWaiting: boolean
  isRunning: boolean
  /** Added while it runs: the run may have used outdated state. */
  isStale: boolean
  dueMs: number
  cancel: (() => void) | undefined
  /** Consecutive failed runs. */
  failures: number
  lastFault: string
}

/**
 * Keys with pending work, each at most once:
 *
 *     add ─▶ waiting ─▶ running ─▶ done
 *               ▲          ├─▶ (added meanwhile) waiting
 *               └─ later ◀─┴─▶ (failed, or asked for)
 *
 * A run covers all requests from before its start, including a later due time.
 */
export class WorkQueue {
  readonly counts: WorkQueueCounts = { runs: 0, failures: 0, dropped: 0 }
  readonly #options: WorkQueueOptions
  readonly #entries = new Map<string, Entry>()
  #waiting: string[] = []
  /** Index in `#waiting` of the first key that still waits. */
  #head = 0
  #running = 0
  #isStarted = false
  #isClosed = false
  #whenIdle: () => void = () => {}

  constructor(options: WorkQueueOptions) {
    this.#options = options
  }

  /** Keys that are waiting for a worker. */
  get depth(): number {
    return this.#waiting.length - this.#head
  }

  get runningCount(): number {
    return this.#running
  }

  /** Starts the workers. Nothing runs before, as caches may have to be filled first. */
  start(): void {
    this.#isStarted = true
    this.#pump()
  }

  /** Runs `key` as soon as a worker is free. False: the queue is full. */
  add(key: string): boolean {
    const entry = this.#entry(key)
    if (entry === undefined) return false
    cancelDelay(entry)
    if (entry.isRunning) entry.isStale = true
    else if (!entry.isWaiting) {
      entry.isWaiting = true
      this.#waiting.push(key)
      this.#pump()
    }
    return true
  }

  /**
   * Runs `key` after that time, or at its existing due time if that is earlier. False: the queue is
   * full.
   */
  addAfter(key: string, delayMs: number): boolean {
    if (delayMs <= 0) return this.add(key)
    const entry = this.#entry(key)
    if (entry === undefined) return false
    if (entry.isWaiting || entry.isStale) return true
    const dueMs = this.#options.clock.monotonic() + delayMs
    if (entry.cancel !== undefined && entry.dueMs <= dueMs) return true
    cancelDelay(entry)
    entry.dueMs = dueMs
    entry.cancel = this.#options.timers.after(delayMs, () => {
      entry.cancel = undefined
      this.add(key)
    })
    return true
  }

  /**
   * Runs all keys now that wait after a failed run, because its cause is resolved. A key that is
   * running may still fail from that cause.
   */
  retryFailed(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.failures === 0) continue
      entry.failures = 0
      if (entry.cancel !== undefined) this.add(key)
    }
  }

  /** Starts nothing more; resolves once all runs have ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const entry of this.#entries.values()) cancelDelay(entry)
    this.#waiting = []
    this.#head = 0
    if (this.#running > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve))
  }

  #entry(key: string): Entry | undefined {
    if (this.#isClosed) return undefined
    const known = this.#entries.get(key)
    if (known !== undefined) return known
    if (this.#entries.size >= (this.#options.keysMax ?? KEYS_MAX)) {
      if (this.counts.dropped++ === 0) {
        this.#options.log.error(
          `${this.#options.what}: too many keys, some are not processed`,
          'reconcile-queue-full',
        )
      }
      return undefined
    }
    const entry: Entry = {
      isWaiting: false,
      isRunning: false,
      isStale: false,
      dueMs: 0,
      cancel: undefined,
      failures: 0,
      lastFault: '',
    }
    this.#entries.set(key, entry)
    return entry
  }

  #pump(): void {
    while (this.#isStarted && !this.#isClosed && this.#running < this.#options.workers) {
      const key = this.#waiting[this.#head]
      if (key === undefined) break
      this.#head++
      // Compacting costs as much as the rest is long, so it is done only now and then.
      if (this.#head * 2 > this.#waiting.length) {
        this.#waiting = this.#waiting.slice(this.#head)
        this.#head = 0
      }
      void this.#run(key)
    }
  }

  async #run(key: string): Promise<void> {
    const entry = this.#entries.get(key)
    assert(entry !== undefined, 'a waiting key has an entry')
    cancelDelay(entry)
    entry.isWaiting = false
    entry.isRunning = true
    this.#running++
    this.counts.runs++
    let againMs: number | undefined
    try {
      againMs = (await this.#options.work(key))?.againMs
      entry.failures = 0
      entry.lastFault = ''
    } catch (error) {
      againMs = this.#fail(key, entry, error)
    }
    entry.isRunning = false
    this.#running--
    this.#settle(key, entry, againMs)
    this.#pump()
    if (this.#isClosed && this.#running === 0) this.#whenIdle()
  }

  #settle(key: string, entry: Entry, againMs: number | undefined): void {
    if (this.#isClosed) return
    if (entry.isStale) {
      entry.isStale = false
      this.add(key)
    } else if (againMs !== undefined) {
      this.addAfter(key, againMs)
    }
    // A key that was added meanwhile may be running already.
    const isIdle = !entry.isWaiting && !entry.isRunning
    if (isIdle && entry.cancel === undefined) this.#entries.delete(key)
  }

  /** Returns the wait in milliseconds. */
  #fail(key: string, entry: Entry, error: unknown): number {
    const { what, log, random, retryMsMax = LAST_RETRY_MS } = this.#options
    this.counts.failures++
    const mostMs = Math.min(FIRST_RETRY_MS * 2 ** entry.failures, retryMsMax)
    entry.failures = Math.min(entry.failures + 1, 30)
    const wantedMs = error instanceof ApiError ? error.retryAfterSeconds * 1000 : 0
    const half = mostMs / 2
    const delayMs = Math.max(half + random.below(half + 1), Math.min(wantedMs, LAST_RETRY_MS))
    const fault = clip(error instanceof Error ? error.message : String(error))
    if (fault !== entry.lastFault) {
      const line = `${what} ${key}: ${fault}; retrying`
      // A conflict with another writer is normal.
      if (isConflict(error) || isAlreadyThere(error)) log.debug(line, 'reconcile-failed')
      else log.warning(line, 'reconcile-failed')
      if (!(error instanceof ApiError) && error instanceof Error)
        log.debug(error.stack ?? '', 'stack')
    }
    entry.lastFault = fault
    return delayMs
  }
}

function cancelDelay(entry: Entry): void {
  entry.cancel?.()
  entry.cancel = undefined
}
