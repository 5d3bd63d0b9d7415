import fc from 'fast-check'
import t from 'tap'
import type { Clock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { CounterSlots } from '../../../src/plugin/counter-slots.ts'
import { RecordZone } from '../../../src/publish/build/record-zone.ts'
import { EndpointCounters } from '../../../src/publish/zone/endpoint-counters.ts'
import { ImageSink } from '../../../src/publish/zone/image-sink.ts'
import type { RecordChange, StoredRecord } from '../../../src/records/record-source.ts'
import { FIRST_COUNTER } from '../../../src/steering/outcome-counters.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { CLIENTS, createTable } from '../../steering/stage.ts'
import { runs } from '../../support/runs.ts'
import { TestHealth } from '../../support/test-health.ts'
import { question, wire } from '../../support/zone-names.ts'
import { APEX, type Given, record } from '../record-zone-stage.ts'

const KEPT_MS = 5 * 60_000
const NAME = 'sextant_kuadrant_endpoint_answers_total'
const SHARE = 'sextant_kuadrant_endpoint_share'

/** What two instances of a reload share. */
class Process {
  readonly metrics = new MetricsRegistry()
  readonly resources = new ResourceRegistry()
  nowMs = 0
  readonly lines: string[] = []

  /** The series of a metric as on the metrics page: `owner type endpoint tier` to value. */
  async series(name = NAME): Promise<Record<string, number>> {
    const page = await this.metrics.print()
    const found = [...page.matchAll(new RegExp(`^${name}\\{(.*)\\} (\\S+)$`, 'gm'))]
    const all = found.map(([, labels = '', value]) => {
      const text = (label: string) => new RegExp(`\\b${label}="([^"]*)"`).exec(labels)?.[1]
      const key = ['owner', 'type', 'endpoint', 'tier'].map(text).join(' ').trim()
      return [key, Number(value)] as const
    })
    return Object.fromEntries(all)
  }
}

/** A zone whose endpoints are counted, and threads that answer from it. */
class Counted {
  readonly health = new TestHealth()
  readonly table = createTable().table
  readonly image = new ZoneImage()
  readonly slots: CounterSlots[]
  readonly answerers: ZoneAnswerer[]
  readonly counters: EndpointCounters
  readonly records: RecordZone

  constructor(process: Process, { max = 100, threads = 1 } = {}) {
    const clock: Clock = { now: () => 0, monotonic: () => process.nowMs }
    this.slots = Array.from({ length: threads }, () => {
      const slots = new CounterSlots()
      slots.length = FIRST_COUNTER + max
      return slots
    })
    const own = this.slots.map((slots) => slots.at('', '', ''))
    const counts = {
      own: () => own[0]!,
      take: (number: number) => {
        let sum = 0
        for (const slots of this.slots) {
          slots.forEach((counts) => {
            sum += counts.take(number)
          })
        }
        return sum
      },
    }
    const log = createLogger(
      '',
      (line) => process.lines.push(line),
      () => false,
    )
    const { metrics, resources } = process
    const parts = { source: 'here', counts, clock, log, metrics, resources }
    this.counters = new EndpointCounters({ max, ...parts })
    const id = this.image.addZone(APEX)
    const counted = { counters: this.counters, zone: printName(APEX) }
    const ns = { owner: APEX, type: RRType.NS, ttlSeconds: 60, setIdentifier: '' }
    this.records = new RecordZone({
      apex: APEX,
      isLocalForm: false,
      fixed: [],
      defaultNs: {
        ...ns,
        weight: undefined,
        codes: [],
        isDefault: false,
        rdata: [wire('ns1.k.example.com.')],
      },
      sink: new ImageSink(this.image, id, this.table, counted),
      health: this.health,
      onConflict: () => {},
      onOut: () => {},
    })
    this.answerers = own.map((array, i) => {
      return new ZoneAnswerer(this.image.reader(), this.table.steerer(new Random(i + 1), array))
    })
  }

  readonly #served = new Map<string, StoredRecord>()

  /** Adds or replaces records by name. */
  put(...givens: readonly Given[]): Promise<void> {
    return this.#apply(givens.map((given) => this.#serve(given.name!, record(given))))
  }

  remove(name: string): Promise<void> {
    return this.#apply([this.#serve(name, undefined)])
  }

  /** Makes these addresses of a record be down, and no others. */
  down(name: string, ...addresses: readonly string[]): Promise<void> {
    this.health.put(`n/${name}`, addresses)
    const served = this.#served.get(name)!
    return this.#apply([{ before: served, after: served }])
  }

  #serve(name: string, after: StoredRecord | undefined): RecordChange {
    const before = this.#served.get(name)
    if (after === undefined) this.#served.delete(name)
    else this.#served.set(name, after)
    return { before, after }
  }

  async #apply(changes: readonly RecordChange[]): Promise<void> {
    this.records.apply(changes)
    await this.table.built()
    this.image.publish()
    this.counters.published()
  }

  /** The targets that a thread answers with, in order. */
  ask(name: string, from = '192.0.2.99', thread = 0, type: number = RRType.A): string[] {
    const query = question(name, type)
    const response = new Response()
    response.reset(query)
    const { bytes, family } = scanAddress(from)!
    query.clientAddress.set(bytes)
    query.clientFamily = family
    query.clientBits = bytes.length * 8
    this.answerers[thread]!.answer(query, response)
    return Array.from({ length: response.count }, (_, i) => i)
      .filter((i) => response.section[i] === Section.Answer)
      .map((i) => {
        const at = response.rdataOffset[i]!
        const rdata = response.rdataBytes[i]!.slice(at, at + response.rdataOctets[i]!)
        return printRdata(response.type[i]!, rdata)
      })
  }

  askOften(times: number, ...args: Parameters<Counted['ask']>): void {
    for (let i = 0; i < times; i++) this.ask(...args)
  }
}

