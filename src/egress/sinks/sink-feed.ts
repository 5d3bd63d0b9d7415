import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { Selector } from '../selectors/selector.ts'
import { diffGrants, type GrantChange, type GrantSet, NO_GRANTS } from './grants.ts'
import type { GateResult, Sink, SinkMode } from './sink.ts'

const RETRY_MS = 1000
const RETRY_MS_MAX = 60_000

export interface SinkFeedParts {
  readonly sink: Sink
  readonly mode: SinkMode
  readonly clock: Clock
  readonly timers: Timers
  /** Called when updates begin to fail, with the reason, and with '' when they succeed again. */
  readonly onFault: (fault: string) => void
}

/** Numbers since the start. */
export interface SinkCounters {
  applied: number
  failed: number
  /** Replies that waited. */
  gated: number
  /** Replies that left before the acknowledgement, because the deadline passed. */
  timedOut: number
  /** Replies whose update failed. */
  refused: number
  /** Time that replies waited. */
  waitedMs: number
}

interface Waiter {
  /** The addresses of these must be acknowledged. */
  readonly grants: GrantSet
  readonly finish: (result: GateResult) => void
}

interface SelectorState {
  readonly selector: Selector
  wanted: GrantSet
  /** What the sink acknowledged last, without what a failed update may have removed since. */
  acknowledged: GrantSet
  isGone: boolean
  /** The sink may have more than it acknowledged, and must get the whole set. */
  isStale: boolean
  isApplying: boolean
  failures: number
  cancelRetry: (() => void) | undefined
  readonly waiters: Set<Waiter>
}

/**
 * Feeds one sink. Per selector, one update is in progress at a time; the sets that are wanted
 * meanwhile become one next update. A failed update is repeated, later each time, until it
 * succeeds: the sink always gets what is wanted in the end.
 */
export class SinkFeed {
  readonly #parts: SinkFeedParts
  readonly #states = new Map<string, SelectorState>()
  #fault = ''
  #isClosed = false
  readonly counters: SinkCounters = {
    applied: 0,
    failed: 0,
    gated: 0,
    timedOut: 0,
    refused: 0,
    waitedMs: 0,
  }

  constructor(parts: SinkFeedParts) {
    this.#parts = parts
  }

  /** Number of selectors with an update that is not acknowledged. */
  get pending(): number {
    let count = 0
    for (const state of this.#states.values()) if (this.#changeOf(state) !== undefined) count++
    return count
  }

  /**
   * Sets what the sink must have for a selector. In mode `gate`, returns a wait for the
   * acknowledgement of all its addresses, also of those that an earlier call added. Undefined = the
   * reply need not wait.
   */
  set(selector: Selector, grants: GrantSet): Promise<GateResult> | undefined {
    const state = this.#stateOf(selector)
    state.wanted = grants
    // The removal may be in progress: afterwards, the sink does not have the set any more.
    if (state.isGone) state.isStale = true
    state.isGone = false
    this.#apply(state)
    if (this.#parts.mode.kind === 'async' || this.#isClosed) return undefined
    if (isInForce(state, grants)) return undefined
    return this.#wait(state, grants, this.#parts.mode.deadlineMs)
  }

  /** Empties the set of a selector that no policy has any more, then forgets it. */
  remove(selector: Selector): void {
    const state = this.#states.get(selector.key)
    if (state === undefined) return
    state.wanted = NO_GRANTS
    state.isGone = true
    this.#apply(state)
  }

  /** Applies all sets again, because the sink may have lost them. */
  resync(): void {
    for (const state of this.#states.values()) this.#resync(state)
  }

  /** As `resync`, for one selector. */
  resyncSelector({ key }: Selector): void {
    const state = this.#states.get(key)
    if (state !== undefined) this.#resync(state)
  }

  /** Starts no more updates, and releases all replies. */
  close(): void {
    this.#isClosed = true
    for (const state of this.#states.values()) {
      state.cancelRetry?.()
      for (const waiter of [...state.waiters]) waiter.finish('timed out')
    }
  }

  #resync(state: SelectorState): void {
    state.isStale = true
    state.acknowledged = NO_GRANTS
    this.#apply(state)
  }

  #stateOf(selector: Selector): SelectorState {
    const known = this.#states.get(selector.key)
    if (known !== undefined) return known
    const state: SelectorState = {
      selector,
      wanted: NO_GRANTS,
      acknowledged: NO_GRANTS,
      isGone: false,
      // What an earlier process left in the sink is unknown.
      isStale: true,
      isApplying: false,
      failures: 0,
      cancelRetry: undefined,
      waiters: new Set(),
    }
    this.#states.set(selector.key, state)
    return state
  }

  /** Returns undefined if the sink has what is wanted. */
  #changeOf(state: SelectorState): GrantChange | undefined {
    const change = diffGrants(state.acknowledged, state.wanted)
    const { added, changed, removed } = change
    const hasChanged =
      state.isStale ||
      state.isGone ||
      added.length + removed.length > 0 ||
      (this.#parts.sink.needsDetails && changed.length > 0)
    return hasChanged ? change : undefined
  }

  #apply(state: SelectorState): void {
    if (state.isApplying || state.cancelRetry !== undefined || this.#isClosed) return
    const change = this.#changeOf(state)
    if (change !== undefined) void this.#send(state, change)
  }

  async #send(state: SelectorState, change: GrantChange): Promise<void> {
    const { selector, wanted, isStale, isGone } = state
    const update = { ...change, selector, grants: wanted, isResync: isStale, isGone }
    state.isApplying = true
    state.isStale = false
    let fault: string
    try {
      fault = await this.#parts.sink.apply(update)
    } catch (error) {
      fault = String(error)
    }
    state.isApplying = false
    if (fault === '') this.#acknowledge(state, wanted)
    else this.#fail(state, wanted, fault)
  }

