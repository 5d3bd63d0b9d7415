import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { CHI_SQUARE_AT_1_PERCENT, chiSquare } from '../support/chi-square.ts'
import {
  CLIENTS,
  candidates,
  choice,
  choose,
  createTable,
  type Endpoint,
  response,
} from './stage.ts'

type Client = keyof typeof CLIENTS

/** Every set of rungs that a set of endpoints can have, and every client: which rung must win. */
const RUNG_CODES = {
  net: 'NET-OFFICE',
  asn: 'AS64500',
  subdivision: 'US-CA',
  country: 'US',
  continent: 'GEO-NA',
} as const
type Rung = keyof typeof RUNG_CODES
const RUNGS = Object.keys(RUNG_CODES) as Rung[]

/** Rungs that a client matches, most specific first. */
const MATCHES: Readonly<Record<Client, readonly Rung[]>> = {
  nowhere: [],
  continent: ['continent'],
  country: ['country', 'continent'],
  subdivision: ['subdivision', 'country', 'continent'],
  asn: ['asn', 'subdivision', 'country', 'continent'],
  net: ['net', 'asn', 'subdivision', 'country', 'continent'],
}

t.test(
  'every client gets the most specific rung that matches, else the default, else all',
  async (t) => {
    let cases = 0
    for (let subset = 1; subset < 1 << RUNGS.length; subset++) {
      const present = RUNGS.filter((_, i) => (subset >> i) & 1)
      const endpoints: Endpoint[] = present.map((rung) => ({ code: RUNG_CODES[rung] }))
      for (const withDefault of [true, false]) {
        const set = candidates(withDefault ? [...endpoints, { code: '*' }] : endpoints)
        const { table } = createTable()
        const words = table.compose(set, RRType.A)!
        await table.built()
        for (const client of Object.keys(CLIENTS) as Client[]) {
          const rung = MATCHES[client].find((match) => present.includes(match))
          const fallback = withDefault ? [present.length] : present.map((_, i) => i)
          const want = rung === undefined ? fallback : [present.indexOf(rung)]
          const found = choose(table, words, CLIENTS[client])
          t.same(found, want, `${client} among ${present}${withDefault ? ' and a default' : ''}`)
          cases++
        }
      }
    }
    t.ok(cases >= 200, `${cases} cases`)
  },
)

t.test('tiers hold what the rules say', async (t) => {
  const us: Endpoint = { code: 'US', rdata: [0] }
  const usDefault: Endpoint = { code: 'US', rdata: [0], isDefault: true }
  const eu: Endpoint = { code: 'GEO-EU', rdata: [1] }
  const bare: Endpoint = { rdata: [2] }
  const table: {
    name: string
    given: Endpoint[]
    from?: Client
    type?: number
    want: number[]
    ttl?: number
  }[] = [
    {
      name: 'a default is also in the tier of its code',
      given: [usDefault, eu],
      from: 'country',
      want: [0],
    },
    {
      name: 'a default serves who matches nothing',
      given: [usDefault, eu],
      from: 'nowhere',
      want: [0],
    },
    {
      name: 'two defaults are one tier',
      given: [usDefault, { ...eu, isDefault: true }],
      want: [0, 1],
    },
    { name: 'without a default the whole set is left', given: [us, eu, bare], want: [0, 1, 2] },
    {
      name: 'one without a code is in no other tier',
      given: [us, bare],
      from: 'country',
      want: [0],
    },
    {
      name: 'a default alone is served to all',
      given: [{ code: '*', rdata: [0] }, bare],
      want: [0],
    },
    {
      name: 'an endpoint of two codes counts once',
      given: [us, { ...us, code: 'GEO-NA' }],
      want: [0],
    },
    {
      name: 'all targets of a candidate go out',
      given: [{ code: 'US', rdata: [3, 4] }, eu],
      from: 'country',
      want: [3, 4],
    },
    {
      name: 'a shared target goes out once',
      given: [
        { ...us, rdata: [0, 1] },
        { ...eu, rdata: [1] },
      ],
      want: [0, 1],
    },
    {
      name: 'one TTL for a united tier: the shortest',
      given: [
        { ...us, ttl: 300 },
        { ...eu, ttl: 30 },
      ],
      want: [0, 1],
      ttl: 30,
    },
    {
      name: 'the TTL is that of the candidate',
      given: [
        { ...us, ttl: 300 },
        { ...eu, ttl: 30 },
      ],
      from: 'country',
      want: [0],
      ttl: 300,
    },
    {
      name: 'a CNAME has one target',
      given: [{ code: 'US', rdata: [5, 6] }, eu],
      type: RRType.CNAME,
      from: 'country',
      want: [5],
    },
    {
      name: 'a zero weight is a standby',
      given: [
        { weight: 0, rdata: [0] },
        { weight: 1, rdata: [1] },
      ],
      want: [1],
    },
    {
      name: 'a tier of standbys is passed over for the next one of the ladder',
      given: [
        { ...us, weight: 0 },
        { code: 'GEO-NA', weight: 1 },
        { ...eu, weight: 1, rdata: [2] },
      ],
      from: 'country',
      want: [1],
    },
    {
      name: 'also if the next one has no weights',
      given: [{ ...us, weight: 0 }, { isDefault: true }],
      from: 'country',
      want: [1],
    },
    {
      name: 'several tiers of standbys are passed over',
      given: [
        { ...us, weight: 0 },
        { code: 'GEO-NA', weight: 0 },
        { isDefault: true, weight: 0 },
        { ...eu, weight: 1, rdata: [3] },
      ],
      from: 'country',
      want: [3],
    },
    {
      name: 'a tier of standbys is used if there is nothing else',
      given: [
        { ...us, weight: 0 },
        { isDefault: true, weight: 0 },
      ],
      from: 'country',
      want: [0],
    },
    {
      name: 'CNAMEs too',
      given: [
        { ...us, weight: 0 },
        { isDefault: true, weight: 1 },
      ],
      type: RRType.CNAME,
      from: 'country',
      want: [1],
    },
    { name: 'a standby serves alone', given: [{ weight: 0, rdata: [0] }], want: [0] },
    { name: 'the largest weight', given: [{ weight: 1_000_000, rdata: [4] }], want: [4] },
    {
      name: 'TXT is served whole like addresses',
      given: [us, { ...us, rdata: [7] }],
      type: RRType.TXT,
      from: 'country',
      want: [0, 7],
    },
  ]
  for (const { name, given, from = 'nowhere', type = RRType.A, want, ttl } of table) {
    const { table: steering } = createTable()
    const words = steering.compose(candidates(given), type)!
    await steering.built()
    for (let draw = 0; draw < 20; draw++) {
      t.same(choose(steering, words, CLIENTS[from]), want, name)
      if (ttl !== undefined) t.equal(choice.ttlSeconds, ttl, name)
    }
  }
})