/** Two endpoints, `a` and `b`. */
const two = (name: string, more = '', rest: Partial<Given> = {}): Given => {
  const at = `${name}.k.example.com A`
  return {
    name,
    ...rest,
    endpoints: [`${at} 192.0.2.1 id=a${more}`, `${at} 192.0.2.2 id=b${more}`],
  }
}
const count = (all: readonly string[], one: string): number => all.filter((o) => o === one).length

t.test('endpoints of several sites with one identifier have a series each', async (t) => {
  const [process, x] = [new Process(), 'x.k.example.com A']
  const east = { name: 'x', site: 'east', endpoints: [`${x} 192.0.2.1 id=a weight=3`] }
  await new Counted(process).put(east, { ...two('x', ' weight=1'), name: 'y' })
  const shares = { 'x.k.example.com. A a@east': 0.6, 'x.k.example.com. A a': 0.2 }
  t.strictSame(await process.series(SHARE), { ...shares, 'x.k.example.com. A b': 0.2 })
})

t.test('what is counted, by the kind of the set', async (t) => {
  const process = new Process()
  const zone = new Counted(process)
  const [x, geo] = ['x.k.example.com A', 'geo.k.example.com A']
  await zone.put(
    { name: 'x', endpoints: [`${x} 192.0.2.1 id=a weight=3`, `${x} 192.0.2.2 id=b weight=1`] },
    { name: 'plain', endpoints: ['plain.k.example.com A 192.0.2.3,192.0.2.4'] },
    {
      name: 'geo',
      endpoints: [
        `${geo} 192.0.2.5 geo=US default=true`,
        `${geo} 192.0.2.6 id=na geo=GEO-NA`,
        `${geo} 192.0.2.7 id=na2 geo=GEO-NA`,
      ],
    },
    { name: 'loner', endpoints: ['loner.k.example.com A 192.0.2.8 id=lone geo=US'] },
  )
  const zero = { 'x.k.example.com. A a': 0, 'x.k.example.com. A b': 0, other: 0 }
  t.match(await process.series(), zero, 'series begin at 0')
  t.strictSame(await process.series(SHARE), {
    'x.k.example.com. A a': 0.75,
    'x.k.example.com. A b': 0.25,
    'geo.k.example.com. A 192.0.2.5 *': 1,
    'geo.k.example.com. A 192.0.2.5 US': 1,
    'geo.k.example.com. A  GEO-NA': 1,
    'loner.k.example.com. A lone US': 1,
    'loner.k.example.com. A lone': 1,
  })
  const got = Array.from({ length: 100 }, () => zone.ask('x.k.example.com.').join())
  zone.askOften(3, 'plain.k.example.com.')
  zone.askOften(4, 'geo.k.example.com.', CLIENTS.nowhere)
  zone.askOften(5, 'geo.k.example.com.', CLIENTS.country)
  zone.askOften(6, 'geo.k.example.com.', CLIENTS.continent)
  zone.askOften(7, 'loner.k.example.com.', CLIENTS.nowhere)
  t.strictSame(await process.series(), {
    'x.k.example.com. A a': count(got, '192.0.2.1'),
    'x.k.example.com. A b': count(got, '192.0.2.2'),
    'geo.k.example.com. A 192.0.2.5 *': 4,
    'geo.k.example.com. A 192.0.2.5 US': 5,
    'geo.k.example.com. A  GEO-NA': 6,
    'loner.k.example.com. A lone US': 0,
    'loner.k.example.com. A lone': 7,
    other: 0,
  })
})

