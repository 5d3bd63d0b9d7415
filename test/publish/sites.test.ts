import t from 'tap'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { recordId, type StoredRecord } from '../../src/records/record-source.ts'
import { added, type Given, zone } from './record-zone-stage.ts'

const X = 'x.k.example.com. A'
const HOST = 'k.example.com'
const AGES = ['2026-01-01T00:00:00Z', '2026-02-02T00:00:00Z'] as const

/** The records of each site, as the site `viewer` has them: its own without an origin. */
function seenBy(viewer: string, givens: readonly Given[]): Given[] {
  return givens.map(({ site, ...given }) => {
    return site === viewer || site === undefined ? given : { ...given, site }
  })
}

function serve(viewer: string, givens: readonly Given[]) {
  const served = zone({ site: viewer })
  served.records.apply(added(...seenBy(viewer, givens)))
  return served
}

/** The endpoints of a set that serve, as `set identifier: targets`. */
function endpoints({ sink }: ReturnType<typeof zone>, key: string): string[] {
  const set = sink.sets.get(key)!
  const served = set.endpoints.filter(({ candidates }) => candidates.length > 0)
  return served.map(({ endpoint: { setIdentifier, rdata } }) => {
    return `${setIdentifier}: ${rdata.map((one) => printRdata(set.type, one)).join()}`
  })
}

interface Case {
  readonly name: string
  /** All with a site. */
  readonly given: readonly Given[]
  /** Endpoints of `x A`; undefined = the set is missing. */
  readonly want: readonly string[] | undefined
  readonly ttl?: number
  /** What each site reports; `PLACE(SITE, NAME)` is what the site names a record. */
  readonly conflicts?: (place: (site: string, name: string) => string) => readonly string[]
}

