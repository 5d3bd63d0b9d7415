/** Bounds between two looks at a record of which nobody heard anything. */
export interface RequeueBounds {
  readonly minMs: number
  readonly maxMs: number
}

/** What is due at a certain time has come only after it. */
const AFTER_MS = 1

/**
 * When to look at a record again that nobody tells anything of: when silence alone will change what is published, and now
 * and then in any case. `changesInMs`: until the former; undefined = never.
 */
export function requeueAfterMs(
  changesInMs: number | undefined,
  { minMs, maxMs }: RequeueBounds,
): number {
  const wantedMs = changesInMs === undefined ? maxMs : changesInMs + AFTER_MS
  return Math.min(Math.max(wantedMs, minMs), maxMs)
}
