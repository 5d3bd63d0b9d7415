/*
 * Prints what `rrl` costs per query; the goal is 50 ns, off or below its limits. User CPU time per query,
 * all cases in turn in every round, and the difference to the case without it. Run after `npm run build`.
 */

import { randomFillSync } from 'node:crypto'
import { Random } from '../dist/base/random.js'
import { createRateTable, rateOf } from '../dist/base/rate-table.js'
import { TABULATION_WORDS } from '../dist/base/tabulation-hash.js'
import { CounterSlots } from '../dist/plugin/counter-slots.js'
import { CATEGORY_NAMES } from '../dist/plugins/rrl/options.js'
import { LimitReports } from '../dist/plugins/rrl/reports.js'
import { Rrl } from '../dist/plugins/rrl/rrl.js'
import { bareServer } from './bare-server.mjs'
import { median } from './median.mjs'

const ROUNDS = 21
const QUERIES = 400_000
/** A thread answers about 64 queries per batch, and the clock stands still meanwhile. */
const BATCH = 64

let nowMs = 0
const clock = { now: () => nowMs, monotonic: () => nowMs }

function limiterOf(perSecond, amplifiedOctets) {
  const rate = perSecond === 0 ? undefined : rateOf(perSecond, 15)
  const options = {
    zones: undefined,
    ipv4Bits: 24,
    ipv6Bits: 56,
    rates: CATEGORY_NAMES.map((name) => (name === 'request' ? undefined : rate)),
    slip: 1,
    amplifiedOctets,
    tableSize: 100_000,
    reportOnly: false,
    exempt: undefined,
  }
  const limiter = new Rrl(options, new CounterSlots(), new LimitReports(options, () => {}))
  const amplification = new Float64Array(new SharedArrayBuffer(8))
  const secret = randomFillSync(new Int32Array(TABULATION_WORDS))
  limiter.use({ accounts: createRateTable(100_000), secret, amplification })
  return limiter
}

/** A server, and the addresses that ask it one after the other. */
function caseOf(limiter, clients) {
  const answer = bareServer({ clock, limiter })
  const addresses = new Uint8Array(4 * clients)
  const random = new Random(7)
  for (let i = 0; i < clients; i++) {
    addresses.set([10 + (i >> 16), (i >> 8) & 255, i & 255, random.below(256)], 4 * i)
  }
  let next = 0
  return () => {
    let answered = 0
    for (let i = 0; i < QUERIES; i++) {
      if (i % BATCH === 0) nowMs += 0.2
      next = next + 1 === clients ? 0 : next + 1
      if (answer(addresses, 4 * next) > 0) answered++
    }
    if (answered !== QUERIES) throw new Error(`${answered} of ${QUERIES} have a reply`)
  }
}

const cases = {
  'without rrl': caseOf(undefined, 10_000),
  'without rrl, again': caseOf(undefined, 10_000),
  'below the limit, 1 000 networks': caseOf(limiterOf(10_000, 0), 1000),
  'below the limit, 10 000 networks': caseOf(limiterOf(10_000, 0), 10_000),
  'below both limits, 10 000 networks': caseOf(limiterOf(10_000, 1e11), 10_000),
  'below the limit, 100 000 networks': caseOf(limiterOf(10_000, 0), 100_000),
  'over the limit, 1 network, truncated': caseOf(limiterOf(1, 0), 1),
  'over the limit, 100 000 networks, truncated': caseOf(limiterOf(0.001, 0), 100_000),
}
const rounds = Object.fromEntries(Object.keys(cases).map((name) => [name, []]))
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, run] of Object.entries(cases)) {
    const start = process.cpuUsage()
    run()
    rounds[name].push((process.cpuUsage(start).user * 1000) / QUERIES)
  }
}
const base = median(rounds['without rrl'])
for (const [name, values] of Object.entries(rounds)) {
  const ns = median(values)
  const difference = `${ns >= base ? '+' : ''}${(ns - base).toFixed(0)}`
  console.log(`${ns.toFixed(0).padStart(5)} ns/query  ${difference.padStart(4)}  ${name}`)
}
