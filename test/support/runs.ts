/** The part of the work that `npm test` does outside of CI, so that it stays short. */
const PART = 4

/** How often to run a property that needs much CPU time, or how many things to try: `all` in CI. */
export function runs(all: number): number {
  return process.env.CI === 'true' ? all : Math.ceil(all / PART)
}
