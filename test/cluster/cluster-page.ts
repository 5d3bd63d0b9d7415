import { cpSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Cluster } from '../support/cluster.ts'
import { PageRun } from '../support/page.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** Runs what a page shows, with a cluster that nothing else uses. `page`: path in the repository. */
export async function runPageInCluster(t: Test, page: string): Promise<void> {
  const cluster = await Cluster.start(t)
  const directory = temporaryDirectory(t)
  cpSync(join(root, 'crds'), join(directory, 'crds'), { recursive: true })
  process.env.KUBECONFIG = cluster.kubeconfig('admin')
  // kubectl keeps a cache there.
  process.env.HOME = directory
  await PageRun.run(t, page, directory)
}
