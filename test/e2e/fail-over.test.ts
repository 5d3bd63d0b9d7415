import t, { type Test } from 'tap'
import {
  DOWN_S,
  FailOverSites,
  type Generation,
  gatewayOf,
  UP_S,
} from '../support/fail-over-sites.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { type Served, settle } from '../support/settle.ts'

/** Beyond the bounds: three networks and other tests share the processors, and a site needs seconds to start then. */
const BUSY_S = 15
const NAME = 'app'

/** A row of the partition table in docs/explanation/health.md. `last`: the site with the fault. */
interface Row {
  readonly fault: string
  readonly begin: (of: FailOverSites, last: number) => Promise<void>
  readonly end: (of: FailOverSites, last: number) => Promise<void>
  readonly two: Served
  readonly three: Served
}

const heal = ({ sites }: FailOverSites, last: number): Promise<void> => sites[last]!.heal()

const ROWS: readonly Row[] = [
  {
    fault: 'the DNS of a site dies',
    begin: ({ sites }, last) => sites[last]!.killServer(),
    end: async ({ sites }, last) => sites[last]!.startServer(),
    two: {},
    three: {},
  },
  {
    fault: 'the application of a site dies',
    begin: ({ sites }, last) => sites[last]!.killGateway(),
    end: ({ sites }, last) => sites[last]!.startGateway(),
    two: { 0: [0], 1: [0] },
    three: { 0: [0, 1], 1: [0, 1], 2: [0, 1] },
  },
  {
    fault: 'both die',
    begin: async ({ sites }, last) => {
      await sites[last]!.killServer()
      await sites[last]!.killGateway()
    },
    end: async ({ sites }, last) => {
      await sites[last]!.startGateway()
      sites[last]!.startServer()
    },
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
  },
  {
    fault: 'the link between two sites breaks',
    begin: ({ sites }, last) => sites[last]!.cut([0]),
    end: heal,
    two: { 0: [0], 1: [1] },
    three: {},
  },
  {
    fault: 'one direction of it breaks',
    begin: ({ sites }, last) => sites[last]!.refuse(0),
    end: heal,
    two: { 0: [0] },
    three: {},
  },
  {
    fault: 'a site is cut from all others',
    begin: ({ sites }, last) => {
      return sites[last]!.cut(sites.slice(0, last).map(({ number }) => number))
    },
    end: heal,
    two: { 0: [0], 1: [1] },
    three: { 0: [0, 1], 1: [0, 1], 2: [2] },
  },
  {
    fault: 'no other site reaches the gateway of a site',
    begin: ({ sites }, last) => sites[last]!.hideGateway(),
    end: heal,
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
  },
]

async function runRow(t: Test, of: FailOverSites, { begin, end, ...row }: Row): Promise<void> {
  const last = of.sites.length - 1
  const generations = of.sites.map(({ generation }) => generation)
  const about = `${of.sites.length} sites, ${generations[last]}: ${row.fault}`
  const addresses = of.sites.map(({ number }) => gatewayOf(number))
  const live = (want: Served): Served => {
    return Object.fromEntries(Object.entries(want).filter(([i]) => generations[Number(i)] === 'v2'))
  }
  const check = async (want: Served, boundS: number, watchS: number, what: string) => {
    const asked = of.sites
      .filter((site) => site.generation === 'v2' && site.isUp)
      .map(({ number }) => ({ number, answer: () => of.answer(number, NAME) }))
    const limitS = boundS + BUSY_S
    const { wrong, tookS } = await settle(asked, live(want), { addresses, limitS, watchS })
    t.equal(wrong, '', `${about}, ${what}${wrong === '' ? '' : `\n${of.output}`}`)
    t.comment(`${about}, ${what}: ${tookS.toFixed(1)} s of ${boundS}`)
  }
  await begin(of, last)
  await check(last === 1 ? row.two : row.three, DOWN_S, DOWN_S, 'fault')
  await end(of, last)
  const all = of.sites.map(({ number }) => number)
  await check(Object.fromEntries(all.map((site) => [site, all])), UP_S, 0, 'recovery')
}

async function runRows(t: Test, generations: readonly Generation[]): Promise<void> {
  const of = await FailOverSites.start(t, { generations, names: [NAME], ttlSeconds: 5 })
  for (const row of ROWS) await runRow(t, of, row)
}

const tools = { ...needsRoot(), ...needs('dig', 'nft') }

t.test('the partition table holds between real servers', tools, async (t) => {
  // Side by side: most of the time is waiting.
  await Promise.all([
    runRows(t, ['v2', 'v2']),
    runRows(t, ['v2', 'v2', 'v2']),
    runRows(t, ['v2', 'v1']),
  ])
})
