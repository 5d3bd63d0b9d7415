import t, { type Test } from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import {
  CLUSTER_ROWS,
  type ClusterRow,
  WHOLE_SITE_DIES,
} from '../support/fail-over-cluster-rows.ts'
import {
  DOWN_S,
  type FailOverCluster,
  startFailOverClusters,
  UP_S,
} from '../support/fail-over-clusters.ts'
import type { Generation } from '../support/fail-over-sites.ts'
import { LACKED } from '../support/rights.ts'
import { type Served, settle } from '../support/settle.ts'

/** What other tests on the machine may add. */
const BUSY_S = 20
const START_S = 120

type Sites = readonly FailOverCluster[]

/** What else holds while the whole site is dead. */
async function checkDeadSite(t: Test, sites: Sites): Promise<void> {
  const [first] = sites as [FailOverCluster]
  const left = sites.slice(0, -1).map(({ address }) => address)
  t.match(first.output, /127\.0\.0\.\d of app\.k\.example\.com is taken out: /)
  const targets = await first.mergedTargets()
  t.strictSame([...targets].sort(), left, 'other programs get only what works')
  await first.killOperator()
  await first.startOperator()
  t.strictSame(await first.answer(), left, 'a new operator changes nothing')
  // Not later: an API server that starts refuses everything until it has read its roles.
  for (const site of sites) t.notMatch(site.output, LACKED, 'no right was missing')
}

async function runRow(t: Test, sites: Sites, row: ClusterRow): Promise<void> {
  const last = sites.at(-1)!
  const about = `${sites.length} sites, ${last.generation}: ${row.fault}`
  const check = async (want: Served, boundS: number, watchS: number, what: string) => {
    const asked = sites.filter((site) => site.generation === 'v2' && site.isUp)
    const isAsked = (number: number) => asked.some((site) => site.number === number)
    const live = Object.fromEntries(Object.entries(want).filter(([i]) => isAsked(Number(i))))
    const addresses = sites.map(({ address }) => address)
    const { wrong, tookS } = await settle(asked, live, {
      addresses,
      limitS: boundS + BUSY_S,
      watchS,
    })
    const output = sites.map((site) => site.output).join('\n')
    t.equal(wrong, '', `${about}, ${what}${wrong === '' ? '' : `\n${output}`}`)
    t.comment(`${about}, ${what}: ${tookS.toFixed(1)} s of ${boundS}`)
  }
  const all = Object.fromEntries(sites.map(({ number }) => [number, sites.map((s) => s.number)]))
  await check(all, START_S, 0, 'before')
  await row.begin(last)
  await check(sites.length === 2 ? row.two : row.three, DOWN_S, DOWN_S, 'fault')
  if (row === WHOLE_SITE_DIES) await checkDeadSite(t, sites)
  await row.end(last)
  await check(all, UP_S, 0, 'recovery')
}

t.setTimeout(CLUSTER_TEST_MS)

for (const generations of [
  ['v2', 'v1'],
  ['v2', 'v2'],
  ['v2', 'v2', 'v2'],
] as const satisfies readonly (readonly Generation[])[]) {
  t.test(`a dead cluster loses its traffic: ${generations}`, needsCluster(), async (t) => {
    const sites = await startFailOverClusters(t, generations)
    const isOld = sites.at(-1)!.generation === 'v1'
    for (const site of sites) await site.observes()
    t.equal((await sites[0]!.probes()).length, 1, 'the addresses of peers need no objects')
    for (const row of CLUSTER_ROWS) if (!(isOld && row.isOfCluster)) await runRow(t, sites, row)
  })
}
