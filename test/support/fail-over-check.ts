import type { Test } from 'tap'
import type { Row } from './fail-over-rows.ts'
import { DOWN_S, type FailOverSites, gatewayOf, UP_S } from './fail-over-sites.ts'
import { type Served, settle } from './settle.ts'

export interface RowOptions {
  /** A name of the record, without the zone. */
  readonly name: string
  /** Seconds beyond the bounds: several networks and other tests share the processors. */
  readonly busyS: number
  /** What else holds during the fault. */
  readonly during?: () => Promise<void>
}

/** Runs one row of the partition table: each site that answers gives what it should within the bound, and nothing else. */
export async function runRow(
  t: Test,
  of: FailOverSites,
  row: Row,
  { name, busyS, during = async () => {} }: RowOptions,
): Promise<void> {
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
      .map(({ number }) => ({ number, answer: () => of.answer(number, name) }))
    const limitS = boundS + busyS
    const { wrong, tookS } = await settle(asked, live(want), { addresses, limitS, watchS })
    t.equal(wrong, '', `${about}, ${what}${wrong === '' ? '' : `\n${of.output}`}`)
    t.comment(`${about}, ${what}: ${tookS.toFixed(1)} s of ${boundS}`)
  }
  await row.begin(of, last)
  await check(last === 1 ? row.two : row.three, DOWN_S, DOWN_S, 'fault')
  await during()
  await row.end(of, last)
  const all = of.sites.map(({ number }) => number)
  await check(Object.fromEntries(all.map((site) => [site, all])), UP_S, 0, 'recovery')
}
