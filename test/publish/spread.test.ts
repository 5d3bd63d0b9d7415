import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { groupBy } from '../../src/peering/merge/part.ts'
import type { StoredRecord } from '../../src/records/record-source.ts'
import { runs } from '../support/runs.ts'
import { TestHealth } from '../support/test-health.ts'
import { distribution } from './distribution.ts'
import { mergeSites } from './merge-sites.ts'
import { type Given, record, zone } from './record-zone-stage.ts'

/*
 * Endpoints of one name in one record, and the same endpoints in several records of several sites, as each
 * of these sites has them.
 */

const HOST = 'k.example.com'
const OWNER = `x.${HOST}`
const SITES = ['berlin', 'c3', 'osaka', 's', 's1', 'tokyo', 'z'] as const
/** A site without records of its own. */
const OUTSIDE = 'm'
const POINTS = ['52.52,13.40', '48.86,2.35', '35.68,139.69'] as const
const CODES = ['GEO-EU', 'DE', 'GEO-NA', 'US', 'AS64500'] as const
const AGES = [undefined, '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z']

interface Sketch {
  readonly type: string
  /** Number of targets. */
  readonly size: number
  readonly ttl: number
  readonly hasId: boolean
  readonly weight: number | undefined
  readonly codes: readonly string[]
  readonly isDefault: boolean
  readonly point: string | undefined
  /** Of each target. */
  readonly states: readonly ('up' | 'down' | 'slow' | 'drained')[]
  /** Numbers of the records that have it; modulo their count. */
  readonly records: readonly number[]
}

interface Place {
  readonly site: string
  readonly created: string | undefined
}

interface World {
  readonly sketches: readonly Sketch[]
  readonly places: readonly Place[]
  readonly annotations: { readonly [key: string]: string }
  /** Ids of endpoints that are drained. */
  readonly drained: readonly string[]
}

function targetsOf({ type, size }: Sketch, i: number): string[] {
  const numbers = Array.from({ length: type === 'CNAME' ? 1 : size }, (_, n) => i * 4 + n)
  if (type === 'A') return numbers.map((n) => `192.0.2.${n}`)
  if (type === 'AAAA') return numbers.map((n) => `2001:db8::${n.toString(16)}`)
  return numbers.map((n) => `c${n}.example.org`)
}

function endpointOf(sketch: Sketch, i: number, id = `e${i}`): string {
  const { type, ttl, hasId, weight, codes, isDefault, point } = sketch
  const options = [
    `ttl=${ttl}`,
    ...(hasId ? [`id=${id}`] : []),
    ...(weight === undefined ? [] : [`weight=${weight}`]),
    ...(codes.length === 0 ? [] : [`geo=${codes.join('+')}`]),
    ...(isDefault ? ['default=true'] : []),
    ...(point === undefined ? [] : [`location=${point.replace(',', '+')}`]),
  ]
  return `${OWNER} ${type} ${targetsOf(sketch, i).join()} ${options.join(' ')}`
}

/** The health of all targets, for each of these records. */
function healthOf({ sketches, drained }: World, keys: readonly string[]): TestHealth {
  const of = (wanted: string): string[] => {
    return sketches.flatMap((sketch, i) => {
      return targetsOf(sketch, i).filter((_, n) => sketch.states[n] === wanted)
    })
  }
  const health = new TestHealth()
  const slow = of('slow').map((address, i) => ({ address, units: 1 + (i % 19) }))
  for (const key of keys) {
    health.put(key, of('down'))
    if (slow.length > 0) health.slowStarts.set(key, slow)
  }
  const addresses = of('drained').filter((target) => !target.endsWith('.org'))
  health.drains = [...addresses.map((one) => `address:${one}`), ...drained.map((id) => `id:${id}`)]
  return health
}

function serve(world: World, records: readonly StoredRecord[], site: string) {
  const keys = records.map(({ key }) => key)
  const served = zone({ site }, healthOf(world, keys))
  served.records.apply(records.map((after) => ({ before: undefined, after })))
  return served
}

/** All endpoints in one record. */
function inOne(world: World) {
  const { sketches, annotations } = world
  const endpoints = sketches.map((sketch, i) => endpointOf(sketch, i))
  return serve(world, [record({ endpoints, annotations })], '')
}

