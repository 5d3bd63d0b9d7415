import { setTimeout as delay } from 'node:timers/promises'

/** Waits until `condition` holds, looking every few milliseconds; fails after `timeoutMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 30_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`)
    await delay(5)
  }
}
