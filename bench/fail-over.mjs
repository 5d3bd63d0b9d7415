// How soon clients stop getting the address of a site that fails: two and three sites, and two of which one is a v1 peer,
// for each row of the partition table (docs/explanation/health.md); those of an API server and an operator are in
// `fail-over-clusters.mjs`. Needs root, ip and nft.
//   npm run build && node bench/fail-over.mjs [trials] [networks of each kind, side by side]
// A client asks each site every 20 ms. Prints the time from the fault to the last answer with an address that should be
// gone, and from the end of the fault, when all sites answer again, until they give all addresses, in seconds, beside the
// bounds. If no address is dead: in how many trials each answer until the bound had all addresses. On a busy machine, a
// probe can fail without a fault.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { BOUNDS_S, SiteNetwork } from './fail-over/network.mjs'

const [trials = 20, networks = 4] = process.argv.slice(2).map(Number)
/** A fault is over for the clients if no answer had a dead address for so long. */
const QUIET_MS = 2000
/** Longer than any bound: then something is broken. */
const LIMIT_MS = 60_000

const heal = (network, last) => network.heal(last)

const KINDS = [
  ['v2', 'v2'],
  ['v2', 'v2', 'v2'],
  ['v2', 'v1'],
]

/** `two`, `three`: what is served, by site that answers; missing = the addresses of all. `last`: the site with the fault. */
const ROWS = [
  {
    fault: 'its DNS dies',
    begin: (network, last) => network.killServer(last),
    end: (network, last) => network.startServer(last),
    endsDns: true,
    two: {},
    three: {},
  },
  {
    fault: 'its application dies',
    begin: (network, last) => network.killGateway(last),
    end: (network, last) => network.startGateway(last),
    two: { 0: [0], 1: [0] },
    three: { 0: [0, 1], 1: [0, 1], 2: [0, 1] },
  },
  {
    fault: 'both die',
    begin: async (network, last) => {
      await Promise.all([network.killServer(last), network.killGateway(last)])
    },
    end: async (network, last) => {
      network.startServer(last)
      network.startGateway(last)
    },
    endsDns: true,
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
  },
  {
    fault: 'the link between two sites breaks',
    begin: (network, last) => network.cut(last, [0]),
    end: heal,
    two: { 0: [0], 1: [1] },
    three: {},
  },
  {
    fault: 'one direction of the link breaks',
    begin: (network, last) => network.refuse(last, 0),
    end: heal,
    two: { 0: [0] },
    three: {},
  },
  {
    fault: 'it is cut from all others',
    begin: (network, last) => network.cut(last, [...Array(last).keys()]),
    end: heal,
    two: { 0: [0], 1: [1] },
    three: { 0: [0, 1], 1: [0, 1], 2: [2] },
  },
  {
    fault: 'no other site reaches its gateway',
    begin: (network, last) => network.hideGateway(last),
    end: heal,
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
  },
]

/** Waits until `isSo`; returns false after the limit. */
async function until(isSo) {
  const endMs = Date.now() + LIMIT_MS
  while (!isSo()) {
    if (Date.now() > endMs) return false
    await delay(10)
  }
  return true
}

/** Waits until each v2 site gives all addresses. Returns the time at which the last one did. */
async function untilWhole(network, sinceMs) {
  const all = network.numbers
  const { merging } = network
  const isWhole = await until(() => merging.every((site) => network.gives(site, all, sinceMs)))
  if (!isWhole) throw new Error(`not all addresses are served:\n${network.output()}`)
  return Math.max(...merging.map((site) => network.firstMs(site, sinceMs)))
}

/** Waits until no site in service gives a dead address. Returns the time of the last answer that had one. */
async function untilGone(network, fault, dead, beginMs) {
  const lastMs = () => Math.max(...dead.map(([site, address]) => network.lastMs(site, address)))
  const isOver = await until(() => Date.now() - Math.max(beginMs, lastMs()) > QUIET_MS)
  if (!isOver) throw new Error(`${fault}: a dead address is still served:\n${network.output()}`)
  return Math.max(beginMs, lastMs())
}

/** Waits for the bound. Returns true if all these sites gave all addresses all the time. */
async function stayedWhole(network, sites, beginMs) {
  await until(() => Date.now() - beginMs > BOUNDS_S.downS * 1000)
  return sites.every((site) => network.lackedMs(site) < beginMs)
}

/** Returns the seconds of one trial. If no address is dead, `isWhole`: all answers had all addresses. */
async function runTrial(network, { fault, begin, end, ...row }) {
  const { merging, numbers } = network
  const last = numbers.length - 1
  const want = last === 1 ? row.two : row.three
  const live = merging.filter((site) => !(row.endsDns && site === last))
  const dead = live.flatMap((site) => {
    const gone = want[site] === undefined ? [] : numbers.filter((one) => !want[site].includes(one))
    return gone.map((address) => [site, address])
  })
  const beginMs = Date.now()
  await begin(network, last)
  const isWhole = dead.length === 0 ? await stayedWhole(network, live, beginMs) : undefined
  const goneMs = dead.length === 0 ? beginMs : await untilGone(network, fault, dead, beginMs)
  const endMs = Date.now()
  await end(network, last)
  await until(() => network.answeredMs(last) > endMs)
  // A program that was killed needs some time to start.
  const startMs = row.endsDns ? network.answeredMs(last) : endMs
  const wholeMs = await untilWhole(network, startMs)
  return { isWhole, downS: (goneMs - beginMs) / 1000, upS: (wholeMs - startMs) / 1000 }
}

const keyOf = (kind, { fault }) => `${kind.join(', ')}: ${fault}`

async function runNetwork(directory, kind, count, found) {
  const network = await SiteNetwork.start(directory, kind)
  await untilWhole(network, 0)
  for (let trial = 0; trial < count; trial++) {
    for (const row of ROWS) {
      const result = await runTrial(network, row)
      found.set(keyOf(kind, row), [...(found.get(keyOf(kind, row)) ?? []), result])
    }
  }
}

function quantiles(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part) => sorted[Math.ceil(sorted.length * part) - 1].toFixed(1).padStart(5)
  return `${at(0.5)} ${at(0.99)}`
}

const loadAverage = () => readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ')
console.log(`load average ${loadAverage()}`)
const directory = mkdtempSync(join(tmpdir(), 'sextant-fail-over-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const found = new Map()
const runs = KINDS.flatMap((kind) => {
  return Array.from({ length: networks }, (_, i) => {
    const count = Math.floor((trials + i) / networks)
    return runNetwork(join(directory, `${kind.join('-')}-${i}`), kind, count, found)
  })
})
await Promise.all(runs)
const { downS, upS } = BOUNDS_S
console.log(`load average ${loadAverage()}`)
console.log(`sites, fault: last dead answer p50, p99 (bound ${downS} s); again p50, p99 (${upS} s)`)
for (const kind of KINDS) {
  for (const row of ROWS) {
    const of = found.get(keyOf(kind, row)) ?? []
    if (of.length === 0) continue
    const wholes = of.filter((one) => one.isWhole).length
    const isDead = of[0].isWhole === undefined
    const down = isDead ? quantiles(of.map((one) => one.downS)) : `${wholes} whole`
    const up = quantiles(of.map((one) => one.upS))
    const what = `${kind.join(', ').padEnd(10)}  ${row.fault.padEnd(33)}`
    console.log(`${what} ${down.padStart(12)}   ${up}   ${of.length} trials`)
  }
}
process.exit()
