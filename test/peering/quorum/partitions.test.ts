import t from 'tap'
import { PARTITIONS, type PartitionRow } from './partition-rows.ts'
import { addressOf, boundsOf, type CheckTimes, SimulatedSites } from './simulated-sites.ts'

const TIMES: CheckTimes = { probeS: 5, failures: 3, successes: 2 }
const { downS, upS } = boundsOf(TIMES)

for (const { fault, begin, end, ...wanted } of PARTITIONS) {
  for (const count of [2, 3] as const) {
    for (const peers of ['v2', 'v1'] as const) {
      t.test(`${count} sites, ${peers}: ${fault}`, async (t) => {
        const last = count - 1
        const generations = Array.from({ length: count }, (_, i) => (i === last ? peers : 'v2'))
        const network = new SimulatedSites({ seed: 1, generations, times: TIMES })
        const all = network.numbers.map(addressOf)
        /** Returns a site with other answers than wanted; '' = none. */
        const differs = (want: PartitionRow['two']): string => {
          for (const { number, name, isUp, answers } of network.sites) {
            // A v1 peer is another program.
            if (!isUp || (peers === 'v1' && number === last)) continue
            const addresses = want[number]?.map(addressOf) ?? all
            if (answers.join() !== addresses.join()) return `${name}: ${answers}`
          }
          return ''
        }
        const check = (want: PartitionRow['two'], what: string, seconds = 0): void => {
          let found = differs(want)
          network.run(seconds, () => (found ||= differs(want)))
          t.equal(found, '', `${what}\n${network.log.join('\n')}`)
        }
        network.run(60)
        check({}, 'before')
        begin(network, last)
        network.run(downS)
        const want = count === 2 ? wanted.two : wanted.three
        check(want, 'after the bound, and later', 200)
        end(network, last)
        network.run(upS)
        check({}, 'after the recovery, and later', 100)
      })
    }
  }
}

t.test('an isolated site reports it', async (t) => {
  const generations = ['v2', 'v2', 'v2', 'v2', 'v2'] as const
  const network = new SimulatedSites({ seed: 4, generations, times: TIMES })
  network.run(60)
  network.setSite(1, false)
  network.run(downS)
  const { status } = network.sites[1]!.quorum
  t.equal(status.isIsolated, true)
  const line = /site1: .*site is isolated: 1 of 5 sites heard; its own checks decide/
  t.match(network.log.join('\n'), line)
})

for (const [what, skewS] of [
  ['ahead', 3600],
  ['behind', -3600],
] as const) {
  t.test(`a site whose clock is an hour ${what} changes no decision`, async (t) => {
    const generations = ['v2', 'v2', 'v2'] as const
    const skewsS = [0, skewS, 0]
    const network = new SimulatedSites({ seed: 8, generations, times: TIMES, skewsS })
    network.run(60)
    network.sites[2]!.isUp = false
    network.sites[2]!.isGatewayUp = false
    network.run(downS)
    const left = network.numbers.slice(0, 2).map(addressOf)
    for (const site of network.sites.slice(0, 2)) t.strictSame(site.answers, left, site.name)
    t.match(network.log.join(), /its clock is 3\d+ s ahead of ours/, 'the later clock is logged')
  })
}
