import { setTimeout as delay } from 'node:timers/promises'

/**
 * Interval between checks: at first the minimum, then 2 % of the time waited, because a check may be expensive. In any case
 * longer than the last check took: other tests need the processors that a check with processes of its own uses.
 */
const CHECK_MS_MIN = 5
const CHECK_MS_MAX = 50
const CHECK_REST = 2
const REST_MS_MAX = 500

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
  for (let checkMs = startMs; !(await condition()); checkMs = performance.now()) {
    const nowMs = performance.now()
    const waitedMs = nowMs - startMs
    if (waitedMs > timeoutMs) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`)
    const restMs = Math.min(REST_MS_MAX, CHECK_REST * (nowMs - checkMs))
    await delay(Math.max(restMs, Math.min(CHECK_MS_MAX, Math.max(CHECK_MS_MIN, waitedMs / 50))))
  }
}
