import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { FlatClassTrie } from '../../src/geo/class-trie.ts'
import { buildClasses } from '../../src/geo/classes/build-classes.ts'
import type { PointSet } from '../../src/geo/classes/point-orders.ts'
import { scanGeoCode } from '../../src/geo/code.ts'
import type { Database } from '../../src/geo/mmdb/database.ts'
import { type Net, scanNet } from '../../src/geo/net.ts'
import { type Coordinates, distanceKm, type Point, scanPoint } from '../../src/geo/point.ts'
import type { Candidate } from '../../src/steering/candidate.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { CHI_SQUARE_AT_1_PERCENT, chiSquare } from '../support/chi-square.ts'
import { type MmdbValue, openMmdb } from '../support/mmdb.ts'
import { choose, NetLocator, response } from './stage.ts'

const RUNS = { seed: 20261124, numRuns: 60 }

class CityLocator extends NetLocator {
  readonly #database: Database
  readonly #nets: readonly Net[]

  constructor(networks: Readonly<Record<string, MmdbValue>>, nets: readonly string[]) {
    super()
    this.#database = openMmdb({ networks })
    this.#nets = nets.map((line) => scanNet(...(line.split(' ') as [string, ...string[]])) as Net)
  }

  override async classify(
    codes: Parameters<NetLocator['classify']>[0],
    pointSets?: readonly PointSet[],
  ) {
    this.classified++
    const databases = [this.#database]
    return new FlatClassTrie(buildClasses({ databases, nets: this.#nets, codes, pointSets }))
  }
}

function entry(coordinates: Coordinates | undefined, country = 'DE', continent = 'EU'): MmdbValue {
  const place = { country: { iso_code: country }, continent: { code: continent } }
  return coordinates === undefined ? place : { ...place, location: { ...coordinates } }
}

function tableOf(networks: Readonly<Record<string, MmdbValue>>, nets: readonly string[] = []) {
  const locator = new CityLocator(networks, nets)
  const errors: string[] = []
  const random = new Random(1)
  const table = new SteeringTable({ locator, random, onError: (reason) => errors.push(reason) })
  return { table, locator, errors }
}

interface Endpoint {
  readonly point?: Point | undefined
  readonly code?: string
  readonly isDefault?: boolean
  readonly weight?: number | undefined
}

function candidatesOf(endpoints: readonly Endpoint[]): Candidate[] {
  return endpoints.map(({ point, code, isDefault = false, weight }, i) => ({
    code: code === undefined ? undefined : scanGeoCode(code)!,
    isDefault,
    point,
    weight,
    ttlSeconds: 60,
    rdataIndexes: [i],
  }))
}

function composeIn(
  table: SteeringTable,
  candidates: readonly Candidate[],
  sets: readonly PointSet[],
): Uint32Array | undefined {
  table.addPointSets(sets)
  return table.compose(candidates, RRType.A)
}

function setOf(points: readonly Point[]): PointSet {
  const byText = new Map(points.map((point) => [point.text, point]))
  return [...byText.values()].sort((a, b) => (a.text < b.text ? -1 : 1))
}

const latitude = fc.oneof(fc.integer({ min: -9000, max: 9000 }), fc.constantFrom(-9000, 8999, 9000))
const longitude = fc.oneof(
  fc.integer({ min: -18000, max: 18000 }),
  fc.constantFrom(-18000, -17999, 17999, 18000),
)
const point = fc.tuple(latitude, longitude).map(([a, b]) => scanPoint(`${a / 100},${b / 100}`)!)
const ADDRESSES = Array.from({ length: 8 }, (_, i) => `10.${i}.0.1`)

t.test(
  'each client gets the nearest point in service, and a change of health needs no new trie',
  async (t) => {
    const world = fc.record({
      clients: fc.array(point, { minLength: 8, maxLength: 8 }),
      points: fc.uniqueArray(point, { minLength: 2, maxLength: 6, selector: ({ text }) => text }),
      out: fc.array(fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }), { maxLength: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(world, async ({ clients, points, out }) => {
        const networks = clients.map((client, i) => [`10.${i}.0.0/16`, entry(client)])
        const { table, locator } = tableOf(Object.fromEntries(networks))
        const sets = [setOf(points)]
        composeIn(table, candidatesOf(points.map((p) => ({ point: p }))), sets)
        await table.built()
        for (const flags of [[], ...out]) {
          const serving = points.filter((_, i) => flags[i] !== true)
          if (serving.length === 0) continue
          const candidates = candidatesOf(serving.map((p) => ({ point: p })))
          const words = composeIn(table, candidates, sets)!
          await table.built()
          for (const [i, address] of ADDRESSES.entries()) {
            const [chosen] = choose(table, words, address)
            const distances = serving.map((p) => distanceKm(clients[i]!, p))
            const least = Math.min(...distances)
            if (distances[chosen!]! > least + 1e-6) {
              throw new Error(`${clients[i]!.text} gets ${serving[chosen!]!.text}`)
            }
          }
        }
        if (locator.classified !== 1) throw new Error(`${locator.classified} tries`)
      }),
      RUNS,
    )
    t.pass()
  },
)

t.test(
  'of a large set the nearest is exact, and a point is left while one is in service',
  async (t) => {
    const world = fc.record({
      clients: fc.array(point, { minLength: 8, maxLength: 8 }),
      points: fc.uniqueArray(point, { minLength: 7, maxLength: 30, selector: ({ text }) => text }),
      outCount: fc.nat({ max: 2 }),
      survivor: fc.nat({ max: 6 }),
    })
    await fc.assert(
      fc.asyncProperty(world, async ({ clients, points, outCount, survivor }) => {
        const networks = clients.map((client, i) => [`10.${i}.0.0/16`, entry(client)])
        const { table } = tableOf(Object.fromEntries(networks))
        const sets = [setOf(points)]
        const compose = (serving: readonly Point[]) => {
          const candidates = candidatesOf(serving.map((p) => ({ point: p })))
          return composeIn(table, candidates, sets)!
        }
        compose(points)
        await table.built()
        const only = points.slice(survivor, survivor + 1)
        for (const [i, address] of ADDRESSES.entries()) {
          const byDistance = points.toSorted(
            (a, b) => distanceKm(clients[i]!, a) - distanceKm(clients[i]!, b),
          )
          const serving = byDistance.slice(outCount)
          const chosen = serving[choose(table, compose(serving), address)[0]!]!
          const excess = distanceKm(clients[i]!, chosen) - distanceKm(clients[i]!, serving[0]!)
          if (excess > 1e-6) throw new Error(`${clients[i]!.text} gets ${chosen.text}`)
          if (choose(table, compose(only), address)[0] !== 0) throw new Error('nothing is left')
        }
      }),
      RUNS,
    )
    t.pass()
  },
)

t.test('the ECS scope is a prefix whose clients all get the same', async (t) => {
  const random = new Random(20261124)
  const networks: Record<string, MmdbValue> = {}
  for (let i = 0; i < 60; i++) {
    const bits = 10 + random.below(15)
    const client = scanPoint(
      `${random.below(18001) / 100 - 90},${random.below(36001) / 100 - 180}`,
    )!
    networks[`10.${random.below(256)}.${random.below(256)}.0/${bits}`] = entry(client)
  }
  // They cut the classes of the database; some have a code, which removes wider coordinates.
  const nets = Array.from({ length: 40 }, (_, i) => {
    const prefix = `10.${random.below(256)}.${i}.0/${9 + random.below(20)}`
    const place = `${random.below(181) - 90},${random.below(361) - 180}`
    return `${prefix} ${['DE', place, `NET-A ${place}`, `FR ${place}`][i % 4]}`
  })
  const { table } = tableOf(networks, nets)
  const points = ['52.52,13.40', '40.71,-74.01', '1.35,103.82', '-33.87,151.21'].map(
    (text) => scanPoint(text)!,
  )
  const candidates = candidatesOf(points.map((p) => ({ point: p })))
  const words = composeIn(table, candidates, [setOf(points)])!
  await table.built()
  for (let i = 0; i < 300; i++) {
    const bytes = Uint8Array.of(10, random.below(256), random.below(256), random.below(256))
    const chosen = choose(table, words, bytes.join('.'), true).join()
    const bits = response.scopeBits
    for (let k = 0; k < 16; k++) {
      const inside = bytes.map((octet, at) => {
        const free = Math.max(0, Math.min(8, (at + 1) * 8 - bits))
        return (octet & (0xff << free)) | (random.below(256) & (2 ** free - 1))
      })
      const other = choose(table, words, inside.join('.'), true).join()
      if (other !== chosen || response.scopeBits !== bits) {
        t.fail(`${bytes.join('.')}/${bits} gets ${chosen}, and ${inside.join('.')} gets ${other}`)
      }
    }
  }
  t.pass()
})

const BERLIN = scanPoint('52.52,13.40')!
const PARIS = scanPoint('48.86,2.35')!
const NEW_YORK = scanPoint('40.71,-74.01')!
const TOKYO = scanPoint('35.68,139.69')!
/** Clients near these points, and some without coordinates. */
const WORLD = {
  '10.1.0.0/16': entry({ latitude: 52, longitude: 13 }, 'DE', 'EU'),
  '10.2.0.0/16': entry({ latitude: 48, longitude: 2 }, 'FR', 'EU'),
  '10.3.0.0/16': entry({ latitude: 41, longitude: -74 }, 'US', 'NA'),
  '10.4.0.0/16': entry({ latitude: 36, longitude: 140 }, 'JP', 'AS'),
  '10.5.0.0/16': entry(undefined, 'DE', 'EU'),
  '10.6.0.0/16': entry({ latitude: 99, longitude: 140 }, 'JP', 'AS'),
}
const [DE, FR, US, JP, DE_ONLY, BROKEN, NOWHERE] = [1, 2, 3, 4, 5, 6, 7].map(
  (i) => `10.${i}.0.1`,
) as [string, string, string, string, string, string, string]

const LADDER: readonly {
  readonly name: string
  readonly endpoints: readonly Endpoint[]
  readonly expected: Readonly<Record<string, readonly number[]>>
}[] = [
  {
    name: 'locations alone: the nearest; clients without coordinates get all',
    endpoints: [{ point: BERLIN }, { point: NEW_YORK }, { point: TOKYO }],
    expected: {
      [DE]: [0],
      [FR]: [0],
      [US]: [1],
      [JP]: [2],
      [DE_ONLY]: [0, 1, 2],
      [NOWHERE]: [0, 1, 2],
    },
  },
  {
    name: 'coordinates out of range are unknown',
    endpoints: [{ point: BERLIN }, { point: TOKYO }],
    expected: { [BROKEN]: [0, 1] },
  },
  {
    name: 'a default serves clients without coordinates only',
    endpoints: [{ point: BERLIN }, { point: TOKYO }, { isDefault: true }],
    expected: { [DE]: [0], [JP]: [1], [DE_ONLY]: [2], [NOWHERE]: [2] },
  },
  {
    name: 'a default with a location competes by distance',
    endpoints: [{ point: BERLIN }, { point: TOKYO, isDefault: true }],
    expected: { [DE]: [0], [JP]: [1], [DE_ONLY]: [1], [NOWHERE]: [1] },
  },
  {
    name: 'a code comes first, the distance decides inside its tier',
    endpoints: [
      { code: 'GEO-EU', point: BERLIN },
      { code: 'GEO-EU', point: PARIS },
      { code: 'GEO-NA', point: NEW_YORK },
      { code: '*', point: TOKYO },
    ],
    expected: { [DE]: [0], [FR]: [1], [DE_ONLY]: [0, 1], [US]: [2], [JP]: [3], [NOWHERE]: [3] },
  },
  {
    name: 'a code wins over a point that is nearer',
    endpoints: [{ code: 'DE', point: TOKYO }, { point: BERLIN }, { point: PARIS }],
    expected: { [DE]: [0], [DE_ONLY]: [0], [FR]: [2], [JP]: [1] },
  },
  {
    name: 'no code matches: the nearest of the whole set',
    endpoints: [
      { code: 'US', point: NEW_YORK },
      { code: 'DE', point: BERLIN },
    ],
    expected: { [FR]: [1], [US]: [0], [NOWHERE]: [0, 1] },
  },
  {
    name: 'an endpoint without a location serves clients without coordinates',
    endpoints: [{ point: BERLIN }, {}],
    expected: { [DE]: [0], [JP]: [0], [DE_ONLY]: [0, 1] },
  },
  {
    name: 'a point of standbys is passed over',
    endpoints: [
      { point: BERLIN, weight: 0 },
      { point: PARIS, weight: 5 },
      { point: TOKYO, weight: 1 },
    ],
    expected: { [DE]: [1], [JP]: [2] },
  },
  {
    name: 'standbys alone: the nearest one',
    endpoints: [
      { point: BERLIN, weight: 0 },
      { point: TOKYO, weight: 0 },
    ],
    expected: { [DE]: [0], [JP]: [1] },
  },
  {
    name: 'one point: it comes before its default',
    endpoints: [{ point: BERLIN }, { point: BERLIN, isDefault: true }],
    expected: { [DE]: [0, 1], [JP]: [0, 1], [DE_ONLY]: [1], [NOWHERE]: [1] },
  },
  {
    name: 'one point: all together',
    endpoints: [{ point: BERLIN }, { point: BERLIN }],
    expected: { [DE]: [0, 1], [JP]: [0, 1], [NOWHERE]: [0, 1] },
  },
]

/** What the publisher makes of these endpoints. */
function setsOf(endpoints: readonly Endpoint[]): PointSet[] {
  return [setOf(endpoints.flatMap(({ point: at }) => at ?? []))]
}

for (const { name, endpoints, expected } of LADDER) {
  t.test(name, async (t) => {
    const { table, errors } = tableOf(WORLD)
    const sets = setsOf(endpoints)
    const words = composeIn(table, candidatesOf(endpoints), sets)!
    await table.built()
    for (const [client, chosen] of Object.entries(expected)) {
      t.strictSame(choose(table, words, client).sort(), chosen, client)
    }
    t.strictSame(errors, [])
  })
}

t.test('nets with coordinates place clients without and with a database', async (t) => {
  const endpoints = [
    { point: BERLIN },
    { point: TOKYO },
    { code: 'US', point: NEW_YORK },
    { code: 'US', point: PARIS },
  ]
  const { table, errors } = tableOf(WORLD, [
    '192.168.0.0/16 40.71,-74.01',
    '192.168.1.0/24 NET-OFFICE 35.68,139.69',
    '192.168.2.0/24 AS64500',
    '192.168.3.0/24 JP',
    '10.1.2.0/24 35.00,135.00',
    '10.3.2.0/24 48.86,2.35',
    '10.4.2.0/24 US 41.00,-74.00',
    '2001:db8::/32 52.00,13.00',
  ])
  const words = composeIn(table, candidatesOf(endpoints), setsOf(endpoints))!
  await table.built()
  const expected: Readonly<Record<string, readonly number[]>> = {
    '192.168.9.1': [0],
    '192.168.1.1': [1],
    '192.168.2.1': [0],
    '192.168.3.1': [0, 1, 2, 3],
    [DE]: [0],
    '10.1.2.1': [1],
    [US]: [2],
    '10.3.2.1': [3],
    '10.4.2.1': [2],
    [DE_ONLY]: [0, 1, 2, 3],
  }
  for (const [client, chosen] of Object.entries(expected)) {
    t.strictSame(choose(table, words, client).sort(), chosen, client)
  }
  t.strictSame(errors, [])
})

t.test('weights draw between endpoints of one point', async (t) => {
  const { table } = tableOf(WORLD)
  const endpoints = [
    { point: BERLIN, weight: 30 },
    { point: BERLIN, weight: 10 },
    { point: TOKYO, weight: 500 },
  ]
  const words = composeIn(table, candidatesOf(endpoints), setsOf(endpoints))!
  await table.built()
  const counts = [0, 0, 0]
  for (let i = 0; i < 4000; i++) counts[choose(table, words, DE)[0]!]!++
  t.equal(counts[2], 0)
  t.ok(chiSquare(counts.slice(0, 2), [0.75, 0.25]) < CHI_SQUARE_AT_1_PERCENT[1]!, counts.join())
})

t.test('endpoints that cannot be chosen by distance are reported once', async (t) => {
  const endpoints = [{ point: BERLIN }, { point: TOKYO }]
  const warnings: string[] = []
  const onWarning = (reason: string): void => void warnings.push(reason)
  const options = { random: new Random(1), onError: () => {}, onWarning }
  const [dark, blind] = [new CityLocator({ '10.1.0.0/16': entry(undefined) }, []), undefined]
  for (const locator of [dark, blind]) {
    const table = new SteeringTable({ locator, ...options })
    for (let i = 0; i < 2; i++) {
      composeIn(table, candidatesOf(endpoints), setsOf(endpoints))
      await table.built()
    }
    composeIn(table, candidatesOf([{ point: BERLIN }]), [])
  }
  t.strictSame(warnings, [
    'no location database and no `net` line has coordinates',
    'the server block has no geoip',
  ])
})

t.test('restored policies order the points that they name', async (t) => {
  const endpoints = [{ point: BERLIN }, { point: TOKYO }, { isDefault: true }]
  const { table } = tableOf(WORLD)
  const words = composeIn(table, candidatesOf(endpoints), setsOf(endpoints))!
  const { table: other } = tableOf(WORLD)
  other.restore(table.policies)
  t.strictSame(choose(other, words, DE), [2], 'nothing is known yet: the default')
  await other.built()
  t.strictSame(choose(other, words, DE), [0])
  t.strictSame(choose(other, words, JP), [1])
})