t.test('sticky sets and failover lists', async (t) => {
  const process = new Process()
  const zone = new Counted(process)
  const list = 'list.k.example.com A'
  await zone.put(two('sticky', ' weight=1', { annotations: { 'sextant.io/sticky': 'true' } }), {
    name: 'list',
    annotations: { 'sextant.io/failover': 'GEO-NA: b', 'sextant.io/all-down': 'closed' },
    endpoints: [
      `${list} 192.0.2.1 id=a geo=GEO-NA`,
      `${list} 192.0.2.2 id=b weight=0`,
      `${list} 192.0.2.3 id=c geo=*`,
    ],
  })
  const stuck = Array.from({ length: 50 }, (_, i) =>
    zone.ask('sticky.k.example.com.', `10.1.${i}.1`).join(),
  )
  t.ok(count(stuck, '192.0.2.1') > 10)
  zone.ask('list.k.example.com.', CLIENTS.continent)
  await zone.down('list', '192.0.2.1')
  zone.askOften(2, 'list.k.example.com.', CLIENTS.continent)
  await zone.down('list', '192.0.2.1', '192.0.2.2')
  t.strictSame(zone.ask('list.k.example.com.', CLIENTS.continent), [], 'NODATA counts for none')
  t.strictSame(await process.series(), {
    'sticky.k.example.com. A a': count(stuck, '192.0.2.1'),
    'sticky.k.example.com. A b': count(stuck, '192.0.2.2'),
    'list.k.example.com. A a GEO-NA': 1,
    'list.k.example.com. A b GEO-NA': 2,
    'list.k.example.com. A c *': 0,
    other: 0,
  })
  t.match(await process.series(SHARE), {
    'list.k.example.com. A a GEO-NA': 0,
    'list.k.example.com. A b GEO-NA': 0,
  })
})

for (const policy of ['open', 'closed', 'b']) {
  t.test(`all endpoints are down, policy ${policy}`, async (t) => {
    const process = new Process()
    const zone = new Counted(process)
    await zone.put(two('x', ' weight=1', { annotations: { 'sextant.io/all-down': policy } }))
    await zone.down('x', '192.0.2.1', '192.0.2.2')
    const got = Array.from({ length: 40 }, () => zone.ask('x.k.example.com.').join())
    const served = { open: 40, closed: 0, b: 40 }[policy]
    const down = await process.series()
    t.equal(sum(down), served)
    t.equal(down['x.k.example.com. A a'], count(got, '192.0.2.1'))
    t.equal(down['x.k.example.com. A b'], count(got, '192.0.2.2'))
    await zone.down('x')
    zone.ask('x.k.example.com.')
    const up = await process.series()
    t.equal(sum(up), sum(down) + 1)
    for (const [key, value] of Object.entries(down)) t.ok(up[key]! >= value, key)
  })
}

t.test('two CNAMEs of which one is down are still counted', async (t) => {
  const process = new Process()
  const zone = new Counted(process)
  const x = 'x.k.example.com CNAME'
  await zone.put({ name: 'x', endpoints: [`${x} a.example.org id=a`, `${x} b.example.org id=b`] })
  await zone.down('x', 'a.example.org')
  zone.askOften(4, 'x.k.example.com.')
  t.strictSame(await process.series(), {
    'x.k.example.com. CNAME a': 0,
    'x.k.example.com. CNAME b': 4,
    other: 0,
  })
})

