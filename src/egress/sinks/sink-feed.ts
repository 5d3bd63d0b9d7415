import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { WorkQueue, type WorkResult } from '../../kube/work-queue.ts'
import type { Sink } from '../gate.ts'
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
  /** Of the sink. Updates of one selector come one after the other, those of several selectors at the same time. */
  readonly apply: Sink<SinkUpdate>['apply']
  /** Called when updates begin to fail, with the reason, and with '' when they succeed again. */
  readonly onFault: (fault: string) => void
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Logger
}

interface SelectorState {
  wanted: SinkUpdate
  /** What the sink acknowledged last. If it is not the object `wanted`, the sink must get that. */
  acknowledged: SinkUpdate | undefined
  /** Failed updates in a row. */
  failures: number
}

/**
 * Feeds a sink: a place that enforces or publishes the addresses of selectors, such as address sets.
 * Per selector, one update is in progress at a time. Changes during an update are sent as one next
 * update. A failed update is repeated, after a longer wait each time, until it succeeds.
 */
export class SinkFeed {
  readonly #parts: SinkFeedParts
  readonly #states = new Map<string, SelectorState>()
  readonly #queue: WorkQueue
  #fault = ''

  constructor(parts: SinkFeedParts) {
    this.#parts = parts
    this.#queue = new WorkQueue({
      ...parts,
      what: 'selectors',
      work: (key) => this.#send(key),
      workers: Number.POSITIVE_INFINITY,
    })
    this.#queue.start()
  }

  /** Number of selectors with an update that is not acknowledged. */
  get pending(): number {
    let count = 0
    for (const { wanted, acknowledged } of this.#states.values()) {
      if (wanted !== acknowledged) count++
    }
    return count
  }

  /** Sets what the sink must have for a selector: addresses in canonical form, sorted. */
  set(selector: Selector, addresses: readonly string[]): void {
    const wanted = this.#states.get(selector.key)?.wanted
    if (wanted?.isGone === false && wanted.addresses.join() === addresses.join()) return
    this.#want({ selector, addresses, isGone: false })
  }

  /** Empties the set of a selector that no policy has any more, then forgets it. */
  remove(selector: Selector): void {
    if (this.#states.has(selector.key)) this.#want({ selector, addresses: [], isGone: true })
  }

  /** Applies the set of a selector again, because the sink may have lost it. */
  resync({ key }: Selector): void {
    const state = this.#states.get(key)
    if (state !== undefined) this.#want({ ...state.wanted })
  }

  /** Starts no more updates. */
  close(): void {
    void this.#queue.close()
  }

  #want(wanted: SinkUpdate): void {
    const { key } = wanted.selector
    const known = this.#states.get(key)
    if (known === undefined) this.#states.set(key, { wanted, acknowledged: undefined, failures: 0 })
    else known.wanted = wanted
    // Otherwise, it is sent when the wait after the failure is over.
    if (known === undefined || known.failures === 0) this.#queue.add(key)
  }

  async #send(key: string): Promise<WorkResult | undefined> {
    const state = this.#states.get(key)
    if (state === undefined || state.acknowledged === state.wanted) return undefined
    const { wanted } = state
    const fault = await this.#apply(wanted)
    this.#noteFault(fault)
    if (fault !== '') {
      return { againMs: Math.min(RETRY_MS * 2 ** state.failures++, RETRY_MS_MAX) }
    }
    state.failures = 0
    state.acknowledged = wanted
    if (state.wanted !== wanted) return { againMs: 0 }
    if (wanted.isGone) this.#states.delete(key)
    return undefined
  }

  async #apply(wanted: SinkUpdate): Promise<string> {
    try {
      return await this.#parts.apply(wanted)
    } catch (error) {
      return String(error)
    }
  }

  #noteFault(fault: string): void {
    if (this.#fault === fault) return
    this.#fault = fault
    this.#parts.onFault(fault)
  }
}