  #acknowledge(state: SelectorState, grants: GrantSet): void {
    this.counters.applied++
    state.failures = 0
    this.#noteFault('')
    // If a resync came meanwhile, only the next update counts: it has the whole set.
    if (!state.isStale) {
      state.acknowledged = grants
      for (const waiter of [...state.waiters]) {
        if (isInForce(state, waiter.grants)) waiter.finish('acknowledged')
      }
    }
    if (state.isGone && state.wanted === grants) this.#states.delete(state.selector.key)
    else this.#apply(state)
  }

  #fail(state: SelectorState, grants: GrantSet, fault: string): void {
    this.counters.failed++
    state.isStale = true
    const left = [...state.acknowledged].filter(([address]) => grants.has(address))
    state.acknowledged = new Map(left)
    this.#noteFault(fault)
    for (const waiter of [...state.waiters]) waiter.finish('failed')
    if (this.#isClosed) return
    const waitMs = Math.min(RETRY_MS * 2 ** state.failures, RETRY_MS_MAX)
    state.failures++
    state.cancelRetry = this.#parts.timers.after(waitMs, () => {
      state.cancelRetry = undefined
      this.#apply(state)
    })
  }

  #noteFault(fault: string): void {
    if (this.#fault === fault) return
    this.#fault = fault
    this.#parts.onFault(fault)
  }

  #wait(state: SelectorState, grants: GrantSet, deadlineMs: number): Promise<GateResult> {
    const { clock, timers } = this.#parts
    const startMs = clock.monotonic()
    this.counters.gated++
    return new Promise((resolve) => {
      const finish = (result: GateResult): void => {
        cancel()
        state.waiters.delete(waiter)
        this.counters.waitedMs += clock.monotonic() - startMs
        if (result === 'timed out') this.counters.timedOut++
        if (result === 'failed') this.counters.refused++
        resolve(result)
      }
      const waiter = { grants, finish }
      const cancel = timers.after(deadlineMs, () => finish('timed out'))
      state.waiters.add(waiter)
    })
  }
}

/** True if the sink has acknowledged all these addresses. */
function isInForce({ acknowledged }: SelectorState, grants: GrantSet): boolean {
  for (const address of grants.keys()) if (!acknowledged.has(address)) return false
  return true
}
