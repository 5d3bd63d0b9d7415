import t, { type Test } from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
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

/** A row of the partition table in docs/explanation/health.md, between real clusters. `last`: the site with the fault. */
interface Row {
  readonly fault: string
  readonly begin: (last: FailOverCluster) => Promise<unknown>
  readonly end: (last: FailOverCluster) => Promise<unknown>
  readonly two: Served
  readonly three: Served
  /** What else holds during the fault. */
  readonly also?: (t: Test, sites: Sites) => Promise<void>
  /** Only clusters have the part that fails. */
  readonly isOfCluster?: boolean
}

const ROWS: readonly Row[] = [
  {
    fault: 'the DNS of a site dies',
    begin: (last) => last.killServer(),
    end: (last) => last.startServer(),
    two: {},
    three: {},
  },
  {
    fault: 'the application of a site dies',
    begin: (last) => last.stopApplication(),
    end: (last) => last.startApplication(),
    two: { 0: [0], 1: [0] },
    three: { 0: [0, 1], 1: [0, 1], 2: [0, 1] },
  },
  {
    fault: 'the whole site dies',
    begin: (last) => Promise.all([last.killServer(), last.stopApplication(), last.killOperator()]),
    end: (last) => last.start(),
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
    also: async (t, sites) => {
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
    },
  },
  {
    fault: 'the API server of a site dies',
    begin: (last) => last.cluster!.killServer(),
    end: async (last) => {
      await last.cluster!.startServer()
      // As Kubernetes does: an operator that cannot renew its lease ends.
      await last.startOperator()
    },
    two: {},
    three: {},
    isOfCluster: true,
  },
  {
    fault: 'the operator of a site dies',
    begin: (last) => last.killOperator(),
    end: (last) => last.startOperator(),
    two: {},
    three: {},
    isOfCluster: true,
  },
]

async function runRow(t: Test, sites: Sites, { begin, end, also, ...row }: Row): Promise<void> {
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
  await begin(last)
  await check(sites.length === 2 ? row.two : row.three, DOWN_S, DOWN_S, 'fault')
  await also?.(t, sites)
  await end(last)
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
    for (const row of ROWS) if (!(isOld && row.isOfCluster)) await runRow(t, sites, row)
  })
}
