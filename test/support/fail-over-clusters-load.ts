import t from 'tap'
import { needsCluster } from './cluster-binary.ts'
import { CLUSTER_ROWS, startFailOverClusters } from './fail-over-clusters.ts'
import { LOADED, LOADED_ROWS, runLoadedRow } from './fail-over-load.ts'
import type { Generation } from './fail-over-sites.ts'
import { needs, needsRoot } from './peer.ts'

/** Tests each fault of the last site under load. One test file for each list of sites: each waits for minutes. */
export function testLoadedClusters(generations: readonly Generation[]): void {
  t.test(
    `in any fault of a cluster, no query to a live server fails, and a dead address is gone: ${generations}`,
    { ...needsRoot(), ...needs('dig', 'nft', 'unbound'), ...needsCluster() },
    async (t) => {
      const of = await startFailOverClusters(t, { generations, ...LOADED })
      const rows = generations.at(-1) === 'v1' ? [] : CLUSTER_ROWS
      for (const row of [...LOADED_ROWS, ...rows]) await runLoadedRow(t, of, row)
    },
  )
}
