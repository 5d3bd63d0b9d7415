import t, { type Test } from 'tap'
import {
  DOWN_S,
  FailOverSites,
  type Generation,
  gatewayOf,
  UP_S,
} from '../support/fail-over-sites.ts'
import { needs, needsRoot } from '../support/peer.ts'

/** Beyond the bounds: three networks and other tests share the processors, and a site needs seconds to start then. */
const BUSY_S = 15
const NAME = 'app'

/** What the sites serve, by site: numbers of the sites whose addresses it gives; missing = those of all, all the time. */
type Served = Readonly<Record<number, readonly number[]>>

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

/**
 * Waits until each live v2 site gives what it should, at most `limitS`. Sites that should not change are asked for
 * `watchS`. Returns what was wrong, '' = nothing, and the seconds that the last change took.
 */
async function settle(of: FailOverSites, want: Served, limitS: number, watchS: number) {
  const all = of.sites.map(({ number }) => gatewayOf(number))
  const startMs = performance.now()
  const secondsSince = (): number => (performance.now() - startMs) / 1000
  const waiting = new Set(Object.keys(want).map(Number))
  const asked = of.sites.filter(({ generation, isUp }) => generation === 'v2' && isUp)
  const isWatched = watchS > 0 && asked.some(({ number }) => want[number] === undefined)
  const state = { wrong: '', tookS: 0 }
  while (waiting.size > 0 || (isWatched && secondsSince() < watchS)) {
    for (const { number } of asked) {
      const wanted = want[number]?.map(gatewayOf) ?? all
      const got = await of.answer(number, NAME)
      const isSo = got?.join() === wanted.join()
      if (got?.length === 0) return { ...state, wrong: `site${number} gives no address` }
      if (isSo && waiting.delete(number)) state.tookS = secondsSince()
      if (isSo || waiting.has(number)) continue
      return {
        ...state,
        wrong: `site${number} gives ${got}, not ${wanted}, after ${secondsSince()} s`,
      }
    }
    if (waiting.size === 0 || secondsSince() <= limitS) continue
    return {
      ...state,
      wrong: `sites ${[...waiting]}: waited ${limitS} s in vain for ${JSON.stringify(want)}`,
    }
  }
  return state
}

async function runRow(t: Test, of: FailOverSites, { begin, end, ...row }: Row): Promise<void> {
  const last = of.sites.length - 1
  const generations = of.sites.map(({ generation }) => generation)
  const about = `${of.sites.length} sites, ${generations[last]}: ${row.fault}`
  const live = (want: Served): Served => {
    return Object.fromEntries(Object.entries(want).filter(([i]) => generations[Number(i)] === 'v2'))
  }
  const check = async (want: Served, boundS: number, watchS: number, what: string) => {
    const { wrong, tookS } = await settle(of, live(want), boundS + BUSY_S, watchS)
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
