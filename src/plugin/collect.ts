import type { DirectivePart } from './description.ts'
import type { SetupContext } from './directive.ts'

/**
 * Returns a part that runs `collect` before every scrape while the instance serves, and once more at its shutdown, so
 * that a reload loses no counts.
 */
export function collectWhileServing(
  { metrics }: Pick<SetupContext, 'metrics'>,
  collect: () => void,
): DirectivePart {
  let stop: (() => void) | undefined
  return {
    start: () => {
      stop = metrics.onCollect(collect)
    },
    stop: () => {
      if (stop === undefined) return
      collect()
      stop()
      stop = undefined
    },
  }
}
