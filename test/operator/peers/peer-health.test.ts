import t from 'tap'
import { PARTITIONS, type PartitionRow } from '../../peering/quorum/partition-rows.ts'
import { boundsOf, type CheckTimes } from '../../peering/quorum/simulated-probes.ts'
import { addressOf, SimulatedClusters } from './simulated-clusters.ts'

// Long: many simulated clusters.

const TIMES: CheckTimes = { probeS: 5, failures: 3, successes: 2 }
const { downS, upS } = boundsOf(TIMES)
const BEGIN_S = 40

/** Returns a cluster with other answers than wanted; '' = none. `except`: its answers are those of another program. */
function differs(
  { sites, numbers }: SimulatedClusters,
  want: PartitionRow['two'],
  except = -1,
): string {
  for (const { number, name, isUp, answers } of sites) {
    if (!isUp || number === except) continue
    const wanted = (want[number] ?? numbers).map(addressOf).join()
    if (answers.ours.join() !== wanted) return `${name}: ${answers.ours}`
    if (answers.others.join() !== wanted) return `${name} for other programs: ${answers.others}`
  }
  return ''
}

for (const { fault, begin, end, ...wanted } of PARTITIONS) {
  for (const count of [2, 3] as const) {
    for (const generation of ['v2', 'v1'] as const) {
      t.test(`${count} clusters, ${generation}: ${fault}`, async (t) => {
        const last = count - 1
        const generations = Array.from({ length: count }, (_, i) =>
          i === last ? generation : 'v2',
        )
        const network = new SimulatedClusters({ generations, times: TIMES })
        const except = generation === 'v1' ? last : -1
        const check = async (want: PartitionRow['two'], what: string, seconds = 0) => {
          let found = differs(network, want, except)
          await network.run(seconds, () => (found ||= differs(network, want, except)))
          t.equal(found, '', `${what}\n${network.log.join('\n')}`)
        }
        await network.run(BEGIN_S)
        await check({}, 'before')
        begin(network, last)
        await network.run(downS)
        await check(count === 2 ? wanted.two : wanted.three, 'after the bound, and later', 60)
        end(network, last)
        await network.run(upS)
        await check({}, 'after the recovery, and later', 30)
      })
    }
  }
}

t.test('an operator that starts again changes nothing', async (t) => {
  for (const count of [2, 3]) {
    const generations = Array.from({ length: count }, () => 'v2' as const)
    const network = new SimulatedClusters({ generations, times: TIMES })
    await network.run(BEGIN_S)
    network.sites[1]!.isUp = false
    network.sites[1]!.isGatewayUp = false
    await network.run(downS)
    const left = network.numbers.filter((number) => number !== 1)
    const want = Object.fromEntries(left.map((number) => [number, left]))
    t.equal(differs(network, want), '', 'the dead cluster is out')
    const { served, down } = network.sites[0]!.status
    t.strictSame([served, down], [`${count - 1}/${count}`, addressOf(1)], 'the status has it')
    for (const number of left) {
      const { cluster } = network.sites[number]!
      cluster.takeWrites()
      network.sites[number]!.start()
      let found = ''
      await network.run(60, () => (found ||= differs(network, want)))
      t.equal(found, '', `${count} clusters: no flapping at ${number}`)
      t.strictSame(cluster.takeWrites(), [], 'nothing is written')
    }
    t.equal(
      network.log.filter((line) => line.includes('is taken out')).length,
      left.length,
      'logged once',
    )
    // The operators die: the records are as they were.
    for (const site of network.sites) site.isOperatorUp = false
    network.sites[1]!.isGatewayUp = true
    await network.run(100)
    t.equal(differs(network, want), '', 'no operator, no change')
  }
})

t.test('an operator that starts again believes the majority as before', async (t) => {
  const generations = ['v2', 'v2', 'v2', 'v2'] as const
  const network = new SimulatedClusters({ generations, times: TIMES })
  await network.run(BEGIN_S)
  network.sites[3]!.isUp = false
  for (const from of [1, 2]) network.setLink(from, 3, false, 'probes')
  await network.run(downS)
  const want = { 0: [0, 1, 2], 1: [0, 1, 2], 2: [0, 1, 2] }
  t.equal(differs(network, want), '', 'only one of three reaches it')
  network.sites[0]!.start()
  let found = ''
  await network.run(60, () => (found ||= differs(network, want)))
  t.equal(found, '', 'although this one starts again')
})

t.test('without a health check, silent-site decides', async (t) => {
  for (const silentMs of [60_000, 24 * 3_600_000]) {
    const generations = ['v2', 'v2'] as const
    const network = new SimulatedClusters({ generations, times: TIMES, silentMs, isChecked: false })
    await network.run(BEGIN_S)
    network.sites[1]!.isUp = false
    await network.run(50)
    t.equal(differs(network, {}), '', 'served before')
    await network.run(20)
    const want = silentMs === 60_000 ? { 0: [0] } : {}
    t.equal(differs(network, want), '', `after ${silentMs} ms`)
    network.sites[0]!.start()
    let found = ''
    await network.run(20, () => (found ||= differs(network, want)))
    t.equal(found, '', 'also after a restart')
    network.sites[1]!.start()
    await network.run(10)
    t.equal(differs(network, {}), '', 'served again')
  }
})

t.test('a silent site whose application answers is served, also after silent-site', async (t) => {
  const generations = ['v2', 'v2'] as const
  const network = new SimulatedClusters({ generations, times: TIMES, silentMs: 60_000 })
  await network.run(BEGIN_S)
  network.sites[1]!.isUp = false
  let found = ''
  await network.run(200, () => (found ||= differs(network, {})))
  t.equal(found, '')
})
