import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Timers } from '../base/timers.ts'
import type { Logger } from '../telemetry/log.ts'
import {
  type ApiClient,
  ApiError,
  type ApiObject,
  type ApiResource,
  clip,
  collectionPath,
} from './api.ts'
import { Backoff } from './backoff.ts'
import { Deadline } from './deadline.ts'
import { EventQueue } from './event-queue.ts'
import { LineSplitter } from './line-splitter.ts'
import { Lister } from './list.ts'
import { readRefusal } from './read-body.ts'
import { scanWatchLine, type WatchEvent } from './watch-event.ts'

/** Of one event; the API itself holds an object to 1.5 MiB or so. */
const LINE_OCTETS_MAX = 16 * 1024 * 1024
/** A watch is asked to last this long, and up to as much again: not all end at once. */
const WATCH_SECONDS = 70
/**
 * Longer than any watch: bookmarks of a kind in which nothing happens may be ten minutes apart, so that silence is
 * no fault before the server should have ended the watch.
 */
const IDLE_MS = 150_000
/** A watch that lasted this long was a good one. */
const STEADY_MS = 10_000
/** A watch that ends this long before its time was ended by something. */
const EARLY_MS = 5000
const RETRY_AFTER_SECONDS_MAX = 60

/** What the API says of a version that it has yet to reach. */
const TOO_LARGE = /Too large resource version/

/** Takes what list and watch bring. An exception here has everything listed anew. */
export interface ListWatchSink {
  /** A list begins: what is not put until `endList` is gone. If no `endList` comes, nothing is known of that. */
  beginList(): void
  put(objects: readonly ApiObject[]): void
  endList(): void
  apply(events: readonly WatchEvent[]): void
}

export interface ListWatchOptions {
  readonly api: ApiClient
  readonly resource: ApiResource
  /** '' = all of them. */
  readonly namespace: string
  /** '' = every object. */
  readonly labelSelector: string
  readonly sink: ListWatchSink
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** The first list was taken in, or an attempt failed. */
  readonly onProgress: () => void
  /** It is followed again after it was not. */
  readonly onReturn?: () => void
}

/** What was done since the start, for metrics. */
export interface ListWatchCounts {
  /** Lists begun. */
  lists: number
  /** Attempts that failed, by HTTP status; 0 = no usable answer. */
  readonly failures: Map<number, number>
  /** Events that were older than what was known. */
  staleEvents: number
}

/**
 * Keeps up with one collection of an API server, whatever happens to it:
 *
 *     list ─▶ watch from there ─▶ (ended, cut) watch on ─▶ … ─▶ (410: too far behind, or the API went back) list
 *
 * Whatever fails is tried again, with growing waits; what was taken in stays meanwhile.
 */
export class ListWatch {
  readonly counts: ListWatchCounts = { lists: 0, failures: new Map(), staleEvents: 0 }
  readonly #options: ListWatchOptions
  readonly #backoff: Backoff
  readonly #lister: Lister
  readonly #query: string
  /** What has been seen of the collection; '' = nothing that a watch can begin at. */
  #version = ''
  /** The place that the last list is from. */
  #place = ''
  /** The API was away, and may have been restored from a backup meanwhile. */
  #isDoubtful = false
  #isSynced = false
  #isFollowing = false
  /** On the monotonic clock; meaningless before the first list. */
  #currentMs = 0
  #reason = ''
  #failureStatus = 0
  #isClosed = false
  #deadline: Deadline | undefined
  #wake: () => void = () => {}

  constructor(options: ListWatchOptions) {
    const { api, resource, namespace, labelSelector, timers, random } = options
    this.#options = options
    this.#backoff = new Backoff(random)
    const selector = `labelSelector=${encodeURIComponent(labelSelector)}`
    this.#query = `${collectionPath(resource, namespace)}?${selector}`
    this.#lister = new Lister(api, timers, this.#query)
  }

  /** `dnsrecords in namespace a`. */
  get what(): string {
    const { resource, namespace } = this.#options
    return `${resource.plural} in ${namespace === '' ? 'all namespaces' : `namespace ${namespace}`}`
  }

