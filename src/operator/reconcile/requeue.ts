/** Bounds of the time between two reconciles of a record without events. */
export interface RequeueBounds {
  readonly minMs: number
  readonly maxMs: number
}

/** Added because a change that is due at a given time is visible only after it. */
const AFTER_MS = 1

/**
 * Time until the next reconcile of a record without events, in milliseconds: when its published
 * endpoints change by themselves, within the given bounds. `changesInMs`: time until that change;
 * undefined = never.
 */
export function requeueAfterMs(
  changesInMs: number | undefined,
  { minMs, maxMs }: RequeueBounds,
): number {
  const wantedMs = changesInMs === undefined ? maxMs : changesInMs + AFTER_MS
  return Math.min(Math.max(wantedMs, minMs), maxMs)
}
