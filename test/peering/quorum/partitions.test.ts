import t from 'tap'
import { PARTITIONS, type PartitionRow } from './partition-rows.ts'
import { addressOf, type Family } from './simulated-addresses.ts'
import { boundsOf, type CheckTimes } from './simulated-probes.ts'
import { SimulatedSites } from './simulated-sites.ts'

// Long: hours of simulated time for each row.

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

// A plain server that has `peer-cache FILE` and not `probe FILE`.
for (const count of [2, 3] as const) {
  t.test(`a restart with endpoints and without findings, ${count} sites`, async (t) => {
    const generations = Array.from({ length: count }, () => 'v2' as const)
    const network = new SimulatedSites({ seed: 1, generations, times: TIMES })
    const last = network.sites[count - 1]!
    const [site] = network.sites
    const left = network.numbers.slice(0, -1).map(addressOf).join()
    const all = network.numbers.map(addressOf).join()
    network.run(60)
    last.isUp = false
    last.isGatewayUp = false
    network.run(downS)
    t.equal(site!.answers.join(), left)
    for (const what of ['first', 'second']) {
      site!.start({ findings: false, endpoints: true })
      const found = new Set([site!.answers.join()])
      network.run(20, () => found.add(site!.answers.join()))
      t.strictSame([...found], [left], `the dead address stays out after the ${what} restart`)
    }
    last.isGatewayUp = true
    site!.start({ findings: false, endpoints: true })
    network.run(upS)
    t.equal(site!.answers.join(), all, 'after the recovery')
  })
}

t.test('an isolated site reports it', async (t) => {
  const generations = ['v2', 'v2', 'v2', 'v2', 'v2'] as const
  const network = new SimulatedSites({ seed: 4, generations, times: TIMES })
  network.run(60)
  network.setSite(1, false)
  network.run(downS)
  const { status } = network.sites[1]!.quorum
  t.equal(status.isIsolated, true)
  const line =
    /site site1 is isolated: 1 of 5 sites heard, silent: site0, site2, site3, site4; its own/
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
  })
}

// Of the IPv4 addresses, only that of site 1 works elsewhere. Only site 0 reaches it.
for (const { what, families, isDrained = false, isDeaf = false, wanted } of [
  { what: 'its own works', families: [4], wanted: [0] },
  { what: 'its own is down', families: [4], isDeaf: true, wanted: [1] },
  { what: 'its own is drained', families: [4], isDrained: true, wanted: [1] },
  { what: 'it has IPv6 only', families: [6], wanted: [1] },
  { what: 'its IPv4 is down, its IPv6 is not', families: [4, 6], isDeaf: true, wanted: [1] },
  { what: 'its IPv4 is drained, its IPv6 is not', families: [4, 6], isDrained: true, wanted: [1] },
] as readonly {
  readonly what: string
  /** Of site 0. */
  readonly families: readonly Family[]
  readonly isDrained?: boolean
  readonly isDeaf?: boolean
  readonly wanted: readonly number[]
}[]) {
  t.test(`what one site alone reaches: ${what}`, async (t) => {
    const generations = ['v2', 'v2', 'v2', 'v2', 'v2'] as const
    const rest: readonly Family[][] = [[4], [4], [4], [4]]
    const how = { seed: 1, generations, times: TIMES, families: [families, ...rest] }
    const network = new SimulatedSites(how)
    const [site] = network.sites
    network.run(60)
    for (const other of [2, 3, 4]) {
      network.deaf.add(other)
      network.setLink(other, 1, false, 'probes')
    }
    if (isDeaf) network.deaf.add(0)
    network.run(downS)
    const own = [addressOf(families.includes(4) && !isDeaf ? 0 : 1)]
    t.strictSame(site!.answers, own, 'before the drain')
    site!.drain(0, isDrained)
    t.strictSame(site!.answers, wanted.map(addressOf), 'at once')
    network.run(60)
    t.strictSame(site!.answers, wanted.map(addressOf), 'and later')
    site!.drain(0, false)
    t.strictSame(site!.answers, own, 'after the drain')
  })
}
