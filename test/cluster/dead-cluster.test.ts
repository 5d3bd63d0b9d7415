import t, { type Test } from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { runRow } from '../support/fail-over-check.ts'
import { clusterAt, startFailOverClusters, WHOLE_SITE_DIES } from '../support/fail-over-clusters.ts'
import { type FailOverSites, type Generation, gatewayOf } from '../support/fail-over-sites.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { LACKED } from '../support/rights.ts'

/** What other tests on the machine may add. */
const BUSY_S = 20
const NAME = 'app'

/** What else holds while the whole site is dead. */
async function checkDeadSite(t: Test, of: FailOverSites): Promise<void> {
  const first = clusterAt(of, 0)
  const left = of.sites.slice(0, -1).map(({ number }) => gatewayOf(number))
  t.match(first.output, /10\.9\.1\.\d of app\.k\.example\.com is taken out: /)
  const targets = await first.mergedTargets()
  t.strictSame([...targets].sort(), left, 'other programs get only what works')
  await first.killOperator()
  await first.startOperator()
  t.strictSame(await of.answer(0, NAME), left, 'a new operator changes nothing')
  // Not later: an API server that starts refuses everything until it has read its roles.
  t.notMatch(of.output, LACKED, 'no right was missing')
}

t.setTimeout(CLUSTER_TEST_MS)

// fail-over-load*.test.ts test the other faults, and all faults of a v1 site, which has no operator that could die.
for (const generations of [
  ['v2', 'v2'],
  ['v2', 'v2', 'v2'],
] as const satisfies readonly (readonly Generation[])[]) {
  const tools = { ...needsRoot(), ...needs('dig', 'nft'), ...needsCluster() }
  t.test(`a dead cluster loses its traffic: ${generations}`, tools, async (t) => {
    const of = await startFailOverClusters(t, { generations, names: [NAME], ttlSeconds: 1 })
    const probes = await clusterAt(of, 0).probes()
    t.equal(probes.length, 1, 'the addresses of peers need no objects')
    const during = () => checkDeadSite(t, of)
    await runRow(t, of, WHOLE_SITE_DIES, { name: NAME, busyS: BUSY_S, during })
  })
}
