import t, { type Test } from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { LocalChannel } from '../../../../src/base/telemetry/local-channel.ts'
import { RRType } from '../../../../src/dns/iana/index.ts'
import type { AdminTraffic } from '../../../../src/plugin/admin-traffic.ts'
import { CounterSlots } from '../../../../src/plugin/counter-slots.ts'
import { QUERY_TAP } from '../../../../src/plugin/query-tap.ts'
import { admin } from '../../../../src/plugins/admin/setup.ts'
import {
  COLUMNS,
  LATENCY,
  latencyBucket,
  percentile,
} from '../../../../src/plugins/admin/traffic/columns.ts'
import {
  readKind,
  readSamples,
  SAMPLE_OCTETS_MAX,
} from '../../../../src/plugins/admin/traffic/sample.ts'
import { TrafficTap } from '../../../../src/plugins/admin/traffic/traffic-tap.ts'
import { FakeClock, SetUp } from '../../../support/setup.ts'
import { type Question, refill, transaction } from '../../../support/transaction.ts'

const CONSOLE = 'admin {\n console on\n}'

/** A server with a console, its clients, and the time. */
class Stage {
  readonly setUp = new SetUp(admin, CONSOLE)
  readonly #tx = transaction({ name: 'x.' })

  async start(t: Test): Promise<this> {
    await this.setUp.start()
    t.teardown(() => this.setUp.stop())
    return this
  }

