import t from 'tap'
import { needsCluster } from './cluster-binary.ts'
import { CLUSTER_ROWS, startFailOverClusters } from './fail-over-clusters.ts'
import { LOADED, LOADED_ROWS, runLoadedRow } from './fail-over-load.ts'
import type { Generation } from './fail-over-sites.ts'
import { needs, needsRoot } from './peer.ts'

/** Tests each fault of the last site under load. Each list of sites has a test file, because its test takes minutes. */
export function testLoadedClusters(title: string, generations: readonly Generation[]): void {
  t.test(
    `${title}: ${generations}`,
    { ...needsRoot(), ...needs('dig', 'nft', 'unbound'), ...needsCluster() },
    async (t) => {
      const of = await startFailOverClusters(t, { generations, ...LOADED })
      const rows = generations.at(-1) === 'v1' ? [] : CLUSTER_ROWS
      for (const row of [...LOADED_ROWS, ...rows]) await runLoadedRow(t, of, row)
    },
  )
}