const CASES: readonly Case[] = [
  {
    name: 'one set identifier at two sites is two endpoints',
    given: [
      { site: 'a', name: 'r', endpoints: ['x.k.example.com A 192.0.2.1 id=eu weight=20'] },
      { site: 'b', name: 's', endpoints: ['x.k.example.com A 192.0.2.2 id=eu weight=80'] },
    ],
    want: ['eu: 192.0.2.1', 'eu: 192.0.2.2'],
  },
  {
    name: 'at one site it is a conflict, which the age decides',
    given: [
      { site: 'a', name: 'r', created: AGES[1], endpoints: ['x.k.example.com A 192.0.2.1 id=eu'] },
      { site: 'a', name: 's', created: AGES[0], endpoints: ['x.k.example.com A 192.0.2.2 id=eu'] },
      { site: 'b', name: 't', created: AGES[1], endpoints: ['x.k.example.com A 192.0.2.3 id=eu'] },
    ],
    want: ['eu: 192.0.2.2', 'eu: 192.0.2.3'],
    conflicts: (place) => {
      const at = place('a', 's')
      const both = at.startsWith('a:') ? ` and 192.0.2.1 (${at}, and another one)` : ''
      const values = both === '' ? ` (n/s) and 192.0.2.1 (n/r)` : both
      return [
        `${X}: set identifier "eu" with targets 192.0.2.2${values}: the first is served, because an identifier names one endpoint; give each endpoint its own identifier`,
      ]
    },
  },
  {
    name: 'a contradicted endpoint is not served for another site either',
    given: [
      { site: 'a', name: 'r', created: AGES[0], endpoints: ['x.k.example.com A 192.0.2.1 id=eu'] },
      { site: 'b', name: 's', created: AGES[1], endpoints: ['x.k.example.com A 192.0.2.1 id=eu'] },
    ],
    want: ['eu: 192.0.2.1'],
  },
  {
    name: 'endpoints without identifier, weight and code are one',
    given: [
      { site: 'a', name: 'r', endpoints: ['x.k.example.com A 192.0.2.1'] },
      { site: 'b', name: 's', endpoints: ['x.k.example.com A 192.0.2.1,192.0.2.2'] },
    ],
    want: [': 192.0.2.1', ': 192.0.2.1,192.0.2.2'],
  },
  {
    name: 'the lowest TTL of all sites is served',
    given: [
      { site: 'b', name: 'r', created: AGES[1], endpoints: ['x.k.example.com A 192.0.2.1 ttl=30'] },
      { site: 'a', name: 's', created: AGES[0], endpoints: ['x.k.example.com A 192.0.2.2 ttl=60'] },
    ],
    want: [': 192.0.2.2', ': 192.0.2.1'],
    ttl: 30,
    conflicts: (place) => [
      `${X}: TTL 60 (${place('a', 's')}) and 30 (${place('b', 'r')}): 30 is served; set the same TTL for both`,
    ],
  },
  {
    name: 'with endpoints of several sites, a TTL is at least five seconds',
    given: [
      { site: 'a', name: 'r', endpoints: ['x.k.example.com A 192.0.2.1 ttl=1'] },
      { site: 'b', name: 's', endpoints: ['x.k.example.com A 192.0.2.2 ttl=5'] },
    ],
    want: [': 192.0.2.1', ': 192.0.2.2'],
    ttl: 5,
    conflicts: (place) => [
      `${X}: TTL 1 (${place('a', 'r')}) counts as 5, the lowest for endpoints of several sites; set a TTL of at least 5`,
    ],
  },
  {
    name: 'of equal age, the site decides between CNAME and other types',
    given: [
      { site: 'b', name: 'r', endpoints: ['x.k.example.com CNAME y.example.org'] },
      { site: 'a', name: 's', endpoints: ['x.k.example.com A 192.0.2.2'] },
    ],
    want: [': 192.0.2.2'],
    conflicts: (place) => [
      `x.k.example.com.: CNAME (${place('b', 'r')}) beside A (${place('a', 's')}): the CNAME is not served, because a CNAME must be alone; delete one of them`,
    ],
  },
  {
    name: 'of equal age and site, the id decides, which all sites know',
    given: ['r', 's'].map((name, i) => ({
      ...{ site: 'a', name },
      endpoints: [`x.k.example.com ${i === 0 ? 'CNAME y.example.org' : 'A 192.0.2.2'}`],
    })),
    // The other way round than by name.
    want: recordId('n/s') < recordId('n/r') ? [': 192.0.2.2'] : undefined,
    conflicts: (place) => {
      const one = place('a', 'r')
      const values = one.startsWith('a:')
        ? `CNAME beside A (${one}, and another one)`
        : 'CNAME (n/r) beside A (n/s)'
      return [
        `x.k.example.com.: ${values}: the CNAME is not served, because a CNAME must be alone; delete one of them`,
      ]
    },
  },
]

t.test('sites that have the records of all serve the same, and report the same', async (t) => {
  for (const { name, given, want, ttl, conflicts } of CASES) {
    for (const viewer of ['a', 'b', 'c']) {
      for (const order of [given, [...given].reverse()]) {
        const served = serve(viewer, order)
        const at = `${name}, at ${viewer}`
        if (want === undefined) t.notOk(served.sink.sets.has(X), at)
        else t.strictSame(endpoints(served, X), want, at)
        if (ttl !== undefined) t.equal(served.sink.sets.get(X)?.ttlSeconds, ttl, at)
        const place = (site: string, record: string): string => {
          return site === viewer ? `n/${record}` : `${site}: record of ${HOST}`
        }
        const texts = served.records.conflicts.all().map(({ text }) => text)
        t.strictSame(texts, conflicts?.(place) ?? [], at)
      }
    }
  }
})

t.test('a record that changes its origin is in its new place', async (t) => {
  const { records, sink } = zone({ site: 'b' })
  const [ours, theirs] = added(
    { name: 'r', endpoints: ['x.k.example.com A 192.0.2.1 id=eu ttl=1'] },
    { name: 's', site: 'a', endpoints: ['x.k.example.com A 192.0.2.2 id=eu ttl=1'] },
  )
  records.apply([ours!, theirs!])
  const { packed, key } = theirs!.after!
  const moved: StoredRecord = { key, packed, origin: { site: 'b', id: '0' } }
  records.apply([{ before: theirs!.after, after: moved }])
  t.strictSame(sink.targets(X), ['192.0.2.2'], 'one site, so they contradict each other')
  t.equal(sink.sets.get(X)!.ttlSeconds, 1)
})