/** The records of all sites; `annotations`: of each record. */
function spread(
  { sketches, places, annotations }: World,
  idOf: (i: number) => string | undefined = () => undefined,
  annotationsOf: (i: number) => Given['annotations'] = () => annotations,
): readonly Given[] {
  return places.flatMap(({ site, created }, r): Given[] => {
    const endpoints = sketches.flatMap((sketch, i) => {
      const isHere = sketch.records.some((number) => number % places.length === r)
      return isHere ? [endpointOf(sketch, i, idOf(i))] : []
    })
    if (endpoints.length === 0) return []
    const given = { site, name: `r${r}`, endpoints, annotations: annotationsOf(r) ?? {} }
    return [created === undefined ? given : { ...given, created }]
  })
}

function viewersOf({ places }: World): readonly string[] {
  return [...new Set(places.map(({ site }) => site)), OUTSIDE]
}

/** What the site `viewer` serves, with the records of the other sites as their nameservers export them. */
async function seenBy(viewer: string, world: World, givens: readonly Given[]) {
  const bySite = groupBy(givens, ({ site }) => site!)
  const stored = [...bySite].map(([site, ofSite]) => {
    return [site, ofSite.map(({ site: _, ...given }) => record(given))] as const
  })
  return serve(world, await mergeSites(viewer, HOST, new Map(stored)), viewer)
}

const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

function sketches(types: readonly string[], ttls: readonly number[]): fc.Arbitrary<Sketch[]> {
  const isWeighted = fc.boolean()
  const sketch = fc.record<Sketch>({
    type: fc.constantFrom(...types),
    size: fc.integer({ min: 1, max: 3 }),
    ttl: fc.constantFrom(...ttls),
    hasId: fc.boolean(),
    weight: isWeighted.chain((is) =>
      is ? some(fc.constantFrom(0, 1, 20, 80)) : fc.constant(undefined),
    ),
    codes: fc.uniqueArray(fc.constantFrom(...CODES), { maxLength: 2 }),
    isDefault: fc.boolean(),
    point: fc.constantFrom(undefined, undefined, ...POINTS),
    states: fc.array(fc.constantFrom('up', 'up', 'down', 'slow', 'drained'), {
      minLength: 3,
      maxLength: 3,
    }),
    records: fc.uniqueArray(fc.nat(4), { minLength: 1, maxLength: 2 }),
  })
  const plain = sketch.map((one): Sketch => {
    return { ...one, weight: undefined, codes: [], isDefault: false, point: undefined }
  })
  return fc.array(fc.oneof({ weight: 3, arbitrary: sketch }, plain), { minLength: 1, maxLength: 7 })
}

const places = fc.array(
  fc.record<Place>({ site: fc.constantFrom(...SITES), created: fc.constantFrom(...AGES) }),
  { minLength: 1, maxLength: 5 },
)

const annotations = fc
  .record({
    policy: fc.constantFrom('open', 'closed', 'e0', 'e1'),
    sticky: fc.boolean(),
    failover: fc.constantFrom('', 'GEO-EU: e1, GEO-NA', '*: US, e0\nDE: e2'),
  })
  .map(({ policy, sticky, failover }) => ({
    'sextant.io/all-down': policy,
    ...(sticky ? { 'sextant.io/sticky': 'true' } : {}),
    ...(failover === '' ? {} : { 'sextant.io/failover': failover }),
  }))

t.test('endpoints give the same answers in one record and spread over sites', async (t) => {
  const seen = { down: 0, tiers: 0, drawn: 0 }
  const world = fc.record<World>({
    sketches: fc.oneof(sketches(['A', 'AAAA', 'A'], [5, 60]), sketches(['CNAME'], [60])),
    places,
    annotations,
    drained: fc.subarray(['e0', 'e3']),
  })
  const property = fc.asyncProperty(world, async (given) => {
    const one = inOne(given)
    const want = distribution(one.records, OWNER)
    const givens = spread(given)
    for (const viewer of viewersOf(given)) {
      const served = await seenBy(viewer, given, givens)
      assert.deepEqual(distribution(served.records, OWNER), want, `as ${viewer} has them`)
    }
    for (const { allDown, candidates } of one.sink.sets.values()) {
      if (allDown !== undefined) seen.down++
      if (candidates.some(({ weight }) => weight !== undefined)) seen.drawn++
      if (candidates.some(({ code }) => code !== undefined)) seen.tiers++
    }
  })
  await fc.assert(property, { numRuns: runs(200), seed: 27 })
  for (const [what, count] of Object.entries(seen)) t.ok(count >= runs(4), `${what}: ${count}`)
})

