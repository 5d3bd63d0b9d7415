import type { Selector } from '../selectors/selector.ts'
import type { GrantChange, GrantSet } from './grants.ts'

/** What a sink has to make true for one selector. */
export interface SinkUpdate extends GrantChange {
  readonly selector: Selector
  /** The whole set. The change is the difference from the last set that the sink acknowledged. */
  readonly grants: GrantSet
  /** True: the last update failed, so the sink must not rely on the change but apply the whole set. */
  readonly isResync: boolean
  /** True: no policy has the selector any more; the set is empty. */
  readonly isGone: boolean
}

/** A place that enforces grants or publishes them: an address set, a policy object, a status. */
export interface Sink {
  /** For logs and metrics. */
  readonly name: string
  /** True: the sink stores the end or the names of grants, and gets updates if only these change. */
  readonly needsDetails: boolean
  /**
   * Applies an update. Resolves with '' once the update is in force, otherwise with the reason why
   * it is not. Updates of one selector come one after the other, those of several selectors at the
   * same time.
   */
  apply(update: SinkUpdate): Promise<string>
}

/**
 * When a reply may leave. `async`: at once. `gate`: when the sinks have acknowledged its addresses,
 * at the latest after the deadline.
 */
export type SinkMode =
  | { readonly kind: 'async' }
  | { readonly kind: 'gate'; readonly deadlineMs: number }

/** The result of a wait for a sink. After `timed out` and `failed`, the caller decides what it sends. */
export type GateResult = 'acknowledged' | 'timed out' | 'failed'

/**
 * Waits for several sinks and selectors. Resolves with the worst result; undefined = nothing to
 * wait for.
 */
export function waitForAll(
  waits: readonly (Promise<GateResult> | undefined)[],
): Promise<GateResult> | undefined {
  const open = waits.filter((wait) => wait !== undefined)
  if (open.length === 0) return undefined
  return Promise.all(open).then((results) => {
    if (results.includes('failed')) return 'failed'
    return results.includes('timed out') ? 'timed out' : 'acknowledged'
  })
}
