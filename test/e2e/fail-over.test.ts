import t, { type Test } from 'tap'
import { ROWS, type Row } from '../support/fail-over-rows.ts'
import {
  DOWN_S,
  FailOverSites,
  type Generation,
  gatewayOf,
  UP_S,
} from '../support/fail-over-sites.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { type Served, settle } from '../support/settle.ts'

// Long: it waits until sites are down and up again.

/** Beyond the bounds: three networks and other tests share the processors, and a site needs seconds to start then. */
const BUSY_S = 15
const NAME = 'app'

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