  /** `ms`: how long the reply takes. */
  ask(question: Question, { rcode = 0, octets = 50, ms = 0 } = {}): void {
    const { clock, shared } = this.setUp
    const tx = refill(this.#tx, { ...question, startedMs: clock.monotonicMs })
    tx.finishedMs = clock.monotonicMs + ms
    tx.response.rcode = rcode
    shared.find(QUERY_TAP)!.see(tx, octets)
  }

  report(question: Parameters<AdminTraffic['report']>[0]) {
    return this.setUp.adminSites[0]!.traffic()!.report(question)!
  }
}

t.test('nothing is counted without a console', async (t) => {
  for (const corefile of ['admin', 'admin {\n console off\n}']) {
    const setUp = new SetUp(admin, corefile)
    t.equal(setUp.adminSites[0]!.traffic(), undefined)
    t.equal(setUp.shared.find(QUERY_TAP), undefined)
  }
  t.equal(new SetUp(admin, CONSOLE).adminSites[0]!.traffic()!.report({ period: '1h' }), undefined)
})

t.test('rates, response codes, latency and names', async (t) => {
  const stage = await new Stage().start(t)
  const { clock } = stage.setUp
  clock.pass(9000)
  for (let i = 0; i < 90; i++) stage.ask({ name: 'www.example.org.' }, { ms: 0.5 })
  for (let i = 0; i < 8; i++) {
    stage.ask({ name: 'no.example.org.', type: RRType.AAAA }, { rcode: 3, ms: 4 })
  }
  stage.ask({ name: 'x.example.org.' }, { octets: 0, ms: 100 })
  stage.ask({ name: 'x.example.org.' }, { rcode: 99, octets: -2, ms: 100 })
  clock.pass(1000)
  const report = stage.report({ period: '10m' })
  t.match(report, {
    since: new Date(clock.nowMs - 10_000).toISOString(),
    now: new Date(clock.nowMs).toISOString(),
    start: new Date(clock.nowMs - 11_000).toISOString(),
    stepSeconds: 10,
    dropped: [0, 0],
    countedSeconds: 10,
    endpoints: [],
    endpointsOmitted: 0,
  })
  const [first, second] = report.queries
  t.equal(Math.round(first! * 9 + second!), 100, '9 s of the first step, 1 s of the next')
  t.strictSame(
    report.rcodes.map(({ rcode, rates }) => [rcode, Math.round(rates[0]! * 9 + rates[1]!)]),
    [
      ['NOERROR', 90],
      ['NXDOMAIN', 8],
      ['other', 1],
      ['none', 1],
    ],
  )
  for (const [key, low, high] of [
    ['p50', 0.35, 0.71],
    ['p90', 0.35, 0.71],
    ['p99', 64, 129],
  ] as const) {
    for (const ms of report.latencyMs[key]) t.ok(ms! > low && ms! <= high, `${key} ${ms}`)
  }
  t.strictSame(report.topNames, [
    { name: 'www.example.org.', type: 'A', rcode: 'NOERROR', share: 0.9 },
    { name: 'no.example.org.', type: 'AAAA', rcode: 'NXDOMAIN', share: 0.08 },
    { name: 'x.example.org.', type: 'A', rcode: 'none', share: 0.01 },
    { name: 'x.example.org.', type: 'A', rcode: 'other', share: 0.01 },
  ])
})

t.test('names of queries are escaped as in a zone file', async (t) => {
  const stage = await new Stage().start(t)
  stage.ask({ name: '<script>\\000\\027\\128.example.org.' })
  t.equal(stage.report({ period: '1h' }).topNames[0]!.name, '<script>\\000\\027\\128.example.org.')
})

t.test('24 hours, in steps of a minute', async (t) => {
  const stage = await new Stage().start(t)
  const { clock, timers } = stage.setUp
  for (let i = 0; i < 25 * 360; i++) {
    stage.ask({ name: `h${Math.floor(i / 360)}.` })
    clock.pass(10_000)
    await (timers as { advance?: (ms: number) => Promise<void> }).advance?.(10_000)
  }
  const day = stage.report({ period: '24h' })
  t.equal(day.stepSeconds, 60)
  t.equal(day.queries.length, 1440)
  t.ok(day.queries.every((rate) => Math.abs(rate - 0.1) < 0.02))
  t.equal(Date.parse(day.start) + 1439 * 60_000, clock.nowMs - 1000, 'the last step began')
  t.equal(day.topNames.length, 23, 'the first hours are forgotten')
  const hour = stage.report({ period: '1h' })
  t.equal(hour.queries.length, 360)
  t.strictSame(
    hour.topNames.map(({ name }) => name),
    ['h24.'],
  )
})

t.test('a reload keeps the history, and queries that no block got are counted', async (t) => {
  const first = await new Stage().start(t)
  first.ask({ name: 'a.' })
  first.setUp.clock.pass(5000)
  const since = first.report({ period: '1h' }).since
  const second = await new Stage().start(t)
  await first.setUp.stop()
  t.equal(first.report({ period: '1h' }), undefined)
  second.ask({ name: 'b.' })
  const { since: kept, topNames } = second.report({ period: '1h' })
  t.equal(kept, since)
  t.strictSame(topNames.map(({ name }) => name).sort(), ['a.', 'b.'])
})

t.test('invalid questions', async (t) => {
  const stage = await new Stage().start(t)
  const table = [
    { name: 'a..b', error: /name: not a domain name/ },
    { name: `${'a'.repeat(64)}.`, error: /name: not a domain name/ },
    { name: 'a.', type: 'NEVER', error: /type: unknown type NEVER/ },
  ]
  for (const { error, ...rest } of table) {
    t.throws(() => stage.report({ period: '1h', ...rest }), { message: error })
  }
  t.strictSame(stage.report({ period: '1h', name: 'A', type: 'aaaa' }).endpoints, [])
})

t.test('many queries are sampled, and the weights of samples add up to all of them', async (t) => {
  const clock = new FakeClock()
  const slots = new CounterSlots()
  const weights = new Map<string, number>()
  let samples = 0
  const channel = new LocalChannel(SAMPLE_OCTETS_MAX, (octets) => {
    readSamples(octets, (kind, weight) => {
      samples++
      const { name } = readKind(kind)
      const key = `${name.length}`
      weights.set(key, (weights.get(key) ?? 0) + weight)
    })
  })
  const tap = new TrafficTap(clock, slots, channel, new Random(3))
  const txs = ['a.', 'bb.'].map((name) => transaction({ name }))
  const ask = (times: number, ms: number): void => {
    for (let i = 0; i < times; i++) {
      // A and B in turn, as clients ask for A and AAAA.
      const tx = txs[i % 2]!
      clock.pass(ms / times)
      tx.startedMs = clock.monotonicMs
      tx.finishedMs = tx.startedMs + 1
      tap.see(tx, 50)
    }
  }
  ask(100, 1000)
  t.equal(samples, 100, 'few queries: all of them')
  ask(300_000, 3000)
  t.ok(samples < 2500, `${samples} samples of 300 000 queries`)
  const [a, b] = [weights.get('3')!, weights.get('4')!]
  t.ok(a + b > 298_000 && a + b <= 300_100, `${a} + ${b}`)
  t.ok(Math.abs(a / b - 1) < 0.3, `${a} and ${b} are almost equal`)
  samples = 0
  clock.pass(1000)
  ask(10, 5000)
  t.ok(samples >= 6, 'two seconds after a flood, all queries are samples again')
  t.equal(slots.at('', '', '')[0], 300_110)
})

t.test('the place of a query in its batch does not decide whether it is sampled', async (t) => {
  const clock = new FakeClock()
  const weights = [0, 0]
  const channel = new LocalChannel(SAMPLE_OCTETS_MAX, (octets) => {
    readSamples(octets, (kind, weight) => {
      weights[readKind(kind).name.length === 3 ? 0 : 1]! += weight
    })
  })
  const tap = new TrafficTap(clock, new CounterSlots(), channel, new Random(3))
  const [first, other] = [transaction({ name: 'a.' }), transaction({ name: 'bb.' })]
  const [batches, batch] = [20_000, 50]
  for (let i = 0; i < batches * batch; i++) {
    const tx = i % batch === 0 ? first : other
    if (tx === first) clock.pass(5)
    tx.startedMs = clock.monotonicMs
    tx.finishedMs = 0
    tap.see(tx, 50)
  }
  const share = weights[0]! / (weights[0]! + weights[1]!)
  t.ok(Math.abs(share * batch - 1) < 0.15, `${share} of ${1 / batch}`)
})

t.test('percentiles', async (t) => {
  const row = new Float64Array(COLUMNS)
  t.equal(percentile(row, 0.5), undefined)
  row[LATENCY + latencyBucket(0.0005)] = 1
  t.equal(percentile(row, 0.5), 0.0005)
  row[LATENCY + latencyBucket(1e9)] = 100
  t.equal(Math.round(percentile(row, 0.99)!), 8389, 'no value is known above the last bound')
  for (const ms of [0.001, 0.0011, 0.7, 3, 8000]) {
    const one = new Float64Array(COLUMNS)
    one[LATENCY + latencyBucket(ms)] = 5
    const found = percentile(one, 1)!
    t.ok(found >= ms && found <= ms * 1.42, `${ms} ${found}`)
  }
})
