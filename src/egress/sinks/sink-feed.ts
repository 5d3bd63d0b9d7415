import type { Timers } from '../../base/timers.ts'
import type { Selector } from '../selectors/selector.ts'

const RETRY_MS = 1000
const RETRY_MS_MAX = 60_000

/** What a sink has to make true for one selector. */
export interface SinkUpdate {
  readonly selector: Selector
  /** The whole set, in canonical form, sorted. */
  readonly addresses: readonly string[]
  /** True: no policy has the selector any more; the set is empty. */
  readonly isGone: boolean
}

interface SinkFeedParts {
  /**
   * Applies an update. Resolves with '' once the update is in force, otherwise with the reason why
   * it is not. Updates of one selector come one after the other, those of several selectors at the
   * same time.
   */
  readonly apply: (update: SinkUpdate) => Promise<string>
  readonly timers: Timers
  /** Called when updates begin to fail, with the reason, and with '' when they succeed again. */
  readonly onFault: (fault: string) => void
}

interface SelectorState {
  readonly selector: Selector
  wanted: readonly string[]
  /** What the sink acknowledged last; undefined = unknown, so it must get the whole set. */
  acknowledged: readonly string[] | undefined
  isGone: boolean
  /** The sink may have lost its set since the update in progress began. */
  isLost: boolean
  isApplying: boolean
  failures: number
  cancelRetry: (() => void) | undefined
}

/**
 * Feeds a sink: a place that enforces or publishes the addresses of selectors, such as address sets.
 * Per selector, one update is in progress at a time. Changes during an update are sent as one next
 * update. A failed update is repeated, after a longer wait each time, until it succeeds.
 */
export class SinkFeed {
  readonly #parts: SinkFeedParts
  readonly #states = new Map<string, SelectorState>()
  #fault = ''
  #isClosed = false

  constructor(parts: SinkFeedParts) {
    this.#parts = parts
  }

  /** Number of selectors with an update that is not acknowledged. */
  get pending(): number {
    let count = 0
    for (const state of this.#states.values()) if (!isInForce(state)) count++
    return count
  }

  /** Sets what the sink must have for a selector: addresses in canonical form, sorted. */
  set(selector: Selector, addresses: readonly string[]): void {
    const state = this.#stateOf(selector)
    state.wanted = addresses
    // The removal may be in progress: afterwards, the sink does not have the set any more.
    if (state.isGone) lose(state)
    state.isGone = false
    this.#apply(state)
  }

  /** Empties the set of a selector that no policy has any more, then forgets it. */
  remove(selector: Selector): void {
    const state = this.#states.get(selector.key)
    if (state === undefined) return
    state.wanted = []
    state.isGone = true
    this.#apply(state)
  }

  /** Applies the set of a selector again, because the sink may have lost it. */
  resync({ key }: Selector): void {
    const state = this.#states.get(key)
    if (state === undefined) return
    lose(state)
    this.#apply(state)
  }

  /** Starts no more updates. */
  close(): void {
    this.#isClosed = true
    for (const state of this.#states.values()) state.cancelRetry?.()
  }

  #stateOf(selector: Selector): SelectorState {
    const known = this.#states.get(selector.key)
    if (known !== undefined) return known
    const state: SelectorState = {
      selector,
      wanted: [],
      // What an earlier process left in the sink is unknown.
      acknowledged: undefined,
      isGone: false,
      isLost: false,
      isApplying: false,
      failures: 0,
      cancelRetry: undefined,
    }
    this.#states.set(selector.key, state)
    return state
  }

  #apply(state: SelectorState): void {
    if (state.isApplying || state.cancelRetry !== undefined || this.#isClosed) return
    if (!isInForce(state)) void this.#send(state)
  }

  async #send(state: SelectorState): Promise<void> {
    const { selector, wanted, isGone } = state
    state.isApplying = true
    state.isLost = false
    let fault: string
    try {
      fault = await this.#parts.apply({ selector, addresses: wanted, isGone })
    } catch (error) {
      fault = String(error)
    }
    state.isApplying = false
    if (fault === '') this.#acknowledge(state, wanted)
    else this.#fail(state, fault)
  }

  #acknowledge(state: SelectorState, addresses: readonly string[]): void {
    state.failures = 0
    this.#noteFault('')
    // If a resync came meanwhile, only the next update counts: it has the whole set.
    if (!state.isLost) state.acknowledged = addresses
    if (state.isGone && state.wanted === addresses) this.#states.delete(state.selector.key)
    else this.#apply(state)
  }

  #fail(state: SelectorState, fault: string): void {
    state.acknowledged = undefined
    this.#noteFault(fault)
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
}

function lose(state: SelectorState): void {
  state.isLost = true
  state.acknowledged = undefined
}

/** True if the sink has acknowledged what is wanted. */
function isInForce({ acknowledged, wanted, isGone }: SelectorState): boolean {
  return !isGone && acknowledged?.join() === wanted.join()
}
