import t from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { CLUSTER_ROWS, startFailOverClusters } from '../support/fail-over-clusters.ts'
import { LOADED, LOADED_ROWS, runLoadedRow } from '../support/fail-over-load.ts'
import type { Generation } from '../support/fail-over-sites.ts'
import { needs, needsRoot } from '../support/peer.ts'

t.setTimeout(CLUSTER_TEST_MS)

for (const generations of [
  ['v2', 'v2'],
  ['v2', 'v2', 'v2'],
  ['v2', 'v1'],
] as const satisfies readonly (readonly Generation[])[]) {
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