t.test('two sites with a default endpoint each share the default clients 80 to 20', async (t) => {
  const givens = [20, 80].map((weight, i) => ({
    site: SITES[i]!,
    name: 'app',
    endpoints: [`${OWNER} A 192.0.2.${i + 1} id=us geo=US weight=${weight} default=true`],
  }))
  const world: World = { sketches: [], places: [], annotations: {}, drained: [] }
  for (const viewer of [...SITES.slice(0, 2), OUTSIDE]) {
    const served = await seenBy(viewer, world, givens)
    const tier = ['20 undefined: 192.0.2.1', '80 undefined: 192.0.2.2']
    t.strictSame(distribution(served.records, OWNER).sets.get('A')?.tiers, [
      ['US', ...tier],
      ['', ...tier],
    ])
    t.strictSame(served.conflicts, [])
  }
})

const POLICIES = ['open', 'closed'].map((policy) => ({ 'sextant.io/all-down': policy }))
const STICKY = ['false', '20 48'].map((prefix) => ({ 'sextant.io/sticky': prefix }))
const SETTINGS = [undefined, ...POLICIES, ...STICKY, { 'sextant.io/failover': 'DE: US' }]

function sitesOf(type: string, { sketches, places }: Pick<World, 'sketches' | 'places'>) {
  const ofType = sketches.filter((sketch) => sketch.type === type)
  const numbers = ofType.flatMap(({ records }) => records)
  return new Set(numbers.map((number) => places[number % places.length]!.site))
}

/** Replaces what only the site `viewer` itself can say: the names of its records. */
function alike(text: string, viewer: string): string {
  const at = `${viewer}: record of ${HOST}`
  return text
    .replace(/ \(n\/r\d\) (and|beside) (.*?) \(n\/r\d\)/, ` $1 $2 (${at}, and another one)`)
    .replaceAll(/n\/r\d/g, at)
}

t.test('sites decide and report conflicts alike, whatever the health is', async (t) => {
  const kinds = new Map<string, number>()
  const world = fc.record({
    sketches: sketches(['A', 'AAAA', 'CNAME', 'A'], [1, 5, 30]),
    places,
    settings: fc.array(fc.constantFrom(...SETTINGS), { minLength: 5, maxLength: 5 }),
    ids: fc.array(fc.constantFrom('eu', 'us', 'as'), { minLength: 7, maxLength: 7 }),
  })
  const property = fc.asyncProperty(world, async ({ settings, ids, ...rest }) => {
    const sketches = rest.sketches.map((one) => {
      // A site that is alone with the endpoints of a type may have any TTL.
      return sitesOf(one.type, rest).size === 1 ? { ...one, ttl: 60 } : one
    })
    const given: World = { ...rest, sketches, annotations: {}, drained: [] }
    const idOf = (i: number) => ids[i]
    const givens = spread(given, idOf, (r) => settings[r])
    const healthy = { ...given, sketches: sketches.map((one) => ({ ...one, states: [] })) }
    const answers: ReturnType<typeof distribution>[] = []
    const texts = new Set<string>()
    for (const viewer of viewersOf(given)) {
      const served = await seenBy(viewer, given, givens)
      const reported = served.records.conflicts.all().map(({ text }) => text)
      answers.push(distribution(served.records, OWNER))
      const alikeTexts = reported.map((text) => alike(text, viewer))
      texts.add(alikeTexts.sort().join('\n'))
      const up = (await seenBy(viewer, healthy, givens)).records.conflicts.all()
      const want = up.map(({ text }) => text)
      assert.deepEqual(reported, want, 'health makes no conflict')
      for (const text of reported) {
        const kind = /TTL|CNAME|sticky|all-down|set identifier|location|failover/.exec(text)![0]
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
      }
    }
    for (const answer of answers) assert.deepEqual(answer, answers[0], 'sites serve the same')
    assert.equal(texts.size, 1, [...texts].join('\n or\n'))
  })
  await fc.assert(property, { numRuns: runs(200), seed: 28 })
  t.equal(kinds.size, 7, [...kinds.keys()].join())
})
