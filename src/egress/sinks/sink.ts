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