  /** True once everything was listed. */
  get isSynced(): boolean {
    return this.#isSynced
  }

  /** Why the collection is not followed just now; '' = it is, or was not tried yet. */
  get reason(): string {
    return this.#reason
  }

  /** HTTP status of the last failure; 0 = none, or there was no usable answer. */
  get failureStatus(): number {
    return this.#failureStatus
  }

  /** True while changes come as they happen. */
  get isFollowing(): boolean {
    return this.#isFollowing
  }

  /** How old what is known may be; 0 while it is followed. */
  get ageMs(): number {
    if (this.#isFollowing || !this.#isSynced) return 0
    return this.#options.clock.monotonic() - this.#currentMs
  }

  /** Runs until `close`; never rejects. */
  async run(): Promise<void> {
    while (!this.#isClosed) {
      let retryAfterSeconds = 0
      try {
        if (this.#version !== '' && this.#isDoubtful) await this.#verify()
        if (this.#version === '' && !this.#isClosed) await this.#list()
        if (!this.#isClosed && (await this.#watch())) continue
      } catch (error) {
        if (!this.#isClosed) retryAfterSeconds = this.#fail(error)
      }
      if (!this.#isClosed) await this.#wait(retryAfterSeconds)
    }
  }

  close(): void {
    this.#isClosed = true
    const reason = new ApiError(0, 'closed')
    this.#lister.abort(reason)
    this.#deadline?.abort(reason)
    this.#wake()
  }

  async #list(): Promise<void> {
    const { api, sink, clock, onProgress } = this.#options
    this.counts.lists++
    sink.beginList()
    const version = await this.#lister.listStreamed({
      put: (objects) => {
        if (!this.#isClosed) sink.put(objects)
      },
      remove: (events) => {
        if (!this.#isClosed) sink.apply(events)
      },
    })
    if (this.#isClosed) return
    sink.endList()
    this.#version = version
    this.#place = api.place
    this.#isDoubtful = false
    this.#currentMs = clock.monotonic()
    this.#isSynced = true
    onProgress()
  }

  /**
   * A server that was restored from a backup, and another one at the same address, takes a version that it has yet
   * to reach without complaint, and is silent until then: so it is asked how far it is.
   */
  async #verify(): Promise<void> {
    const { api, log } = this.#options
    const version = await this.#lister.version()
    this.#isDoubtful = false
    const isOther = api.place !== this.#place
    if (!isOther && !isOlder(version, this.#version)) return
    const cause = isOther
      ? `the API is at ${api.place} now`
      : `the API went back from version ${this.#version} to ${version}`
    log.warning(`${this.what}: ${cause}; everything is listed anew`)
    this.#version = ''
  }

  /** Watches until the stream ends; false: it was so short that it is better to wait. */
  async #watch(): Promise<boolean> {
    const { api, timers, clock, random } = this.#options
    const seconds = WATCH_SECONDS + random.below(WATCH_SECONDS)
    const watch = `&watch=1&allowWatchBookmarks=true&timeoutSeconds=${seconds}`
    const version = `&resourceVersion=${encodeURIComponent(this.#version)}`
    const deadline = new Deadline(timers, IDLE_MS)
    this.#deadline = deadline
    const startMs = clock.monotonic()
    try {
      const response = await api.get(`${this.#query}${watch}${version}`, deadline.signal)
      if (response.status !== 200) throw await readRefusal(response, () => deadline.touch())
      this.#rejoice()
      await this.#readStream(response.body, deadline)
    } catch (error) {
      throw deadline.signal.aborted ? deadline.signal.reason : error
    } finally {
      deadline.end()
      this.#isFollowing = false
    }
    const lastedMs = clock.monotonic() - startMs
    if (lastedMs < seconds * 1000 - EARLY_MS) this.#isDoubtful = true
    const isSteady = lastedMs >= STEADY_MS
    if (isSteady) this.#backoff.reset()
    return isSteady
  }

  async #readStream(body: AsyncIterable<Uint8Array>, deadline: Deadline): Promise<void> {
    const { clock, sink, timers } = this.#options
    const lines = new LineSplitter(LINE_OCTETS_MAX)
    const queue = new EventQueue(timers, (events) => {
      try {
        if (!this.#isClosed) sink.apply(events)
      } catch (error) {
        // The events are lost: only a list can tell what they were.
        this.#version = ''
        deadline.abort(error instanceof Error ? error : new Error(String(error)))
      }
    })
    try {
      for await (const chunk of body) {
        deadline.touch()
        this.#currentMs = clock.monotonic()
        const complete = lines.push(chunk)
        if (complete === undefined) {
          this.#version = ''
          throw new ApiError(0, `a watch event is over ${LINE_OCTETS_MAX} octets`)
        }
        for (const line of complete) {
          // After events were lost it would set the version to a place that was not reached.
          if (deadline.signal.aborted) break
          this.#takeLine(line, queue)
        }
      }
    } finally {
      queue.flush()
    }
    if (deadline.signal.aborted) throw deadline.signal.reason
  }

  #takeLine(line: string, queue: EventQueue): void {
    const { event, resourceVersion } = scanWatchLine(line)
    this.#backoff.reset()
    if (event === undefined && isOlder(resourceVersion, this.#version)) {
      throw new ApiError(
        410,
        `the API went back from version ${this.#version} to ${resourceVersion}`,
      )
    }
    if (isOlderOrEqual(resourceVersion, this.#version)) {
      if (event !== undefined) this.counts.staleEvents++
      return
    }
    this.#version = resourceVersion
    if (event !== undefined) queue.add(event)
  }

  /** Notes a failure; returns the seconds that the API asks us to wait. */
  #fail(error: unknown): number {
    const { api, log, onProgress } = this.#options
    const known = error instanceof ApiError ? error : undefined
    const status = known?.status ?? 0
    const isGone = status === 410 || TOO_LARGE.test(known?.message ?? '')
    if (isGone) this.#version = ''
    this.#isDoubtful = true
    if (status === 401 || status === 0) api.refresh()
    this.counts.failures.set(status, (this.counts.failures.get(status) ?? 0) + 1)
    const cause = clip(error instanceof Error ? error.message : String(error))
    const reason = `${this.what}: ${cause}${this.#cure(status)}`
    // That a watch is too far behind is part of its life.
    if (reason !== this.#reason && !isGone) {
      log.warning(`${reason}; it is tried again${this.#isSynced ? ', what is known is kept' : ''}`)
      if (known === undefined && error instanceof Error) log.debug(error.stack ?? '')
    }
    this.#reason = reason
    this.#failureStatus = status
    onProgress()
    return known?.retryAfterSeconds ?? 0
  }

  #cure(status: number): string {
    const { group, plural } = this.#options.resource
    if (status === 404) return `; is the CustomResourceDefinition ${plural}.${group} installed?`
    if (status === 403) return `; this account needs get, list and watch of ${plural}.${group}`
    return ''
  }

  /** The watch is open. */
  #rejoice(): void {
    const { clock, log, onReturn } = this.#options
    const wasAway = this.#reason !== ''
    if (wasAway) log.info(`${this.what}: followed again`)
    this.#reason = ''
    this.#failureStatus = 0
    this.#isFollowing = true
    this.#currentMs = clock.monotonic()
    if (wasAway) onReturn?.()
  }

  #wait(retryAfterSeconds: number): Promise<void> {
    const wantedMs = Math.min(retryAfterSeconds, RETRY_AFTER_SECONDS_MAX) * 1000
    const delayMs = Math.max(this.#backoff.next(), wantedMs)
    return new Promise((resolve) => {
      const cancel = this.#options.timers.after(delayMs, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }
}

/**
 * Versions of one collection are numbers that grow (Kubernetes API concepts, "Resource versions"); of
 * those that are none nothing is known.
 */
function isOlderOrEqual(version: string, known: string): boolean {
  return version === known || isOlder(version, known)
}

function isOlder(version: string, known: string): boolean {
  const [a, b] = [Number(version), Number(known)]
  return Number.isSafeInteger(a) && Number.isSafeInteger(b) && a < b
}
