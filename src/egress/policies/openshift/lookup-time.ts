/**
 * Times of the next lookup that differ by no more are the same: replicas of a resolver count down one
 * TTL, and each change would be a write to the API.
 */
export const SAME_LOOKUP_MS = 5000

/** Time from the end of the validity to the removal of an address by the DNSNameResolver controller. */
export const REMOVAL_GRACE_MS = 5000

/** Milliseconds since 1970; 0 = no time. */
export function scanTime(text: string): number {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? 0 : ms
}
