/** Part of the runs of a property that `npm test` makes outside of CI, so that it stays short. */
const PART = 4

/** How often to run a property that needs much CPU time: `all` times in CI. */
export function runs(all: number): number {
  return process.env.CI === 'true' ? all : Math.ceil(all / PART)
}
