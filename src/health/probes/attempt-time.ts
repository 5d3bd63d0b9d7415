import type { HealthCheck } from '../../records/health-check.ts'

/**
 * Timeout of a whole probe attempt, connection and TLS included, even if the server sends slowly.
 */
const TOTAL_MS_MAX = 8000

/** Milliseconds that an attempt of this check takes at most. */
export function attemptMsMax({ intervalMs }: Pick<HealthCheck, 'intervalMs'>): number {
  return Math.min(TOTAL_MS_MAX, intervalMs)
}
