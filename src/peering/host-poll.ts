import type { AskedHost } from './ask-host.ts'
import type { SiteState } from './peer-endpoint.ts'

/** Between two questions for a host where no answer says how long it holds. */
export const HOST_MS = 15_000
/** Hosts asked for at a time, and most between two ticks. */
const ACTIVE_MAX = 16
const STARTED_MAX = 64

/** Between two questions for a host, whatever the TTLs of its records are. */
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
  /** The host has something else to say, or was answered for at all. */
  readonly onChange: (rootHost: string) => void
  /** '' = it went well. */
  readonly onAnswer: (fault: string) => void
  /** What was refused of the answer for a host. */
  readonly onProblems: (rootHost: string, problems: readonly string[]) => void
}

/**
 * Keeps up with the hosts that we want to know of, at a peer that has to be asked for each: as often as the TTLs of
 * its answers say, as a cache would. What is known to be new is asked for at once.
 *
 *     want, hurry ─▶ fresh ─┐
 *     asked ─▶ due ─▶ ripe ─┴▶ asked, so many a tick
 */
export class HostPoll {
  readonly #parts: HostPollParts
  /** Due at once. */
  readonly #fresh = new Set<string>()
  /** When each of the others is due. */
  readonly #due = new Map<string, number>()
  /** Those whose time has come, longest overdue first. */
  readonly #ripe = new Set<string>()
  readonly #siteStates = new Map<string, readonly SiteState[]>()
  /** Hosts that the peer answered for when it was last asked. */
  readonly #answered = new Set<string>()
  /** What another process, or follower, was told of hosts that nobody wants yet. */
  readonly #recalled = new Map<string, readonly SiteState[]>()
  /** How many want each host. */
  readonly #wanted = new Map<string, number>()
  /** Being asked for; true = what comes of it may be old already. */
  readonly #active = new Map<string, boolean>()
  /** Since the last tick. */
  #started = 0

  constructor(parts: HostPollParts) {
    this.#parts = parts
  }

  /** Endpoints that were told. */
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

  /** One of those that wanted it does no longer. */
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

  /** Takes up what was told elsewhere: it counts once the host is wanted. */
  recall(rootHost: string, siteStates: readonly SiteState[]): void {
    this.#recalled.set(rootHost, siteStates)
  }

  /**
   * What was told, by host, as `sharesOf` has it; of hosts that nobody wanted so far only what was told since
   * `sinceMs`. Monotonic.
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

  /** Everything is due: the peer has something new. */
  hurry(): void {
    for (const host of [...this.#ripe, ...this.#due.keys()]) this.#fresh.add(host)
    this.#due.clear()
    this.#ripe.clear()
    for (const host of this.#active.keys()) this.#active.set(host, true)
  }

  /** Forgets what was told, which is known in another way now. */
  clear(): void {
    this.#siteStates.clear()
    this.#recalled.clear()
    this.hurry()
  }

  /** True if something was told of the host, be it that there is nothing. */
  isKnown(rootHost: string): boolean {
    return this.#siteStates.has(rootHost)
  }

  /**
   * Undefined = it is not known. `heardMs`: when the peer was heard last, of whatever. A peer that is
   * heard stands by what it said, as long as it answers when it is asked for that: looks are further apart than some would
   * have silence last.
   */
  siteStatesOf(rootHost: string, heardMs: number): readonly SiteState[] | undefined {
    const siteStates = this.#siteStates.get(rootHost)
    if (!this.#answered.has(rootHost)) return siteStates
    return siteStates?.map((siteState) => {
      return siteState.seenMs < heardMs ? { ...siteState, seenMs: heardMs } : siteState
    })
  }

  /** Asks for what is due. */
  tick(): void {
    this.#started = 0
    this.#ripen()
    this.#fill()
  }

  /** Begins nothing more. */
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

  /** Whenever one was answered for, so that more are asked for in a tick than at a time. */
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
      // It may have been answered for since it is fresh: wanted again while it was asked for.
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

  /** `dueMs`: undefined = it is to be asked for again at once. */
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
    const isNews = before === undefined || printSiteStates(before) !== printSiteStates(after)
    if (isNews) this.#parts.onChange(host)
  }
}

function emptied(siteState: SiteState): SiteState {
  return { ...siteState, endpoints: [] }
}

/** All but when it was seen. */
function printSiteStates(siteStates: readonly SiteState[]): string {
  return JSON.stringify(siteStates.map(({ site, endpoints }) => [site, endpoints]))
}
