import type { AskedHost } from './ask-host.ts'
import { peerEndpointKey, type SiteState } from './peer-endpoint.ts'

/** Interval between two queries for a host whose answer does not say how long it is valid. */
export const HOST_MS = 15_000
/** Maximum of concurrent host queries, and of queries started per tick. */
const ACTIVE_MAX = 16
const STARTED_MAX = 64

/** Bounds of the interval between two queries for a host, whatever the TTLs of its records are. */
export interface HostBounds {
  readonly minMs: number
  readonly maxMs: number
}

export const HOST_BOUNDS_DEFAULT: HostBounds = { minMs: 5000, maxMs: 15 * 60_000 }

export interface HostPollParts {
  readonly ask: (rootHost: string) => Promise<AskedHost>
  readonly bounds: HostBounds
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
  /** Called when the peer's answer for a host changes, or when its first answer arrives. */
  readonly onChange: (rootHost: string) => void
  /** '' = success. */
  readonly onAnswer: (fault: string) => void
  /** Reports what was refused in the answer for a host. */
  readonly onProblems: (rootHost: string, problems: readonly string[]) => void
}

/**
 * Polls the wanted hosts at a peer that answers only host by host. Like a cache, it repeats a query
 * when the TTLs of the last answer end. A host that is known to be new is queried at once.
 *
 *     want, hurry ─▶ fresh ─┐
 *     asked ─▶ due ─▶ ripe ─┴▶ asked, a limited number per tick
 */
export class HostPoll {
  readonly #parts: HostPollParts
  /** Due at once. */
  readonly #fresh = new Set<string>()
  /** Due time of each other host. */
  readonly #due = new Map<string, number>()
  /** Hosts that are due, longest overdue first. */
  readonly #ripe = new Set<string>()
  readonly #siteStates = new Map<string, readonly SiteState[]>()
  /** Hosts that the peer answered at the last query. */
  readonly #answered = new Set<string>()
  /** States from another process or follower, of hosts that have no user yet. */
  readonly #recalled = new Map<string, readonly SiteState[]>()
  /** Number of users of each host. */
  readonly #wanted = new Map<string, number>()
  /** Queries in flight; true = the answer may be outdated already. */
  readonly #active = new Map<string, boolean>()
  /** Queries started since the last tick. */
  #started = 0

  constructor(parts: HostPollParts) {
    this.#parts = parts
  }

  /** Number of known endpoints. */
  get count(): number {
    let count = 0
    for (const siteStates of this.#siteStates.values()) {
      for (const { endpoints } of siteStates) count += endpoints.length
    }
    return count
  }

