import { homedir } from 'node:os'
import { join } from 'node:path'

/** What outlasts a test run, and a checkout: `.ci/node` and `test/cluster/build` use it too. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sextant')
}