t.test('a set without a choice is not steered', async (t) => {
  const { table } = createTable()
  t.equal(table.compose(candidates([{}, {}]), RRType.A), undefined)
  t.equal(table.compose(candidates([{}]), RRType.CNAME), undefined)
  t.not(table.compose(candidates([{}, {}]), RRType.CNAME), undefined, 'two CNAMEs are a choice')
})

t.test('weights are shares of the draws (χ², p > 0.01)', async (t) => {
  const cname = RRType.CNAME
  const table: { name: string; weights: (number | undefined)[]; shares: number[]; type: number }[] =
    [
      { name: '120, 60, 20', weights: [120, 60, 20], shares: [0.6, 0.3, 0.1], type: RRType.A },
      {
        name: 'a missing weight is 120',
        weights: [undefined, 60, 20],
        shares: [0.6, 0.3, 0.1],
        type: RRType.A,
      },
      {
        name: 'all zero is equal',
        weights: [0, 0, 0],
        shares: [1 / 3, 1 / 3, 1 / 3],
        type: RRType.A,
      },
      {
        name: 'CNAMEs of the targets of',
        weights: [undefined, undefined],
        shares: [0.5, 0.5],
        type: cname,
      },
      { name: 'weighted CNAMEs', weights: [200, 100], shares: [2 / 3, 1 / 3], type: cname },
      {
        name: 'absurd weights',
        weights: [1_000_000, 1_000_000, 1],
        shares: [0.5, 0.5],
        type: RRType.A,
      },
    ]
  for (const { name, weights, shares, type } of table) {
    const { table: steering } = createTable(undefined, 20261121)
    const endpoints = weights.map((weight) => (weight === undefined ? {} : { weight }))
    const words = steering.compose(candidates(endpoints), type)!
    const counts = weights.map(() => 0)
    for (let draw = 0; draw < 100_000; draw++) {
      const [index] = choose(steering, words, CLIENTS.nowhere)
      counts[index!] = counts[index!]! + 1
    }
    const measured = chiSquare(counts.slice(0, shares.length), shares)
    t.ok(
      measured < CHI_SQUARE_AT_1_PERCENT[shares.length - 1]!,
      `${name}: ${counts}, χ² ${measured}`,
    )
  }
})

t.test('a set of 4096 candidates is drawn from whole', async (t) => {
  const { table } = createTable()
  const set = Array.from({ length: 4096 }, () => ({ weight: 1_000_000 }))
  const words = table.compose(candidates(set), RRType.A)!
  const seen = new Set<number>()
  for (let draw = 0; draw < 60_000; draw++) seen.add(choose(table, words, CLIENTS.nowhere)[0]!)
  t.ok(seen.size > 4090, `${seen.size} of 4096 came up`)
})

t.test('the scope is raised by a decision on the ECS address only', async (t) => {
  const { table } = createTable()
  const geo = table.compose(candidates([{ code: 'GEO-NA' }, { code: '*' }]), RRType.A)!
  const weighted = table.compose(candidates([{ weight: 1 }, { weight: 2 }]), RRType.A)!
  const defaults = table.compose(candidates([{ code: '*' }, {}]), RRType.A)!
  await table.built()
  choose(table, geo, CLIENTS.continent, true)
  t.equal(response.scopeBits, 16)
  choose(table, geo, CLIENTS.continent, false)
  t.equal(response.scopeBits, 0, 'by source address')
  choose(table, weighted, CLIENTS.continent, true)
  t.equal(response.scopeBits, 0, 'by weight alone')
  choose(table, defaults, CLIENTS.continent, true)
  t.equal(response.scopeBits, 0, 'where place makes no difference')
})

t.test('without a locator no client has a location', async (t) => {
  const random = new Random(1)
  const table = new SteeringTable({ locator: undefined, random, onError: t.fail })
  const words = table.compose(candidates([{ code: 'US' }, { code: '*' }]), RRType.A)!
  t.equal(table.built(), undefined)
  t.same(choose(table, words, CLIENTS.country, true), [1])
  t.equal(response.scopeBits, 0)
})