t.test('endpoints at several locations have a tier for each', async (t) => {
  const process = new Process()
  const zone = new Counted(process)
  const x = 'x.k.example.com A'
  const [berlin, tokyo] = ['location=52.52+13.40', 'location=35.68+139.69']
  const endpoints = [`${x} 192.0.2.1 id=a ${berlin}`, `${x} 192.0.2.2 id=b ${tokyo}`]
  await zone.put({ name: 'x', endpoints })
  // The database of the test has no coordinates.
  zone.askOften(3, 'x.k.example.com.')
  const series = await process.series()
  t.equal(series['x.k.example.com. A'], 3, 'both endpoints')
  t.equal(Object.keys(series).filter((key) => / @/.test(key)).length, 2)
})

t.test('an edit of the weight keeps the counter, another name starts another', async (t) => {
  const process = new Process()
  const zone = new Counted(process)
  await zone.put(two('x', ' weight=1'))
  zone.askOften(20, 'x.k.example.com.')
  const before = await process.series()
  await zone.put(two('x', ' weight=2'))
  t.strictSame(await process.series(), before)
  const renamed = two('x', ' weight=2')
  await zone.put({
    ...renamed,
    endpoints: [renamed.endpoints[0]!, renamed.endpoints[1]!.replace('id=b', 'id=c')],
  })
  zone.askOften(30, 'x.k.example.com.')
  const after = await process.series()
  t.equal(after['x.k.example.com. A b'], before['x.k.example.com. A b'], 'b gets no more')
  t.equal(sum(after), 50)
  t.equal((await process.series(SHARE))['x.k.example.com. A c'], 0.5)
})

function sum(series: Readonly<Record<string, number>>): number {
  return Object.values(series).reduce((total, value) => total + value, 0)
}

t.test('above the maximum, endpoints are counted together', async (t) => {
  const process = new Process()
  const zone = new Counted(process, { max: 3 })
  for (const name of ['x', 'y', 'z']) await zone.put(two(name, ' weight=1'))
  for (const name of ['x', 'y', 'z']) zone.askOften(40, `${name}.k.example.com.`)
  const series = await process.series()
  t.strictSame(Object.keys(series).sort(), [
    'other',
    ...['x.k.example.com. A a', 'x.k.example.com. A b', 'y.k.example.com. A a'],
  ])
  t.equal(sum(series), 120)
  t.ok(series.other! >= 40, 'z, and one of y')
  t.equal(process.lines.filter((line) => line.includes('endpoint-metrics')).length, 1)

  await t.test('and a free counter goes to another endpoint, after a while', async (t) => {
    await zone.remove('x')
    zone.askOften(5, 'x.k.example.com.')
    await zone.put(two('w', ' weight=1'))
    t.ok('x.k.example.com. A a' in (await process.series()), 'not at once')
    t.notOk('w.k.example.com. A a' in (await process.series()))
    process.nowMs = KEPT_MS - 1
    await zone.put(two('w', ' weight=2'))
    t.notOk('w.k.example.com. A a' in (await process.series()), 'not before the time')
    process.nowMs = KEPT_MS
    await zone.put(two('w', ' weight=3'))
    zone.askOften(50, 'w.k.example.com.')
    const series = await process.series()
    t.notOk('x.k.example.com. A a' in series)
    t.equal(series['w.k.example.com. A a']! + series['w.k.example.com. A b']!, 50)
  })
})

t.test('endpoints that come and go for days need no more series', async (t) => {
  const process = new Process()
  const zone = new Counted(process, { max: 10 })
  for (let i = 0; i < 500; i++) {
    process.nowMs += KEPT_MS / 3
    await zone.put(two(`n${i}`, ' weight=1'))
    zone.askOften(4, `n${i}.k.example.com.`)
    if (i > 0) await zone.remove(`n${i - 1}`)
    t.ok(Object.keys(await process.series()).length <= 11)
  }
  const { 'n499.k.example.com. A a': a, 'n499.k.example.com. A b': b } = await process.series()
  t.equal(a! + b!, 4)
})

t.test('a counter that the published image uses goes to no other endpoint', async (t) => {
  const process = new Process()
  const zone = new Counted(process, { max: 2 })
  await zone.put(two('x', ' weight=1'))
  zone.records.apply([{ before: record(two('x', ' weight=1')), after: undefined }])
  process.nowMs = KEPT_MS * 10
  await zone.put(two('y', ' weight=1'))
  t.notOk('y.k.example.com. A a' in (await process.series()))
})