/** A and AAAA endpoints of two sites with one set identifier, and one of the first site alone. */
const NAMESAKES: readonly Given[] = [1, 2].map((i) => ({
  site: `s${i}`,
  name: `r${i}`,
  endpoints: [
    `x.k.example.com A 192.0.2.${i} id=eu weight=1`,
    `x.k.example.com AAAA 2001:db8::${i} id=eu weight=1`,
    ...(i === 1 ? ['x.k.example.com A 192.0.2.9 id=us weight=1'] : []),
  ],
}))
const annotated = (annotations: { readonly [key: string]: string }): readonly Given[] => {
  return NAMESAKES.map((given) => ({ ...given, annotations }))
}

t.test('sticky choices tell namesakes apart, by site in A and AAAA alike', async (t) => {
  const seeds = ['s1', 's2', 's3'].map((viewer) => {
    const { sink } = serve(viewer, annotated({ 'sextant.io/sticky': 'true' }))
    const [a, aaaa] = [X, `${X}AAA`].map((key) => {
      return sink.sets.get(key)!.candidates.map(({ seed }) => seed!.join())
    })
    t.strictSame([a![0], a![2]], aaaa, 'A and AAAA')
    t.equal(new Set(a).size, 3)
    return a
  })
  t.strictSame(seeds[1], seeds[0])
  t.strictSame(seeds[2], seeds[0])
  const alone = serve('s1', annotated({ 'sextant.io/sticky': 'true' }).slice(0, 1))
  const [eu, us] = alone.sink.sets.get(X)!.candidates.map(({ seed }) => seed!.join())
  t.not(eu, seeds[0]![0])
  t.equal(us, seeds[0]![1], 'an identifier of one site is the identity')
})

t.test('the site is not part of the identity of endpoints that are equal everywhere', async (t) => {
  const same = (site: string): Given => ({
    ...{ site, name: 'r', annotations: { 'sextant.io/sticky': 'true' } },
    endpoints: ['x.k.example.com A 192.0.2.1 id=eu weight=1'],
  })
  const seedsOf = (...givens: Given[]) => {
    const set = serve('a', givens).sink.sets.get(X)!
    return set.candidates.map(({ seed }) => seed!.join())
  }
  t.strictSame(seedsOf(same('a'), same('b')), seedsOf(same('b')))
})

t.test('a setting that names a set identifier means all endpoints that have it', async (t) => {
  const down = { 'n/r1': ['192.0.2.1', '192.0.2.9'], 'peers/r2@s2': ['192.0.2.2'] }
  const policy = annotated({ 'sextant.io/all-down': 'eu', 'sextant.io/sticky': 'true' })
  const table: readonly {
    readonly name: string
    readonly given: readonly Given[]
    readonly down?: { readonly [key: string]: readonly string[] }
    readonly drains?: readonly string[]
    readonly want: readonly string[]
  }[] = [
    { name: 'all-down', given: policy, down, want: ['eu: 192.0.2.1', 'eu: 192.0.2.2'] },
    {
      name: 'all-down, one of them drained',
      given: policy,
      down,
      drains: ['address:192.0.2.1'],
      want: ['eu: 192.0.2.2'],
    },
    {
      name: 'all-down of a failover list',
      given: annotated({
        'sextant.io/all-down': 'eu',
        'sextant.io/sticky': 'true',
        'sextant.io/failover': '*: us',
      }),
      down,
      want: ['eu: 192.0.2.1', 'eu: 192.0.2.2'],
    },
  ]
  for (const { name, given, down = {}, drains = [], want } of table) {
    const served = zone({ site: 's1' })
    for (const [key, addresses] of Object.entries(down)) served.health.put(key, addresses)
    served.health.drains = drains
    served.records.apply(added(...seenBy('s1', given)))
    t.strictSame(endpoints(served, X), want, name)
  }
})
