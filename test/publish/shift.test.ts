import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { Response } from '../../src/dns/message/response.ts'
import { Shifts } from '../../src/health/shift/shifts.ts'
import { ImageSink } from '../../src/publish/zone/image-sink.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { ZoneImage } from '../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import { TestSource, tableOf } from '../health/stage.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { question, wire } from '../support/zone-names.ts'
import { APEX, type Given, record, zone } from './record-zone-stage.ts'

const X = 'x.k.example.com'
const DRAWS = 50_000

/** A zone with shifts that answers queries. */
function serve(...givens: Given[]) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const lines: string[] = []
  const note = (text: string): void => void lines.push(text)
  const log = { debug: note, info: note, warning: note, error: note }
  const source = new TestSource()
  source.put(...givens.map(record))
  const table = tableOf(source, { clock, timers, log })
  const shifts = new Shifts({ source, table, clock, timers, log })
  const { rowOf } = table.with({ shifts })
  const { records, sink, conflicts } = zone({}, Object.assign(source.health, { rowOf }))
  table.subscribe((keys) => {
    const changed = [...keys].map((key) => source.find(key)!)
    records.apply(changed.map((one) => ({ before: one, after: one })))
  })
  source.subscribe((changes) => {
    records.apply(changes)
  })
  records.apply([...source.records()].map((after) => ({ before: undefined, after })))
  const pass = async (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
  }
  /** How often each last octet comes, or each length of the answer. */
  const draw = (type: number): Map<number, number> => {
    const image = new ZoneImage()
    const id = image.addZone(APEX)
    const onError = (reason: string): void => void t.fail(reason)
    const table = new SteeringTable({ locator: undefined, random: new Random(5), onError })
    const images = new ImageSink(image, id, table)
    for (const [key, set] of sink.sets) images.put(wire(key.split(' ')[0]!), set)
    image.publish()
    const answerer = new ZoneAnswerer(image.reader(), table.steerer())
    const seen = new Map<number, number>()
    const query = question(`${X}.`, type)
    const response = new Response()
    for (let i = 0; i < DRAWS; i++) {
      response.reset(query)
      answerer.answer(query, response, 0)
      const last = response.count - 1
      const end = response.rdataOffset[last]! + response.rdataOctets[last]!
      const octet = response.rdataBytes[last]![end - 1]!
      seen.set(octet, (seen.get(octet) ?? 0) + 1)
    }
    return seen
  }
  return { source, records, sink, conflicts, pass, draw, lines }
}

/** Fails unless the draws fit these shares in percent: by chi-square (p = 0.001), and within 1 %. */
function fits(seen: ReadonlyMap<number, number>, shares: Readonly<Record<number, number>>): void {
  const possible = Object.entries(shares).filter(([, share]) => share > 0)
  let chiSquare = 0
  for (const [octet, share] of possible) {
    const want = (DRAWS * share) / 100
    const got = seen.get(Number(octet)) ?? 0
    chiSquare += (got - want) ** 2 / want
    if (Math.abs(got - want) > DRAWS / 100) t.fail(`${octet}: ${got} of ${DRAWS}, want ${share} %`)
  }
  t.ok(chiSquare < [0, 10.8, 13.8][possible.length - 1]! || possible.length === 1, `${chiSquare}`)
  t.strictSame(
    [...seen.keys()].sort(),
    possible.map(([octet]) => Number(octet)),
  )
}

const BY_TYPE = [
  { type: RRType.A, prefix: 'A 192.0.2.', chain: [] },
  { type: RRType.AAAA, prefix: 'AAAA 2001:db8::', chain: [] },
  {
    type: RRType.A,
    prefix: 'CNAME c',
    chain: [1, 2, 3].map((i) => `c${i}.${X} A 192.0.2.${i}`),
  },
]

