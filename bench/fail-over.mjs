// How soon clients stop getting the address of a site that fails: two and three sites, for each row of the partition table
// (docs/explanation/health.md). Needs root, ip and nft.
//   npm run build && node bench/fail-over.mjs [trials] [networks of each size, side by side]
// A client asks each site every 20 ms. Prints the time from the fault to the last answer with an address that should be
// gone, and from the end of the fault, when all sites answer again, until they give all addresses, in seconds, beside the
// bounds.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { BOUNDS_S, SiteNetwork } from './fail-over/network.mjs'

const [trials = 20, networks = 2] = process.argv.slice(2).map(Number)
/** A fault is over for the clients if no answer had a dead address for so long. */
const QUIET_MS = 2000
/** Longer than any bound: then something is broken. */
const LIMIT_MS = 60_000

const heal = (network, last) => network.heal(last)

/** `two`, `three`: what is served, by site that answers; missing = the addresses of all. `last`: the site with the fault. */
const ROWS = [
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
    two: { 0: [0] },
    three: { 0: [0, 1], 1: [0, 1] },
  },
  {
    fault: 'the link between two sites breaks',
    begin: (network, last) => network.cut(last, [0]),
    end: heal,
    two: { 0: [0], 1: [1] },
  },
  {
    fault: 'one direction of the link breaks',
    begin: (network, last) => network.refuse(last, 0),
    end: heal,
    two: { 0: [0] },
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

/** Waits until each site in service gives all addresses. Returns the time at which the last one did. */
async function untilWhole(network, sinceMs) {
  const all = network.numbers
  const isWhole = await until(() => all.every((site) => network.gives(site, all, sinceMs)))
  if (!isWhole) throw new Error(`not all addresses are served:\n${network.output()}`)
  return Math.max(...all.map((site) => network.firstMs(site, sinceMs)))
}

/** Returns the seconds of one trial. */
async function runTrial(network, { fault, begin, end, ...row }) {
  const last = network.numbers.length - 1
  const want = last === 1 ? row.two : row.three
  const dead = Object.entries(want).flatMap(([site, served]) => {
    const gone = network.numbers.filter((one) => !served.includes(one))
    return gone.map((address) => [Number(site), address])
  })
  const beginMs = Date.now()
  await begin(network, last)
  const lastMs = () => Math.max(...dead.map(([site, address]) => network.lastMs(site, address)))
  const isOver = await until(() => Date.now() - Math.max(beginMs, lastMs()) > QUIET_MS)
  if (!isOver) throw new Error(`${fault}: a dead address is still served:\n${network.output()}`)
  const downS = Math.max(0, lastMs() - beginMs) / 1000
  const endMs = Date.now()
  await end(network, last)
  await until(() => network.answeredMs(last) > endMs)
  // A program that was killed needs some time to start.
  const startMs = want[last] === undefined ? network.answeredMs(last) : endMs
  const wholeMs = await untilWhole(network, startMs)
  return { downS, upS: (wholeMs - startMs) / 1000 }
}

const isOfSize = (sites) => (row) => (sites === 2 ? row.two : row.three) !== undefined

async function runNetwork(directory, sites, count, found) {
  const network = await SiteNetwork.start(directory, sites)
  await untilWhole(network, 0)
  for (let trial = 0; trial < count; trial++) {
    for (const row of ROWS.filter(isOfSize(sites))) {
      const key = `${sites} ${row.fault}`
      const result = await runTrial(network, row)
      found.set(key, [...(found.get(key) ?? []), result])
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
const runs = [2, 3].flatMap((sites) => {
  return Array.from({ length: networks }, (_, i) => {
    const count = Math.floor((trials + i) / networks)
    return runNetwork(join(directory, `${sites}-${i}`), sites, count, found)
  })
})
await Promise.all(runs)
const { downS, upS } = BOUNDS_S
console.log(`load average ${loadAverage()}`)
console.log(`sites, fault: last dead answer p50, p99 (bound ${downS} s); again p50, p99 (${upS} s)`)
for (const sites of [2, 3]) {
  for (const { fault } of ROWS.filter(isOfSize(sites))) {
    const of = found.get(`${sites} ${fault}`)
    const [down, up] = [of.map((one) => one.downS), of.map((one) => one.upS)].map(quantiles)
    console.log(`${sites}  ${fault.padEnd(34)} ${down}   ${up}   ${of.length} trials`)
  }
}
process.exit()