  get sites(): readonly string[] {
    const sites = new Set<string>()
    for (const siteStates of this.#siteStates.values())
      for (const { site } of siteStates) sites.add(site)
    return [...sites]
  }

  hosts(): IterableIterator<string> {
    return this.#siteStates.keys()
  }

  want(rootHost: string): void {
    const count = this.#wanted.get(rootHost) ?? 0
    this.#wanted.set(rootHost, count + 1)
    if (count > 0) return
    this.#fresh.add(rootHost)
    const recalled = this.#recalled.get(rootHost)
    if (recalled === undefined) return
    this.#recalled.delete(rootHost)
    this.#siteStates.set(rootHost, recalled)
  }

  /** Removes one user of the host; without users the host is no longer polled. */
  forget(rootHost: string): void {
    const count = this.#wanted.get(rootHost) ?? 0
    if (count > 1) {
      this.#wanted.set(rootHost, count - 1)
      return
    }
    this.#wanted.delete(rootHost)
    this.#fresh.delete(rootHost)
    this.#due.delete(rootHost)
    this.#ripe.delete(rootHost)
    this.#siteStates.delete(rootHost)
    this.#answered.delete(rootHost)
  }

  /** Stores states from another process or follower. They count once the host is wanted. */
  recall(rootHost: string, siteStates: readonly SiteState[]): void {
    this.#recalled.set(rootHost, siteStates)
  }

  /**
   * Yields the known states by host, as `siteStatesOf` returns them. Hosts without users are
   * included only if they were seen since `sinceMs`. Monotonic milliseconds.
   */
  *exported(
    sinceMs: number,
    heardMs: number,
  ): Generator<readonly [rootHost: string, shares: readonly SiteState[]]> {
    for (const [rootHost, siteStates] of this.#recalled) {
      if (siteStates.every(({ seenMs }) => seenMs < sinceMs)) this.#recalled.delete(rootHost)
    }
    for (const rootHost of this.#siteStates.keys()) {
      yield [rootHost, this.siteStatesOf(rootHost, heardMs) ?? []]
    }
    yield* this.#recalled
  }

  /** Makes all hosts due, because the peer has new data. */
  hurry(): void {
    for (const host of [...this.#ripe, ...this.#due.keys()]) this.#fresh.add(host)
    this.#due.clear()
    this.#ripe.clear()
    for (const host of this.#active.keys()) this.#active.set(host, true)
  }

  /** Removes all states, because another source has them now. */
  clear(): void {
    this.#siteStates.clear()
    this.#recalled.clear()
    this.hurry()
  }

  /** True if the peer answered for the host, also if the answer has no endpoints. */
  isKnown(rootHost: string): boolean {
    return this.#siteStates.has(rootHost)
  }

  /**
   * Returns the states of a host; undefined = not known. `heardMs`: when the peer last answered
   * anything. While a peer answers the queries for a host, its last answer is confirmed whenever
   * the peer is heard. The reason: the interval between queries may be longer than the configured
   * expiry.
   */
  siteStatesOf(rootHost: string, heardMs: number): readonly SiteState[] | undefined {
    const siteStates = this.#siteStates.get(rootHost)
    if (!this.#answered.has(rootHost)) return siteStates
    return siteStates?.map((siteState) => {
      return siteState.seenMs < heardMs ? { ...siteState, seenMs: heardMs } : siteState
    })
  }

  /** Starts the queries that are due. */
  tick(): void {
    this.#started = 0
    this.#ripen()
    this.#fill()
  }

  /** Starts no more queries. */
  close(): void {
    this.#started = STARTED_MAX
  }

  #ripen(): void {
    const nowMs = this.#parts.nowMs()
    const ripe = [...this.#due].filter(([, dueMs]) => dueMs <= nowMs)
    for (const [host] of ripe.sort(([, a], [, b]) => a - b)) {
      this.#due.delete(host)
      this.#ripe.add(host)
    }
  }

  /** Runs after every answer too, so that one tick can start more queries than run concurrently. */
  #fill(): void {
    while (this.#started < STARTED_MAX && this.#active.size < ACTIVE_MAX) {
      const host = this.#next()
      if (host === undefined) return
      this.#started++
      void this.#ask(host, this.#parts.nowMs())
    }
  }

  #next(): string | undefined {
    for (const host of this.#fresh) {
      this.#fresh.delete(host)
      // The host may have been answered since it became fresh, if it was wanted again during its query.
      this.#due.delete(host)
      this.#ripe.delete(host)
      if (!this.#active.has(host)) return host
      this.#active.set(host, true)
    }
    for (const host of this.#ripe) {
      this.#ripe.delete(host)
      return host
    }
    return undefined
  }

  async #ask(host: string, nowMs: number): Promise<void> {
    this.#active.set(host, false)
    const asked = await this.#parts.ask(host)
    const isOld = this.#active.get(host) === true
    this.#active.delete(host)
    if (this.#wanted.has(host)) {
      this.#take(host, asked, isOld ? undefined : nowMs + this.#pauseMs(asked))
    }
    this.#fill()
  }

  #pauseMs(asked: AskedHost): number {
    const { minMs, maxMs } = this.#parts.bounds
    const ttlSeconds = asked.kind === 'failed' ? undefined : asked.ttlSeconds
    const wantedMs = ttlSeconds === undefined ? HOST_MS : ttlSeconds * 1000
    return Math.min(Math.max(wantedMs, minMs), maxMs)
  }

  /** `dueMs`: undefined = query the host again at once. */
  #take(host: string, asked: AskedHost, dueMs: number | undefined): void {
    if (dueMs === undefined) this.#fresh.add(host)
    else this.#due.set(host, dueMs)
    this.#parts.onAnswer(asked.kind === 'failed' ? asked.reason : '')
    if (asked.kind === 'failed') {
      this.#answered.delete(host)
      return
    }
    this.#answered.add(host)
    this.#parts.onProblems(host, asked.kind === 'shares' ? asked.problems : [])
    const before = this.#siteStates.get(host)
    const after = asked.kind === 'shares' ? asked.siteStates : (before?.map(emptied) ?? [])
    this.#siteStates.set(host, after)
    const hasChanged = before === undefined || printSiteStates(before) !== printSiteStates(after)
    if (hasChanged) this.#parts.onChange(host)
  }
}

function emptied(siteState: SiteState): SiteState {
  return { ...siteState, endpoints: [] }
}

/** Prints everything except the time it was seen. */
function printSiteStates(siteStates: readonly SiteState[]): string {
  return JSON.stringify(
    siteStates.map(({ site, endpoints }) => [site, endpoints.map(peerEndpointKey)]),
  )
}