for (const { type, prefix, chain } of BY_TYPE) {
  for (const [name, weights] of [
    ['with weights', [' weight=30', ' weight=10', ' weight=0']],
    ['without weights', ['', '', '']],
  ] as const) {
    const isWeighted = weights[0] !== ''
    t.test(`each step of ${prefix} ${name} has its share`, async () => {
      const endpoints = [1, 2, 3].map((i) => {
        const target = chain.length > 0 ? `${prefix}${i}.${X}` : `${prefix}${i}`
        return `${X} ${target} id=s${i}${weights[i - 1]}`
      })
      const shift = 'to=s3 steps=5%,25%,62.5%,100% bake=1m'
      const annotations = { 'sextant.io/shift': shift }
      const given = { endpoints: [...endpoints, ...chain], annotations }
      const { draw, pass, source, lines } = serve(given)
      for (const percent of [5, 25, 62.5, 100]) {
        const rest = 100 - percent
        const first = isWeighted ? 0.75 : 0.5
        fits(draw(type), { 1: rest * first, 2: rest * (1 - first), 3: percent })
        if (percent < 100) await pass(60_000)
      }
      source.put({ ...record(given), down: chain.length > 0 ? ['192.0.2.3'] : [] })
      if (chain.length === 0) return
      t.match(lines.at(-1), /reverted at step 4 of 4 \(100 %\)/, 'behind a CNAME')
      fits(draw(type), isWeighted ? { 1: 75, 2: 25 } : { 1: 50, 2: 50 })
    })
  }
}

t.test('the share holds in each tier that has other endpoints', async (t) => {
  const { sink, records } = serve({
    endpoints: [
      `${X} A 192.0.2.1 id=a weight=10 geo=GEO-EU`,
      `${X} A 192.0.2.2 id=b weight=90 geo=GEO-EU+GEO-NA`,
      `${X} A 192.0.2.3 id=c weight=10 default=true`,
    ],
    annotations: { 'sextant.io/shift': 'to=b steps=20% bake=1m' },
  })
  const { candidates, type, shift } = sink.sets.get(`${X}. A`)!
  t.match(shift?.text, /^step 1 of 1 \(20 %\) until /)
  const { sortIntoTiers } = await import('../../src/steering/tiers.ts')
  const { keys, tiers } = sortIntoTiers(candidates, type)
  t.strictSame(
    keys.map(({ text }) => text),
    ['GEO-EU', 'GEO-NA'],
  )
  const weights = tiers.map((tier) => tier.map(({ weight }) => weight))
  t.strictSame(weights, [[800_000, 200_000], [90], [10]])
  t.not(records.digest, serve({ endpoints: [`${X} A 192.0.2.1`] }).records.digest)
})

t.test('a step changes the serial; a note of the same share does not', async (t) => {
  const endpoints = [`${X} A 192.0.2.1 id=a weight=1`, `${X} A 192.0.2.2 id=b weight=1`]
  const annotations = { 'sextant.io/shift': 'to=b steps=20%,50% bake=1m' }
  const { records, pass, sink, source } = serve({ endpoints, annotations })
  const digests = [records.digest]
  for (let i = 0; i < 3; i++) {
    await pass(60_000)
    digests.push(records.digest)
  }
  t.not(digests[0], digests[1])
  t.strictSame(digests.slice(2), [digests[1], digests[1]], 'it is finished')
  const { changes } = sink
  source.put(record({ endpoints, annotations, created: '2026-01-01T00:00:00Z' }))
  t.equal(sink.changes, changes)
})

t.test('of records with different shifts the oldest one counts', async (t) => {
  const of = (name: string, octet: number, created: string): Given => ({
    name,
    created,
    endpoints: [`${X} A 192.0.2.${octet} id=${name} weight=1`],
    annotations: { 'sextant.io/shift': `to=${name} steps=${octet}0% bake=1m` },
  })
  const { conflicts, sink } = serve(
    of('a', 1, '2026-01-02T00:00:00Z'),
    of('b', 2, '2026-01-01T00:00:00Z'),
  )
  t.strictSame(conflicts, [
    `${X}.: shift "to=b steps=20% bake=1m0s" (n/b) and "to=a steps=10% bake=1m0s" (n/a): the first applies; set the same in both`,
  ])
  t.equal(sink.sets.get(`${X}. A`)?.shift?.to, 'b')
})

t.test('an endpoint that traffic is shifted to is no standby', async (t) => {
  const endpoints = [`${X} A 192.0.2.1 id=a weight=30`, `${X} A 192.0.2.2 id=b weight=0`]
  const annotations = { 'sextant.io/shift': 'to=b steps=5%,100% bake=1m' }
  t.match(serve({ endpoints, annotations }).records.tally, { standby: 0 })
  t.match(serve({ endpoints }).records.tally, { standby: 1 })
})
