import type { DnsRecordView } from '../record/record-view.ts'

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

/** Time until the drain ends that the annotations of a record ask for; undefined = it does not, or has ended. */
export function drainEndsInMs({ resource }: DnsRecordView, timeMs: number): number | undefined {
  const drain = resource.kind === 'record' ? resource.record.settings?.drain : undefined
  return drain?.untilMs === undefined || drain.untilMs <= timeMs
    ? undefined
    : drain.untilMs - timeMs
}
