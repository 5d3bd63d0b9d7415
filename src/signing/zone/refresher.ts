import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { SigningPolicy, ZoneKeys } from '../zone-keys.ts'
import { NameCheck, RefreshScan, type ScanResult } from './refresh-scan.ts'
import type { ZoneView } from './zone-view.ts'

/** A step takes a millisecond or two, and 100 000 names a second or two. */
const STEP_MS = 20
const STEP_NODES = 1000
/** Names whose signatures are made again in one version. */
const BATCH_NAMES = 500
/** How soon a zone that is being published is checked again. */
const WAIT_MS = 100
/** How often a state that forbids signatures is checked. */
const RETRY_MS = 10_000
/** From the end of a scan to the start of the next. */
const REST_SECONDS_MAX = 3600
/** How often a rest is checked: timers stand still while the machine sleeps, and signatures expire. */
const REST_CHECK_MS = 60_000

/** What a refresher needs from the signer. */
interface RefresherParts {
  readonly clock: Clock
  readonly timers: Timers
  readonly policy: SigningPolicy
  /** Returns the published version, if nothing is unpublished or being signed. */
  readonly view: () => ZoneView | undefined
  /** Returns the present keys; undefined = nothing can be signed. */
  readonly keys: () => ZoneKeys | undefined
  /** Makes signatures of names before they are needed. */
  readonly prepare: (names: readonly string[], keys: ZoneKeys) => Promise<void>
  /** Called when the signatures of names are prepared. */
  readonly onDue: (names: readonly string[]) => void
  /** Called at the end of each scan. */
  readonly onScanned: (result: ScanResult, keys: ZoneKeys) => void
}

/** Makes signatures again before they expire, and after a change of keys: in the background, some names at a time. */
export class Refresher {
  readonly #parts: RefresherParts
  readonly #scan = new RefreshScan()
  #cancel: (() => void) | undefined
  #state: 'scanning' | 'preparing' | 'waiting' | 'stopped' = 'scanning'
  /** The scan started again while signatures were prepared. */
  #isOutdated = false
  #found: string[] = []
  /** Undefined = a scan is under way. */
  #rest: { readonly untilMs: number; readonly monotonicMs: number } | undefined

  constructor(parts: RefresherParts) {
    this.#parts = parts
    this.#after(STEP_MS)
  }

  /** Starts a scan of all names. */
  restart(): void {
    this.#scan.restart()
    this.#found = []
    this.#rest = undefined
    this.#isOutdated = true
    if (this.#state === 'scanning') this.#after(STEP_MS)
  }

  /** Continues after the prepared names were signed. */
  resume(): void {
    if (this.#state !== 'waiting') return
    this.#state = 'scanning'
    this.#after(STEP_MS)
  }

  stop(): void {
    this.#cancel?.()
    this.#state = 'stopped'
  }

  #after(milliseconds: number): void {
    this.#cancel?.()
    this.#cancel = this.#parts.timers.after(milliseconds, () => void this.#step())
  }

  async #step(): Promise<void> {
    const { clock, policy } = this.#parts
    const keys = this.#parts.keys()
    if (keys === undefined) return this.#after(RETRY_MS)
    const view = this.#parts.view()
    if (view === undefined) return this.#after(WAIT_MS)
    if (this.#isResting) return this.#after(REST_CHECK_MS)
    this.#rest = undefined
    const check = new NameCheck(keys, Math.floor(clock.now() / 1000), policy)
    const options = { found: this.#found, foundMax: BATCH_NAMES, limit: STEP_NODES }
    const result = this.#scan.step(view, check, options)
    if (result !== undefined) this.#parts.onScanned(result, keys)
    const isFull = this.#found.length >= BATCH_NAMES
    if (this.#found.length > 0 && (isFull || result !== undefined)) return await this.#prepare(keys)
    if (result === undefined) return this.#after(STEP_MS)
    // After a scan that found something, the next one shows whether all is well.
    if (!result.isCurrent) return this.#after(RETRY_MS)
    this.#beginRest(Math.min(REST_SECONDS_MAX, Math.max(1, policy.refreshSeconds / 4)) * 1000)
  }

  #beginRest(restMs: number): void {
    const { clock } = this.#parts
    this.#rest = { untilMs: clock.now() + restMs, monotonicMs: clock.monotonic() + restMs }
    this.#after(Math.min(REST_CHECK_MS, restMs))
  }

  /** Ends by either clock: one stands still while the machine sleeps, the other may be set back. */
  get #isResting(): boolean {
    const { clock } = this.#parts
    if (this.#rest === undefined) return false
    return clock.now() < this.#rest.untilMs && clock.monotonic() < this.#rest.monotonicMs
  }

  async #prepare(keys: ZoneKeys): Promise<void> {
    const names = this.#found
    this.#found = []
    this.#state = 'preparing'
    this.#isOutdated = false
    const isPrepared = await this.#parts.prepare(names, keys).then(
      () => true,
      // The thread may be unavailable. The next scan finds the names again.
      () => false,
    )
    if (this.#isStopped) return
    this.#state = 'scanning'
    if (this.#isOutdated || !isPrepared) return this.#after(isPrepared ? STEP_MS : RETRY_MS)
    this.#state = 'waiting'
    this.#parts.onDue(names)
  }

  get #isStopped(): boolean {
    return this.#state === 'stopped'
  }
}
