import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Timers } from '../base/timers.ts'
import type { Logger } from '../telemetry/log.ts'
import { type ApiClient, ApiError, type ApiObject, clip } from './api.ts'
import { Backoff } from './backoff.ts'
import {
  beginSeries,
  composeEvent,
  composeSeries,
  type EventSeries,
  type EventSubject,
  type Happening,
  seriesKey,
} from './event-series.ts'
import { isAlreadyThere, isNotFound, type ObjectRef, Objects } from './objects.ts'
import { TokenBucket } from './token-bucket.ts'

const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' }
/** Different things that are remembered, so that they are told as one when they happen again. */
const SERIES_MAX = 2000
/** What is quiet for this long begins anew. */
const SERIES_MS = 6 * 60_000
/** A series is written this often at most, whatever happens. */
const REWRITE_MS = 60_000
/** Subjects whose rate is known. */
const SUBJECTS_MAX = 2000
/** Of one object: this many at once, then one in that time. */
const SUBJECT_BURST = 25
const SUBJECT_EVERY_MS = 5 * 60_000
/** Of all. */
const BURST = 100
const EVERY_MS = 200
const RETRY_AFTER_SECONDS_MAX = 60
/** What happens within this time is written together. */
const GATHER_MS = 500

export interface EventRecorderOptions {
  readonly api: ApiClient
  /** A qualified name: `kuadrant.io/sextant-operator`. */
  readonly controller: string
  /** Which of them: the name of the pod. */
  readonly instance: string
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

/** What was done since the start, for metrics. */
export interface EventRecorderCounts {
  /** Requests that went well. */
  written: number
  /** Happenings that nobody was told of: too many, or the API doesn't want them. */
  dropped: number
}

/**
 * Tells what happens to objects as Events of events.k8s.io/v1. The same thing time and again is one
 * Event with a count. Events are a courtesy: whoever records never waits, what is too much is dropped,
 * and no fault goes further than the log.
 */
export class EventRecorder {
  readonly counts: EventRecorderCounts = { written: 0, dropped: 0 }
  readonly #options: EventRecorderOptions
  readonly #objects: Objects
  readonly #backoff: Backoff
  /** By seriesKey, the one that happened last at the end. */
  readonly #series = new Map<string, EventSeries>()
  readonly #rates = new Map<string, TokenBucket>()
  readonly #rate: TokenBucket
  /** Those of `#series` with something to write. */
  readonly #unwritten = new Set<EventSeries>()
  #isWriting = false
  #isClosed = false
  #sequence = 0
  #lastFault = ''
  #cancel: (() => void) | undefined

  constructor(options: EventRecorderOptions) {
    const { api, timers, random, clock } = options
    this.#options = options
    this.#objects = new Objects({ api, timers, timeoutMs: 10_000 })
    this.#backoff = new Backoff(random)
    this.#rate = new TokenBucket(clock, BURST, EVERY_MS)
  }

  /** Never waits, never throws. `note`s should be alike for what is alike: no times, no counts. */
  record(subject: EventSubject, happening: Happening): void {
    if (this.#isClosed) return
    const nowMs = this.#options.clock.now()
    const key = seriesKey(subject, happening)
    const known = this.#series.get(key)
    // The last one last: the first is forgotten first.
    this.#series.delete(key)
    if (known !== undefined && nowMs - known.lastMs < SERIES_MS) {
      known.count++
      known.lastMs = nowMs
      this.#series.set(key, known)
      this.#unwritten.add(known)
    } else if (this.#mayBegin(subject)) {
      if (known !== undefined) this.#forget(known)
      const series = beginSeries(subject, happening, nowMs, this.#sequence++)
      this.#series.set(key, series)
      this.#unwritten.add(series)
    } else {
      this.counts.dropped++
    }
    for (const [oldest, series] of this.#series) {
      if (this.#series.size <= SERIES_MAX) break
      this.#series.delete(oldest)
      this.#forget(series)
    }
    this.#schedule(GATHER_MS)
  }

  /** Writes nothing more. */
  close(): void {
    this.#isClosed = true
    this.#cancel?.()
    this.#objects.close()
  }

  #mayBegin({ namespace, kind, name }: EventSubject): boolean {
    const key = JSON.stringify([namespace, kind, name])
    const { clock } = this.#options
    const rate = this.#rates.get(key) ?? new TokenBucket(clock, SUBJECT_BURST, SUBJECT_EVERY_MS)
    this.#rates.delete(key)
    this.#rates.set(key, rate)
    for (const [oldest] of this.#rates) {
      if (this.#rates.size <= SUBJECTS_MAX) break
      this.#rates.delete(oldest)
    }
    return rate.take() && this.#rate.take()
  }

  #forget(series: EventSeries): void {
    if (this.#unwritten.delete(series)) this.counts.dropped++
  }

  #schedule(delayMs: number): void {
    if (this.#cancel !== undefined || this.#isWriting || this.#isClosed) return
    this.#cancel = this.#options.timers.after(delayMs, () => {
      this.#cancel = undefined
      void this.#writeAll()
    })
  }

  /** One after the other: events must not be in the way of what they are about. */
  async #writeAll(): Promise<void> {
    this.#isWriting = true
    let delayMs = GATHER_MS
    for (const series of [...this.#unwritten]) {
      if (this.#isClosed) break
      const nowMs = this.#options.clock.now()
      if (series.writtenCount > 0 && nowMs - series.writtenMs < REWRITE_MS) continue
      try {
        await this.#write(series, nowMs)
        this.#backoff.reset()
        this.#lastFault = ''
      } catch (error) {
        delayMs = this.#fail(series, error)
        if (delayMs > 0) break
      }
    }
    this.#isWriting = false
    if (this.#unwritten.size > 0) this.#schedule(Math.max(delayMs, GATHER_MS))
  }

  async #write(series: EventSeries, nowMs: number): Promise<void> {
    const { controller, instance } = this.#options
    const { count, writtenCount } = series
    if (writtenCount === 0) {
      await this.#create(series, composeEvent(series, controller, instance))
    } else {
      await this.#objects.patch(refOf(series), composeSeries(series))
    }
    this.counts.written++
    series.writtenCount = count
    series.writtenMs = nowMs
    // It may have happened again meanwhile.
    if (series.count === count) this.#unwritten.delete(series)
  }

  async #create(series: EventSeries, event: ApiObject): Promise<void> {
    try {
      await this.#objects.create(EVENTS, series.namespace, event)
    } catch (error) {
      // It was made before, but we never heard.
      if (!isAlreadyThere(error)) throw error
    }
  }

  /** Returns how long to wait before the next write; 0 = the next one may go better. */
  #fail(series: EventSeries, error: unknown): number {
    const known = error instanceof ApiError ? error : undefined
    const status = known?.status ?? 0
    const fault = clip(error instanceof Error ? error.message : String(error))
    if (series.writtenCount > 0 && isNotFound(error, refOf(series))) {
      // Events are kept for an hour or so.
      series.writtenCount = 0
      return 0
    }
    if (fault !== this.#lastFault && !this.#isClosed) {
      this.#options.log.warning(`events are not written: ${fault}`)
    }
    this.#lastFault = fault
    if (status === 0 || status === 401 || status === 429 || status >= 500) {
      const wantedMs = Math.min(known?.retryAfterSeconds ?? 0, RETRY_AFTER_SECONDS_MAX) * 1000
      return Math.max(this.#backoff.next(), wantedMs)
    }
    this.#forget(series)
    return 0
  }
}

function refOf({ namespace, name }: EventSeries): ObjectRef {
  return { resource: EVENTS, namespace, name }
}
