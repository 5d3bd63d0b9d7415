/*
 * Prints what `rrl` costs per query on the fast path; the goal is 50 ns, off or below its limits. User CPU time per query,
 * all cases in turn in every round, and the difference to the case without it. Run after `npm run build`.
 */

import { randomFillSync } from 'node:crypto'
import { NO_FALLTHROUGH } from '../dist/arguments/fallthrough.js'
import { packetOctets } from '../dist/base/packet-memory.js'
import { Random } from '../dist/base/random.js'
import { createRateTable, rateOf } from '../dist/base/rate-table.js'
import { TABULATION_WORDS } from '../dist/base/tabulation-hash.js'
import { CHAIN_END } from '../dist/plugin/chain-end.js'
import { CounterSlots } from '../dist/plugin/counter-slots.js'
import { KuadrantHandler } from '../dist/plugins/kuadrant/kuadrant.js'
import { CATEGORY_NAMES } from '../dist/plugins/rrl/options.js'
import { LimitReports } from '../dist/plugins/rrl/reports.js'
import { Rrl } from '../dist/plugins/rrl/rrl.js'
import { ServerCounts } from '../dist/server/counters.js'
import { Server } from '../dist/server/server.js'
import { copyIPv4 } from '../dist/transport/udp/batch/octets.js'
import { ZoneImage } from '../dist/zone/image/writer.js'
import { ZoneAnswerer } from '../dist/zone/lookup/answer.js'
import { median } from './median.mjs'

const AT = 4096
const ROOM = 512
const ROUNDS = 21
const QUERIES = 400_000
/** A thread answers about 64 queries per batch, and the clock stands still meanwhile. */
const BATCH = 64

const wire = (name) =>
  Buffer.concat([
    ...name.split('.').map((l) => Buffer.concat([Buffer.from([l.length]), Buffer.from(l)])),
    Buffer.from([0]),
  ])
const header = Buffer.from('123401000001000000000000', 'hex')
const QUERY = Buffer.concat([header, wire('www.example.org'), Buffer.from([0, 1, 0, 1])])

const image = new ZoneImage()
const apex = new Uint8Array(wire('example.org'))
const zone = image.addZone(apex)
const soa = new Uint8Array(22)
image.putRRset(zone, apex, { type: 6, ttlSeconds: 60, rdata: [soa] })
const www = new Uint8Array(wire('www.example.org'))
image.putRRset(zone, www, { type: 1, ttlSeconds: 60, rdata: [Uint8Array.of(192, 0, 2, 1)] })
image.publish()

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

/** As `BatchSocket` describes a packet. */
class Source {
  #addresses

  constructor(addresses) {
    this.#addresses = addresses
  }

  describe(slot, query) {
    query.peerFamily = copyIPv4(this.#addresses, 4 * slot, query.peerAddress)
  }
}

/** A server, and the addresses that ask it one after the other. */
function caseOf(limiter, clients) {
  const chain = new KuadrantHandler(
    CHAIN_END,
    { answerer: new ZoneAnswerer(image.reader()) },
    NO_FALLTHROUGH,
  )
  const server = new Server({
    address: 'dns://:53',
    blocks: [
      {
        zone: apex,
        zoneText: 'example.org.',
        chain,
        filters: [],
        limiter,
        viewName: '',
        bufsizeOctets: 1232,
        debug: false,
      },
    ],
    clock,
    random: new Random(1),
    log: console,
    counters: new ServerCounts(),
  })
  const addresses = new Uint8Array(4 * clients)
  const random = new Random(7)
  for (let i = 0; i < clients; i++) {
    addresses.set([10 + (i >> 16), (i >> 8) & 255, i & 255, random.below(256)], 4 * i)
  }
  const source = new Source(addresses)
  const tx = server.acquire()
  let next = 0
  return () => {
    let answered = 0
    for (let i = 0; i < QUERIES; i++) {
      if (i % BATCH === 0) nowMs += 0.2
      packetOctets.set(QUERY, AT)
      next = next + 1 === clients ? 0 : next + 1
      if (server.lane.answer(tx, AT, QUERY.length, ROOM, source, next) !== 0) answered++
    }
    if (answered !== QUERIES) throw new Error(`${answered} of ${QUERIES} took the fast path`)
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