t.test('a reload continues the counters', async (t) => {
  const process = new Process()
  const old = new Counted(process)
  await old.put(two('x', ' weight=1'), two('gone', ' weight=1'))
  old.askOften(10, 'x.k.example.com.')
  const next = new Counted(process)
  await next.put(two('x', ' weight=1'))
  old.askOften(10, 'x.k.example.com.')
  next.askOften(10, 'x.k.example.com.')
  old.askOften(10, 'gone.k.example.com.')
  t.equal(sum(await process.series()), 40)
  old.askOften(10, 'x.k.example.com.')
  old.counters.close()
  old.counters.close()
  const series = await process.series()
  t.strictSame(Object.keys(series).sort(), [
    'other',
    'x.k.example.com. A a',
    'x.k.example.com. A b',
  ])
  t.equal(sum(series), 40)
  t.equal((await process.series(SHARE))['x.k.example.com. A a'], 0.5)
  next.counters.close()
  t.strictSame(await process.series(), {})
})

const ENDPOINT = fc.record({
  id: fc.constantFrom('a', 'b', 'c', 'd'),
  weight: fc.option(fc.constantFrom(0, 1, 5), { nil: undefined }),
  code: fc.option(fc.constantFrom('GEO-NA', 'US', '*'), { nil: undefined }),
})
const ENDPOINTS = fc.uniqueArray(ENDPOINT, { minLength: 1, maxLength: 4, selector: ({ id }) => id })
const QUERIES = fc.array(
  fc.record({
    name: fc.constantFrom('x', 'y'),
    from: fc.constantFrom(...Object.values(CLIENTS)),
    thread: fc.nat(2),
  }),
  { maxLength: 60 },
)
type Endpoints = typeof ENDPOINTS extends fc.Arbitrary<infer T> ? T : never

const givenOf = (name: string, endpoints: Endpoints, isSticky: boolean): Given => ({
  name,
  annotations: isSticky ? { 'sextant.io/sticky': 'true' } : {},
  endpoints: endpoints.map(({ id, weight, code }) => {
    const geo = code === undefined ? '' : ` geo=${code}`
    const drawn = weight === undefined ? '' : ` weight=${weight}`
    const last = name.charCodeAt(0) + id.charCodeAt(0)
    return `${name}.k.example.com A 192.0.2.${last} id=${id}${drawn}${geo}`
  }),
})

t.test('the counts are those of the answers, in every thread and after every edit', async (t) => {
  const edits = fc.array(fc.tuple(ENDPOINTS, ENDPOINTS, fc.boolean(), QUERIES), {
    minLength: 1,
    maxLength: 4,
  })
  let counted = 0
  const property = fc.asyncProperty(edits, fc.integer({ min: 1, max: 30 }), async (steps, max) => {
    const process = new Process()
    const zone = new Counted(process, { max, threads: 3 })
    /** By name and target: answers with one endpoint alone. */
    const single = new Map<string, number>()
    let all = 0
    let before: Record<string, number> = {}
    for (const [x, y, isSticky, queries] of steps) {
      await zone.put(givenOf('x', x, isSticky), givenOf('y', y, false))
      const isCounted = (endpoints: Endpoints): boolean =>
        endpoints.some(({ weight, code }) => weight !== undefined || code !== undefined)
      for (const { name, from, thread } of queries) {
        const targets = zone.ask(`${name}.k.example.com.`, from, thread)
        if (!isCounted(name === 'x' ? x : y)) continue
        all++
        if (targets.length > 1) continue
        const id = String.fromCharCode(Number(targets[0]!.split('.')[3]) - name.charCodeAt(0))
        single.set(`${name} ${id}`, (single.get(`${name} ${id}`) ?? 0) + 1)
      }
      const series = await process.series()
      for (const [key, value] of Object.entries(before)) {
        if (series[key]! < value) throw new Error(`${key} went back`)
      }
      before = series
    }
    t.equal(sum(before), all)
    if (before.other !== 0) return
    for (const [key, answers] of single) {
      const [name, id] = key.split(' ')
      const mine = Object.entries(before).filter(([labels]) =>
        labels.startsWith(`${name}.k.example.com. A ${id}`),
      )
      t.equal(sum(Object.fromEntries(mine)), answers, key)
      counted += answers
    }
  })
  await fc.assert(property, { numRuns: runs(250), seed: 20261124 })
  t.ok(counted > runs(1000), `${counted} answers`)
})
