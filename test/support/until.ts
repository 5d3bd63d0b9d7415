import { setTimeout as delay } from 'node:timers/promises'

/** Looks come so often at first; then after a fiftieth of what was waited, as they may cost what is waited for. */
const LOOK_MS_MIN = 5
const LOOK_MS_MAX = 50

/**
 * Waits until `condition` holds, looking every few milliseconds; fails after `timeoutMs`, which is what a slow and busy
 * machine may take, and no measure of anything.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 120_000,
): Promise<void> {
  const startMs = performance.now()
  while (!(await condition())) {
    const waitedMs = performance.now() - startMs
    if (waitedMs > timeoutMs) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`)
    await delay(Math.min(LOOK_MS_MAX, Math.max(LOOK_MS_MIN, waitedMs / 50)))
  }
}
