import { ResourceRegistry } from '../base/resource-registry.ts'
import { systemTimers } from '../base/timers.ts'
import { bundledDatabasePath } from './mmdb/load.ts'
import { MmdbLocator } from './mmdb-locator.ts'
import { type JobRunner, runJobInline } from './worker/run-job.ts'

/** Returns a locator over one database, for a command; by default the bundled one. The caller opens and closes it. */
export function bundledLocator(
  path: string = bundledDatabasePath(),
  runJob: JobRunner = runJobInline,
): MmdbLocator {
  return new MmdbLocator({
    resources: new ResourceRegistry(),
    paths: [path],
    nets: [],
    timers: systemTimers,
    runJob,
    onReload: () => {},
    onLoad: () => {},
  })
}
