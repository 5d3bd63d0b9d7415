import { Backoff } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import {
  type ApiClient,
  ApiError,
  type ApiObject,
  type ApiResource,
  clip,
  collectionPath,
} from './api.ts'
import { Deadline } from './deadline.ts'
import { EventQueue } from './event-queue.ts'
import { LineSplitter } from './line-splitter.ts'
import { Lister } from './list.ts'
import { readRefusal } from './read-body.ts'
import { scanWatchLine, type WatchEvent } from './watch-event.ts'

/** Octets of one event; the API itself limits an object to about 1.5 MiB. */
const LINE_OCTETS_MAX = 16 * 1024 * 1024
/**
 * Requested duration of a watch. Up to the same time is added at random, so that watches do not all
 * end at once.
 */
const WATCH_SECONDS = 70
/**
 * Longer than any watch. Bookmarks of a kind without changes may be ten minutes apart, so silence
 * is no fault until the server should have ended the watch.
 */
const IDLE_MS = 150_000
/** A watch that lasted this long counts as a success. */
const STEADY_MS = 10_000
/** A watch that ends this much before its time was interrupted. */
const EARLY_MS = 5000
const RETRY_AFTER_SECONDS_MAX = 60

/** The kinds that are followed and have no namespace. */
const WITHOUT_NAMESPACE: ReadonlySet<string> = new Set(['namespaces', 'nodes'])

/** The API's error for a resource version that it has not reached yet. */
const TOO_LARGE = /Too large resource version/

/** A version of the kind. */
interface Served {
  readonly resource: ApiResource
  /** Path of the collection, with its selectors. */
  readonly query: string
  readonly lister: Lister
}

/** Receives the results of list and watch. If it throws, everything is listed again. */
export interface ListWatchSink {
  /**
   * A list starts: objects that are not put until `endList` are deleted. Without `endList`, nothing
   * is known about them.
   */
  beginList(): void
  put(objects: readonly ApiObject[]): void
  endList(): void
  apply(events: readonly WatchEvent[]): void
}

interface ListWatchOptions {
  readonly api: ApiClient
  readonly resource: ApiResource
  /** Other versions with the same schema, in the order in which each list tries them; absent = none. */
  readonly equalVersions?: readonly string[] | undefined
  /** '' = all namespaces. */
  readonly namespace: string
  /** '' = every object. */
  readonly labelSelector: string
  /** Missing = every object. */
  readonly fieldSelector?: string
  readonly sink: ListWatchSink
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** The first list was processed, or an attempt failed. */
  readonly onProgress: () => void
  /** The collection is followed again after an interruption. */
  readonly onReturn?: () => void
}

/** Counters since the start, for metrics. */
interface ListWatchCounts {
  /** Started lists. */
  lists: number
  /** Failed attempts by HTTP status; 0 = no usable response. */
  readonly failures: Map<number, number>
  /** Events that were older than the known state. */
  staleEvents: number
}

/**
 * Follows one collection of an API server, and recovers from all its faults:
 *
 *     list ─▶ watch from there ─▶ (ended, cut) watch on ─▶ … ─▶ (410: too far behind, or the API went back) list
 *
 * Failures are retried with growing waits; the known objects are kept meanwhile.
 */
export class ListWatch {
  readonly counts: ListWatchCounts = { lists: 0, failures: new Map(), staleEvents: 0 }
  readonly #options: ListWatchOptions
  readonly #backoff: Backoff
  /** The versions of the kind, the preferred one first. */
  readonly #served: readonly Served[]
  /** The version that the API serves, as far as is known. */
  #current: Served
  /**
   * The version up to which the collection is known; '' = no version from which a watch can start.
   */
  #version = ''
  /** The server that the last list is from. */
  #place = ''
  /** The API was unavailable, and may have been restored from a backup meanwhile. */
  #isDoubtful = false
  /** The version that was logged last; '' = none. */
  #loggedVersion = ''
  #isSynced = false
  #isFollowing = false
  /** On the monotonic clock; not valid before the first list. */
  #currentMs = 0
  #reason = ''
  #failureStatus = 0
  #isClosed = false
  #deadline: Deadline | undefined
  #wake: () => void = () => {}

