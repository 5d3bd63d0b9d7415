import { yieldMsOf } from './merge/choose-site-states.ts'

/** Nameservers are asked every few seconds. One that is silent for this long has not only restarted. */
const STALE_MS = 60_000

/** Returns how long a site is silent before replies with its endpoints say so. `expiryMs`: of silent-site. */
export function staleMsOf(expiryMs: number): number {
  return Math.min(STALE_MS, expiryMs / 2)
}

/**
 * Returns when a site state becomes stale, or may be confirmed without an event; Infinity = unknown. `isAlone`: its
 * peer was heard since, but did not confirm it. `recheckMs`: interval of checks while that lasts.
 */
export function nextStaleMs(
  seenMs: number,
  { nowMs, expiryMs, isAlone, recheckMs }: StaleRules,
): number {
  const staleMs = seenMs + staleMsOf(expiryMs)
  if (staleMs <= nowMs) {
    const againMs = nowMs + recheckMs
    const expiresMs = seenMs + expiryMs
    if (!isAlone) return Number.POSITIVE_INFINITY
    return expiresMs > nowMs ? Math.min(expiresMs, againMs) : againMs
  }
  const isLate = isAlone || nowMs - seenMs > yieldMsOf(expiryMs)
  return isLate ? staleMs : Number.POSITIVE_INFINITY
}

interface StaleRules {
  readonly nowMs: number
  readonly expiryMs: number
  readonly isAlone: boolean
  readonly recheckMs: number
}
