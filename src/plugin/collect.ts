import type { SetupContext } from './directive.ts'

/**
 * Runs `collect` before every scrape while the instance serves, and once more at its shutdown, so
 * that a reload loses no counts.
 */
export function collectWhileServing(c: SetupContext, collect: () => void): void {
  let stop: (() => void) | undefined
  c.onStartup(() => {
    stop = c.metrics.onCollect(collect)
  })
  c.onShutdown(() => {
    if (stop === undefined) return
    collect()
    stop()
    stop = undefined
  })
}