  constructor(options: ListWatchOptions) {
    const { api, resource, namespace, labelSelector, fieldSelector = '', timers, random } = options
    this.#options = options
    this.#backoff = new Backoff(random)
    const selector = `labelSelector=${encodeURIComponent(labelSelector)}`
    const fields = fieldSelector && `&fieldSelector=${encodeURIComponent(fieldSelector)}`
    const versions = [resource.version, ...(options.equalVersions ?? [])]
    this.#served = versions.map((version) => {
      const served = { ...resource, version }
      const query = `${collectionPath(served, namespace)}?${selector}${fields}`
      return { resource: served, query, lister: new Lister(api, timers, query) }
    })
    this.#current = this.#served[0]!
  }

  /** The collection, in the version that the API serves. */
  get resource(): ApiResource {
    return this.#current.resource
  }

  /** `dnsrecords in namespace a`. */
  get what(): string {
    const { resource, namespace } = this.#options
    if (WITHOUT_NAMESPACE.has(resource.plural)) return resource.plural
    return `${resource.plural} in ${namespace === '' ? 'all namespaces' : `namespace ${namespace}`}`
  }

  /** True once the collection was listed. */
  get isSynced(): boolean {
    return this.#isSynced
  }

  /** Why the collection is not followed just now; '' = it is, or no attempt was made yet. */
  get reason(): string {
    return this.#reason
  }

  /** HTTP status of the last failure; 0 = no failure, or no usable response. */
  get failureStatus(): number {
    return this.#failureStatus
  }

  /** True while the watch is open. */
  get isFollowing(): boolean {
    return this.#isFollowing
  }

  /** Maximum age of the known state in milliseconds; 0 while it is followed. */
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
    this.#current.lister.abort(reason)
    this.#deadline?.abort(reason)
    this.#wake()
  }

  async #list(): Promise<void> {
    const { api, sink, clock, onProgress } = this.#options
    this.counts.lists++
    const version = await this.#listServed()
    if (this.#isClosed) return
    sink.endList()
    this.#version = version
    this.#place = api.place
    this.#isDoubtful = false
    this.#currentMs = clock.monotonic()
    this.#isSynced = true
    onProgress()
  }

  /** Lists the first version that the API serves. Returns the resourceVersion of the list. */
  async #listServed(): Promise<string> {
    const last = this.#served.at(-1)
    for (const served of this.#served) {
      this.#current = served
      try {
        const version = await this.#listOne(served)
        this.#noteServed(served)
        return version
      } catch (error) {
        if (!isAbsent(error) || served === last || this.#isClosed) throw error
      }
    }
    throw new Error('a kind has at least one version')
  }

  #noteServed({ resource: { group, version } }: Served): void {
    if (this.#served.length === 1 || version === this.#loggedVersion) return
    this.#loggedVersion = version
    this.#options.log.info(
      `${this.what}: version ${version} of ${group} is followed`,
      'watch-version',
    )
  }

  async #listOne({ lister }: Served): Promise<string> {
    const { sink } = this.#options
    sink.beginList()
    return await lister.listStreamed({
      put: (objects) => {
        if (!this.#isClosed) sink.put(objects)
      },
      remove: (events) => {
        if (!this.#isClosed) sink.apply(events)
      },
    })
  }

  /**
   * Checks that the server has reached our version. A server that was restored from a backup, or
   * another server at the same address, accepts a version that it has not reached, and sends
   * nothing until then.
   */
  async #verify(): Promise<void> {
    const { api, log } = this.#options
    const version = await this.#current.lister.version()
    this.#isDoubtful = false
    const isOther = api.place !== this.#place
    if (!isOther && !isOlder(version, this.#version)) return
    const cause = isOther
      ? `the API moved to ${api.place}`
      : `the API went back from version ${this.#version} to ${version}`
    log.warning(`${this.what}: ${cause}; listing all objects again`, 'watch-relist')
    this.#version = ''
  }

  /** Watches until the stream ends; false = it was so short that a wait is needed. */
  async #watch(): Promise<boolean> {
    const { api, timers, clock, random } = this.#options
    const seconds = WATCH_SECONDS + random.below(WATCH_SECONDS)
    const watch = `&watch=1&allowWatchBookmarks=true&timeoutSeconds=${seconds}`
    const version = `&resourceVersion=${encodeURIComponent(this.#version)}`
    const deadline = new Deadline(timers, IDLE_MS)
    this.#deadline = deadline
    const startMs = clock.monotonic()
    try {
      const response = await api.get(`${this.#current.query}${watch}${version}`, deadline.signal)
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
        // The events are lost: only a new list recovers them.
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
          throw new ApiError(0, `a watch event is larger than ${LINE_OCTETS_MAX} octets`)
        }
        for (const line of complete) {
          // After events were lost, a bookmark would set the version too high.
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

  /** Records a failure; returns the wait in seconds that the API requests. */
  #fail(error: unknown): number {
    const { api, onProgress } = this.#options
    const known = error instanceof ApiError ? error : undefined
    const status = known?.status ?? 0
    const isGone = status === 410 || TOO_LARGE.test(known?.message ?? '')
    // The API may serve another version of the kind now.
    const isUnserved = isAbsent(error) && this.#served.length > 1
    if (isGone || isUnserved) this.#version = ''
    this.#isDoubtful = true
    if (status === 401 || status === 0) api.refresh()
    this.counts.failures.set(status, (this.counts.failures.get(status) ?? 0) + 1)
    const cause = clip(error instanceof Error ? error.message : String(error))
    const reason = `${this.what}: ${cause}${this.#cure(status)}`
    // A watch that is too far behind is normal.
    if (reason !== this.#reason && !isGone) this.#logFailure(reason, error)
    this.#reason = reason
    this.#failureStatus = status
    onProgress()
    return known?.retryAfterSeconds ?? 0
  }

  #logFailure(reason: string, error: unknown): void {
    const { log } = this.#options
    log.warning(
      `${reason}; retrying${this.#isSynced ? ', known objects are kept' : ''}`,
      'watch-failed',
    )
    if (error instanceof Error && !(error instanceof ApiError))
      log.debug(error.stack ?? '', 'stack')
  }

  #cure(status: number): string {
    const { group, plural } = this.#options.resource
    const kind = group === '' ? plural : `${plural}.${group}`
    if (status === 404) return `; is the CustomResourceDefinition ${kind} installed?`
    if (status === 403) return `; this account needs get, list and watch of ${kind}`
    return ''
  }

  /** Resets the fault state when the watch is open. */
  #rejoice(): void {
    const { clock, log, onReturn } = this.#options
    const wasAway = this.#reason !== ''
    if (wasAway) log.info(`${this.what}: watch established again`, 'watch-established')
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
 * Compares versions of one collection, which are increasing numbers (Kubernetes API concepts,
 * "Resource versions"). Versions in another form can't be compared.
 */
function isOlderOrEqual(version: string, known: string): boolean {
  return version === known || isOlder(version, known)
}

function isOlder(version: string, known: string): boolean {
  const [a, b] = [Number(version), Number(known)]
  return Number.isSafeInteger(a) && Number.isSafeInteger(b) && a < b
}

function isAbsent(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404
}
