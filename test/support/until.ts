import { setTimeout as delay } from 'node:timers/promises'

/** Interval between checks: at first the minimum, then 2 % of the time waited, because a check may be expensive. */
const CHECK_MS_MIN = 5
const CHECK_MS_MAX = 50

/**
 * Waits until `condition` holds: checks every few milliseconds, and rejects after `timeoutMs`. The limit only ends a test
 * that hangs: it is long enough for a busy machine.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 60_000,
): Promise<void> {
  const startMs = performance.now()
  while (!(await condition())) {
    const waitedMs = performance.now() - startMs
    if (waitedMs > timeoutMs) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`)
    await delay(Math.min(CHECK_MS_MAX, Math.max(CHECK_MS_MIN, waitedMs / 50)))
  }
}
