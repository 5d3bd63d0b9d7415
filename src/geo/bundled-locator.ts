import { ResourceRegistry } from '../base/resource-registry.ts'
import { systemTimers } from '../base/timers.ts'
import { bundledDatabasePath } from './mmdb/load.ts'
import { MmdbLocator } from './mmdb-locator.ts'
import { runJobInline } from './worker/run-job.ts'

/** Returns a locator over the bundled country database, for a command. The caller opens and closes it. */
export function bundledLocator(): MmdbLocator {
  return new MmdbLocator({
    resources: new ResourceRegistry(),
    paths: [bundledDatabasePath()],
    nets: [],
    timers: systemTimers,
    runJob: runJobInline,
    onReload: () => {},
    onLoad: () => {},
  })
}
