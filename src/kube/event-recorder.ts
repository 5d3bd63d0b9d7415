import { Backoff } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import { type ApiClient, ApiError, type ApiObject, clip } from './api.ts'
import {
  beginSeries,
  composeEvent,
  composeSeries,
  type EventDetails,
  type EventSeries,
  type EventSubject,
  seriesKey,
} from './event-series.ts'
import { isAlreadyThere, isNotFound, type ObjectRef, Objects } from './objects.ts'
import { TokenBucket } from './token-bucket.ts'

const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' }
/** Event series that are kept, so that a repeated happening updates the same Event. */
const SERIES_MAX = 2000
/** A series without a happening for this long is ended; the next happening starts a new one. */
const SERIES_MS = 6 * 60_000
/** Shortest time between two writes of one series. */
const REWRITE_MS = 60_000
/** Subjects whose rate is tracked. */
const SUBJECTS_MAX = 2000
/** Budget of one object: this many at once, then one per SUBJECT_EVERY_MS. */
const SUBJECT_BURST = 25
const SUBJECT_EVERY_MS = 5 * 60_000
/** Budget of all objects together. */
const BURST = 100
const EVERY_MS = 200
const RETRY_AFTER_SECONDS_MAX = 60
/** Happenings within this time are written together. */
const GATHER_MS = 500

export interface EventRecorderOptions {
  readonly api: ApiClient
  /** A qualified name: `kuadrant.io/sextant-operator`. */
  readonly controller: string
  /** The name of the pod, which identifies the instance of the controller. */
  readonly instance: string
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

/** Counters since the start, for metrics. */
interface EventRecorderCounts {
  /** Successful requests. */
  written: number
  /** Happenings without an Event: too many, or the API rejects them. */
  dropped: number
}

/**
 * Records what happens to objects as Events of events.k8s.io/v1. Repetitions become one Event with
 * a count. Events are best effort: the caller never waits, excess happenings are dropped, and
 * errors are only logged.
 */
export class EventRecorder {
  readonly counts: EventRecorderCounts = { written: 0, dropped: 0 }
  readonly #options: EventRecorderOptions
  readonly #objects: Objects
  readonly #backoff: Backoff
  /** By seriesKey; the series with the latest happening is last. */
  readonly #series = new Map<string, EventSeries>()
  readonly #rates = new Map<string, TokenBucket>()
  readonly #rate: TokenBucket
  /** The members of `#series` that have something to write. */
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

  /** Never waits, never throws. Equal happenings need equal `note`s: without times and counts. */
  record(subject: EventSubject, details: EventDetails): void {
    if (this.#isClosed) return
    const nowMs = this.#options.clock.now()
    const key = seriesKey(subject, details)
    const known = this.#series.get(key)
    // Moves the series to the end: the first one is removed first.
    this.#series.delete(key)
    if (known !== undefined && nowMs - known.lastMs < SERIES_MS) {
      known.count++
      known.lastMs = nowMs
      this.#series.set(key, known)
      this.#unwritten.add(known)
    } else if (this.#mayBegin(subject)) {
      if (known !== undefined) this.#forget(known)
      const series = beginSeries(subject, details, nowMs, this.#sequence++)
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

  /** Stops all writes. */
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

  /** Writes one Event at a time, so that Events do not delay the work that they report. */
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
    // Another happening may have been recorded during the write.
    if (series.count === count) this.#unwritten.delete(series)
  }

  async #create(series: EventSeries, event: ApiObject): Promise<void> {
    try {
      await this.#objects.create(EVENTS, series.namespace, event)
    } catch (error) {
      // An earlier request created it, but its response was lost.
      if (!isAlreadyThere(error)) throw error
    }
  }

  /** Returns the wait before the next write; 0 = no wait, as the next write may succeed. */
  #fail(series: EventSeries, error: unknown): number {
    const known = error instanceof ApiError ? error : undefined
    const status = known?.status ?? 0
    const fault = clip(error instanceof Error ? error.message : String(error))
    if (series.writtenCount > 0 && isNotFound(error, refOf(series))) {
      // The API server deletes Events after about an hour.
      series.writtenCount = 0
      return 0
    }
    if (fault !== this.#lastFault && !this.#isClosed) {
      this.#options.log.warning(`events are not written: ${fault}`, 'kubernetes-events-not-written')
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
