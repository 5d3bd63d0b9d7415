// How soon clients stop getting the address of a cluster that fails, as `fail-over.mjs`, with real API servers and operators:
// two and three clusters, and one cluster beside a v1 peer. Needs root, ip, nft, dig, Node.js 24 and what `test/cluster/build`
// makes.
//   npm run build && node bench/fail-over-clusters.mjs [trials] [faults, as a regular expression]
// Prints the seconds from the fault to the first right answer of the last site, and the same from the end of the fault. If no
// address is dead: in how many trials each answer until the bound had all addresses.
import { readFileSync } from 'node:fs'
import { CLUSTER_ROWS, startFailOverClusters } from '../test/support/fail-over-clusters.ts'
import { ROWS } from '../test/support/fail-over-rows.ts'
import { DOWN_S, gatewayOf, UP_S } from '../test/support/fail-over-sites.ts'
import { settle } from '../test/support/settle.ts'

const [trials = '20', faults = '.'] = process.argv.slice(2)
const KINDS = [
  ['v2', 'v2'],
  ['v2', 'v2', 'v2'],
  ['v2', 'v1'],
]
/** Beyond any bound: then something is broken. */
const LIMIT_S = 120
const NAME = 'app'

const loadAverage = () => readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ')

/** Returns the seconds until all sites that are asked give what they should. */
async function measure(of, want, act, watchS) {
  const startMs = performance.now()
  await act()
  const beganS = (performance.now() - startMs) / 1000
  const asked = of.sites
    .filter((site) => site.generation === 'v2' && site.isUp)
    .map(({ number }) => ({ number, answer: () => of.answer(number, NAME) }))
  const isAsked = (number) => asked.some((site) => site.number === number)
  const live = Object.fromEntries(Object.entries(want).filter(([i]) => isAsked(Number(i))))
  const addresses = of.sites.map(({ number }) => gatewayOf(number))
  const { wrong, tookS } = await settle(asked, live, { addresses, limitS: LIMIT_S, watchS })
  return { wrong, tookS: beganS + tookS }
}

async function runKind(kind, teardowns, found) {
  const options = { generations: kind, names: [NAME], ttlSeconds: 1 }
  const of = await startFailOverClusters({ teardown: (end) => teardowns.push(end) }, options)
  const last = kind.length - 1
  const all = Object.fromEntries(kind.map((_, i) => [i, [...kind.keys()]]))
  const rows = [...ROWS, ...(kind[last] === 'v1' ? [] : CLUSTER_ROWS)].filter(({ fault }) => {
    return new RegExp(faults).test(fault)
  })
  const untilWhole = async (act) => {
    const { wrong, tookS } = await measure(of, all, act, 0)
    if (wrong !== '') throw new Error(`${kind}: ${wrong}`)
    return tookS
  }
  await untilWhole(async () => {})
  for (let trial = 0; trial < trials; trial++) {
    for (const { fault, begin, end, ...row } of rows) {
      const want = kind.length === 2 ? row.two : row.three
      const down = await measure(of, want, () => begin(of, last), DOWN_S)
      const upS = await untilWhole(() => end(of, last))
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

function print(found) {
  console.log(`load average ${loadAverage()}`)
  console.log(
    `sites, fault: first right answer p50, p99 (bound ${DOWN_S} s); again, with the start of`,
  )
  console.log(`what was killed, p50, p99 (${UP_S} s from then on)`)
  for (const [key, of] of found) {
    const right = of.filter(({ wrong }) => wrong === '')
    for (const { wrong } of of) if (wrong !== '') console.log(`${key}: ${wrong}`)
    const isDead = of[0].isDead && right.length > 0
    const down = isDead ? quantiles(right.map(({ tookS }) => tookS)) : `${right.length} whole`
    const up = quantiles(of.map(({ upS }) => upS))
    console.log(`${key.padEnd(55)} ${down.padStart(12)}   ${up}   ${of.length} trials`)
  }
}

const [found, teardowns] = [new Map(), []]
async function stop() {
  print(found)
  for (const end of teardowns.reverse()) await end()
  process.exit()
}
// Also prints what there is until then.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop)
console.log(`load average ${loadAverage()}`)
await Promise.all(KINDS.map((kind) => runKind(kind, teardowns, found)))
await stop()
