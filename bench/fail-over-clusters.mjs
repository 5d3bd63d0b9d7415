// How soon clients stop getting the address of a cluster that fails, as `fail-over.mjs`, with real API servers and operators:
// two and three clusters, and one cluster beside a v1 peer. Needs Node.js 24 and what `test/cluster/build` makes.
//   npm run build && node bench/fail-over-clusters.mjs [trials] [faults, as a regular expression]
// Prints the seconds from the fault to the first right answer of the last site, and the same from the end of the fault. If no
// address is dead: in how many trials each answer until the bound had all addresses.
import { readFileSync } from 'node:fs'
import { CLUSTER_ROWS } from '../test/support/fail-over-cluster-rows.ts'
import { DOWN_S, startFailOverClusters, UP_S } from '../test/support/fail-over-clusters.ts'
import { settle } from '../test/support/settle.ts'

const [trials = '20', faults = '.'] = process.argv.slice(2)
const KINDS = [
  ['v2', 'v2'],
  ['v2', 'v2', 'v2'],
  ['v2', 'v1'],
]
/** Beyond any bound: then something is broken. */
const LIMIT_S = 120

const loadAverage = () => readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ')

/** Returns the seconds until all sites that are asked give what they should. */
async function measure(sites, want, act, watchS) {
  const startMs = performance.now()
  await act()
  const beganS = (performance.now() - startMs) / 1000
  const asked = sites.filter((site) => site.generation === 'v2' && site.isUp)
  const isAsked = (number) => asked.some((site) => site.number === number)
  const live = Object.fromEntries(Object.entries(want).filter(([i]) => isAsked(Number(i))))
  const addresses = sites.map(({ address }) => address)
  const { wrong, tookS } = await settle(asked, live, { addresses, limitS: LIMIT_S, watchS })
  return { wrong, tookS: beganS + tookS }
}

async function runKind(kind, teardowns, found) {
  const sites = await startFailOverClusters({ teardown: (end) => teardowns.push(end) }, kind)
  for (const site of sites) await site.observes()
  const last = sites.at(-1)
  const all = Object.fromEntries(sites.map(({ number }) => [number, sites.map((s) => s.number)]))
  const rows = CLUSTER_ROWS.filter(({ fault, isOfCluster }) => {
    return new RegExp(faults).test(fault) && !(isOfCluster && last.generation === 'v1')
  })
  const isWhole = async (act) => {
    const { wrong, tookS } = await measure(sites, all, act, 0)
    if (wrong !== '') throw new Error(`${kind}: ${wrong}`)
    return tookS
  }
  await isWhole(async () => {})
  for (let trial = 0; trial < trials; trial++) {
    for (const { fault, begin, end, ...row } of rows) {
      const want = sites.length === 2 ? row.two : row.three
      const down = await measure(sites, want, () => begin(last), DOWN_S)
      const upS = await isWhole(() => end(last))
      const key = `${kind.join(', ').padEnd(10)}  ${fault}`
      const isDead = Object.keys(want).length > 0
      found.set(key, [...(found.get(key) ?? []), { ...down, isDead, upS }])
    }
  }
}

function quantiles(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part) => sorted[Math.ceil(sorted.length * part) - 1].toFixed(1).padStart(5)
  return `${at(0.5)} ${at(0.99)}`
}

const [found, teardowns] = [new Map(), []]
async function stop() {
  for (const end of teardowns.reverse()) await end()
  process.exit()
}
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop)
console.log(`load average ${loadAverage()}`)
await Promise.all(KINDS.map((kind) => runKind(kind, teardowns, found)))
console.log(`load average ${loadAverage()}`)
console.log(
  `sites, fault: first right answer p50, p99 (bound ${DOWN_S} s); again, with the start of`,
)
console.log(`what was killed, p50, p99 (${UP_S} s from then on)`)
for (const [key, of] of found) {
  const right = of.filter(({ wrong }) => wrong === '')
  for (const { wrong } of of) if (wrong !== '') console.log(`${key}: ${wrong}`)
  const isDead = of[0].isDead
  const down = isDead ? quantiles(right.map(({ tookS }) => tookS)) : `${right.length} whole`
  const up = quantiles(of.map(({ upS }) => upS))
  console.log(`${key.padEnd(45)} ${down.padStart(12)}   ${up}   ${of.length} trials`)
}
await stop()
