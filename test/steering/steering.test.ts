import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { FlatClassTrie } from '../../src/geo/class-trie.ts'
import { buildClasses } from '../../src/geo/classes/build-classes.ts'
import { scanGeoCode } from '../../src/geo/code.ts'
import { UNKNOWN_LOCATION } from '../../src/geo/location.ts'
import type { Locator } from '../../src/geo/locator.ts'
import { type Net, scanNet } from '../../src/geo/net.ts'
import type { Candidate } from '../../src/steering/candidate.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { Choice } from '../../src/zone/image/types.ts'
import { CHI_SQUARE_AT_1_PERCENT, chiSquare } from '../support/chi-square.ts'

/**
 * Clients of the ladder, each at its own network. `bottom` is at no place; the others add one rung
 * each, so that what is known of `top` is everything.
 */
const CLIENTS = {
  nowhere: '10.9.0.1',
  continent: '10.1.0.1',
  country: '10.2.0.1',
  subdivision: '10.3.0.1',
  asn: '10.4.0.1',
  net: '10.5.0.1',
} as const
type Client = keyof typeof CLIENTS

const NETS = [
  ...['10.1.0.0/16 GEO-NA', '10.2.0.0/16 US', '10.3.0.0/16 US-CA'],
  ...['10.4.0.0/16 US-CA', '10.4.0.0/16 AS64500'],
  ...['10.5.0.0/16 US-CA', '10.5.0.0/16 AS64500', '10.5.0.0/16 NET-OFFICE'],
].map((line) => scanNet(...(line.split(' ') as [string, string])) as Net)

/** A locator of nets alone; with `isSlow` its work ends when the test says so. */
class NetLocator implements Locator {
  classified = 0
  isSlow = false
  readonly pending: (() => void)[] = []
  failure: Error | undefined
  #listener: () => void = () => {}

  locate() {
    return UNKNOWN_LOCATION
  }
  field() {
    return ''
  }
  async classify(codes: Parameters<Locator['classify']>[0]) {
    if (this.isSlow) await new Promise<void>((resolve) => this.pending.push(resolve))
    if (this.failure !== undefined) throw this.failure
    this.classified++
    return new FlatClassTrie(buildClasses({ databases: [], nets: NETS, codes }))
  }
  onChange(callback: () => void) {
    this.#listener = callback
    return () => {
      this.#listener = () => {}
    }
  }
  change(): void {
    this.#listener()
  }
}

function createTable(locator: Locator | undefined = new NetLocator(), seed = 1) {
  const errors: string[] = []
  const random = new Random(seed)
  const table = new SteeringTable({ locator, random, onError: (reason) => errors.push(reason) })
  return { table, errors }
}

interface Endpoint {
  readonly code?: string
  readonly isDefault?: boolean
  readonly weight?: number
  readonly ttl?: number
  readonly rdata?: readonly number[]
}

function candidates(endpoints: readonly Endpoint[]): Candidate[] {
  return endpoints.map((endpoint, i) => ({
    code: endpoint.code === undefined ? undefined : scanGeoCode(endpoint.code)!,
    isDefault: endpoint.isDefault === true,
    weight: endpoint.weight,
    ttlSeconds: endpoint.ttl ?? 60,
    rdataIndexes: endpoint.rdata ?? [i],
  }))
}

const query = new Query()
const response = new Response()
const choice = new Choice()

function choose(table: SteeringTable, words: Uint32Array, from: string, ecs = false) {
  const { bytes, family } = scanAddress(from)!
  query.clientAddress.set(bytes)
  query.clientFamily = family
  query.clientBits = bytes.length * 8
  query.clientIsEcs = ecs
  response.reset(query)
  steererOf(table).choose(query, response, arenaOf(words), ARENA_OFFSET, choice)
  // A cache must not give the choice to other clients.
  if (!response.isSteered) throw new Error('the response is not marked as steered')
  return [...choice.index.subarray(0, choice.count)]
}

/** Words lie somewhere in an arena. */
const ARENA_OFFSET = 3
const arenas = new WeakMap<Uint32Array, Uint32Array>()
function arenaOf(words: Uint32Array): Uint32Array {
  const arena = arenas.get(words) ?? new Uint32Array(words.length + ARENA_OFFSET).fill(7)
  if (!arenas.has(words)) arena.set(words, ARENA_OFFSET)
  arenas.set(words, arena)
  return arena
}

const steerers = new WeakMap<SteeringTable, ReturnType<SteeringTable['steerer']>>()
function steererOf(table: SteeringTable) {
  const steerer = steerers.get(table) ?? table.steerer()
  steerers.set(table, steerer)
  return steerer
}

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

t.test('what has nothing to choose is not steered', async (t) => {
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

t.test('without a locator everybody is nowhere', async (t) => {
  const random = new Random(1)
  const table = new SteeringTable({ locator: undefined, random, onError: t.fail })
  const words = table.compose(candidates([{ code: 'US' }, { code: '*' }]), RRType.A)!
  t.equal(table.built(), undefined)
  t.same(choose(table, words, CLIENTS.country, true), [1])
  t.equal(response.scopeBits, 0)
})

t.test('a new code is built in the background while queries go by the old trie', async (t) => {
  const locator = new NetLocator()
  const { table, errors } = createTable(locator)
  const first = table.compose(candidates([{ code: 'GEO-NA' }, { code: '*' }]), RRType.A)!
  await table.built()
  t.equal(locator.classified, 1)
  locator.isSlow = true
  const second = table.compose(candidates([{ code: 'US' }, { code: '*' }]), RRType.A)!
  table.refresh()
  t.same(choose(table, second, CLIENTS.country), [1], 'not known yet: the default')
  t.same(choose(table, first, CLIENTS.country), [0], 'the old one goes on')
  table.compose(candidates([{ code: 'US-CA' }, { code: '*' }]), RRType.A)
  table.refresh()
  t.equal(locator.pending.length, 1, 'one rebuild at a time')
  locator.pending.shift()!()
  await until(() => locator.pending.length === 1)
  t.same(choose(table, second, CLIENTS.country), [0], 'now it is known')
  locator.pending.shift()!()
  await table.settled()
  t.equal(locator.classified, 3, 'and what came meanwhile is built as well')
  table.refresh()
  t.equal(locator.pending.length, 0, 'nothing new, nothing to do')
  locator.change()
  t.equal(locator.pending.length, 1, 'a changed database is a reason')
  locator.failure = new Error('corrupt')
  locator.pending.shift()!()
  await table.settled()
  t.same(errors, ['corrupt'], 'a failure is told')
  t.same(choose(table, second, CLIENTS.country), [0], 'and the old trie stays')
  table.close()
  locator.change()
  t.equal(locator.pending.length, 0, 'closed')
})

t.test('a forgotten refresh happens by itself', async (t) => {
  const locator = new NetLocator()
  const { table } = createTable(locator)
  const words = table.compose(candidates([{ code: 'US' }, { code: '*' }]), RRType.A)!
  t.equal(locator.classified, 0)
  await Promise.resolve()
  t.equal(locator.classified, 1)
  await table.settled()
  t.same(choose(table, words, CLIENTS.country), [0])
})

t.test('whoever waits is told once the codes composed by then are known', async (t) => {
  const locator = new NetLocator()
  locator.isSlow = true
  const told: number[] = []
  const random = new Random(1)
  const table = new SteeringTable({
    locator,
    random,
    onError: () => {},
    onSnapshot: (snapshot) => told.push(snapshot.trie.classCount),
  })
  const codes = (...texts: string[]) =>
    candidates([...texts.map((code) => ({ code })), { code: '*' }])
  t.equal(table.built(), undefined, 'no code, nothing to build')
  table.compose(codes('GEO-NA'), RRType.A)
  const events: string[] = []
  const wait = (name: string): void => {
    const built = table.built()
    if (built === undefined) events.push(`${name} at once`)
    else
      void built.then(
        () => events.push(name),
        (error: Error) => events.push(error.message),
      )
  }
  wait('first')
  table.compose(codes('GEO-NA', 'US'), RRType.A)
  wait('second')
  t.strictSame(told, [1], 'no policy without its classes')
  locator.pending.shift()!()
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  await settle()
  t.strictSame(events, ['first'], 'one more rebuild for the second')
  t.equal(told.at(-1), 2)
  locator.pending.shift()!()
  await settle()
  t.strictSame(events, ['first', 'second'])
  t.equal(told.at(-1), 3, 'other threads were told before')
  wait('third')
  locator.change()
  wait('fourth')
  t.strictSame(events.slice(2), ['third at once', 'fourth at once'], 'all codes are known')
  locator.failure = new Error('corrupt')
  table.compose(codes('AS64500'), RRType.A)
  wait('fifth')
  while (locator.pending.length > 0) {
    locator.pending.shift()!()
    await settle()
  }
  t.equal(events.at(-1), 'corrupt')
  table.close()
  table.compose(codes('US-CA'), RRType.A)
  const before = events.length
  wait('last')
  await settle()
  t.equal(events.length, before + 1, 'nobody waits for a table that is closed')
})

t.test('many policies keep their own tiers', async (t) => {
  const { table } = createTable()
  const codes = ['US', 'US-CA', 'GEO-NA', 'AS64500', 'NET-OFFICE']
  const sets = Array.from({ length: 31 }, (_, i) => {
    const present = codes.filter((_, bit) => ((i + 1) >> bit) & 1)
    const endpoints = [...present.map((code) => ({ code })), { code: '*' }]
    return { present, words: table.compose(candidates(endpoints), RRType.A)! }
  })
  await table.built()
  for (const { present, words } of sets) {
    const want = present.includes('US') ? present.indexOf('US') : present.indexOf('GEO-NA')
    const found = choose(table, words, CLIENTS.country)
    t.same(found, [want === -1 ? present.length : want], present.join())
  }
})

/** Lets promises settle until `done`, at most a thousand times. */
async function until(done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1000 && !done(); turn++) await Promise.resolve()
}
