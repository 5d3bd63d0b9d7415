import fc from 'fast-check'
import t from 'tap'
import { dropDown } from '../../../src/peering/merge/health.ts'
import { joinSiteStates } from '../../../src/peering/merge/join-site-states.ts'
import type { Merge } from '../../../src/peering/merge/merge-site-states.ts'
import type { MergedEndpoint } from '../../../src/peering/merge/merged-endpoint.ts'
import type { PeerEndpoint, SiteState } from '../../../src/peering/peer-endpoint.ts'
import { endpoints, HOST, mergeReported, share, shared, shares } from '../samples.ts'

const RUNS = { seed: 4, numRuns: 300 }
const SILENT_MS = 10

function merge(
  given: readonly SiteState[],
  { own = [] }: { own?: readonly Partial<PeerEndpoint>[] } = {},
): Merge {
  const endpoints = own.map((e) => shared({ ...e, site: 'm' }))
  return mergeReported({ endpoints }, given, SILENT_MS)
}

/** `name TYPE ttl targets [set] [w=] [geo] [default] [down]`, what is usual left out. */
function print(e: MergedEndpoint): string {
  const words = [e.dnsName, e.recordType, String(e.ttlSeconds), e.targets.join()]
  if (e.setIdentifier !== '') words.push(`[${e.setIdentifier}]`)
  if (e.weight !== undefined) words.push(`w=${e.weight}`)
  if (e.geoCodes.length > 0) words.push(e.geoCodes.join())
  if (e.isDefault) words.push('default')
  if (e.health !== 'unknown') words.push(e.health)
  return words.join(' ')
}

const lines = (merged: Merge): string[] => merged.endpoints.map(print)
const texts = (merged: Merge): string[] => merged.conflicts.map((c) => c.text)

const join = (...sets: readonly (readonly SiteState[])[]) => joinSiteStates(sets.flat())

t.test('joining sets of shares is commutative, associative and idempotent', async (t) => {
  const property = fc.property(shares, shares, shares, (a, b, c) => {
    t.strictSame(join(a, b), join(b, a))
    t.strictSame(join(join(a, b), c), join(a, join(b, c)))
    t.strictSame(join(join(a, b), a), join(a, b))
    t.strictSame(join(a, a), join(a))
  })
  fc.assert(property, { ...RUNS, numRuns: 100 })
})

t.test('a merge does not depend on order, repetition, or older news', async (t) => {
  const property = fc.property(shares, shares, (a, b) => {
    const want = merge([...a, ...b])
    t.strictSame(merge([...b, ...a]), want)
    t.strictSame(merge([...a, ...b, ...a]), want)
    t.strictSame(merge(join(a, b)), want)
  })
  fc.assert(property, { ...RUNS, numRuns: 100 })
})

t.test('the order of endpoints inside of a share does not matter', async (t) => {
  const property = fc.property(fc.array(endpoints, { maxLength: 8 }), (reported) => {
    const of = (list: readonly PeerEndpoint[]) => merge([{ ...share('a', []), endpoints: list }])
    const mine = reported.map((e) => ({ ...e, site: 'a' }))
    t.strictSame(of([...mine].reverse()), of(mine))
  })
  fc.assert(property, RUNS)
})

/** What a resolver gets from the host on: `name TYPE` of every set with an answer. */
function answered(merged: Merge): Set<string> {
  const found = new Set<string>()
  const waiting = [HOST, `*.${HOST}`]
  const seen = new Set<string>()
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue
    seen.add(name)
    for (const e of merged.endpoints.filter((e) => e.dnsName === name)) {
      found.add(`${name} ${e.recordType}`)
      if (e.recordType === 'CNAME') waiting.push(...e.targets)
    }
  }
  return found
}

t.test('a dead site takes nothing from others', async (t) => {
  const property = fc.property(shares, fc.array(endpoints, { maxLength: 6 }), (given, reported) => {
    const live = {
      ...share('z', []),
      endpoints: reported.map((e) => ({ ...e, site: 'z' })),
      seenMs: 1000,
    }
    const isUp = reported.every(({ health }) => health !== 'down')
    fc.pre(isUp)
    const dead = given.map((siteState) => {
      const endpoints = siteState.endpoints.map((e) => ({ ...e, health: 'down' as const }))
      return { ...siteState, endpoints }
    })
    const alone = merge([live])
    const among = merge([...dead, live])
    const has = new Set(answered(among))
    for (const set of answered(alone)) t.ok(has.has(set), set)
    for (const e of alone.endpoints) {
      const kept = among.endpoints.filter(
        (k) => k.dnsName === e.dnsName && k.recordType === e.recordType,
      )
      for (const target of e.targets) {
        t.ok(
          kept.some((k) => k.targets.includes(target)),
          `${e.dnsName} ${target}`,
        )
      }
    }
  })
  fc.assert(property, RUNS)
})

t.test('no health takes the last endpoint of a set away', async (t) => {
  const property = fc.property(shares, (given) => {
    const { endpoints: all } = merge(given)
    const served = dropDown(all)
    const setsOf = (list: readonly MergedEndpoint[]) =>
      [...new Set(list.map((e) => `${e.dnsName} ${e.recordType}`))].sort()
    t.strictSame(setsOf(served), setsOf(all))
  })
  fc.assert(property, RUNS)
})

t.test('endpoints that several sites report are one', async (t) => {
  const merged = merge([share('b', [{ ttlSeconds: 30 }]), share('a', [{}])])
  t.strictSame(lines(merged), ['k.example.com A 30 192.0.2.1'])
  t.strictSame(merged.endpoints[0]!.sites, ['a', 'b'])
  t.strictSame(merged.conflicts, [])
})

t.test('plain addresses of all sites are united', async (t) => {
  const merged = merge([share('b', [{ targets: ['192.0.2.2'] }])], {
    own: [{ targets: ['192.0.2.9', '192.0.2.1'] }],
  })
  t.strictSame(lines(merged), ['k.example.com A 60 192.0.2.1,192.0.2.2,192.0.2.9'])
})

t.test('steered endpoints stay apart', async (t) => {
  const merged = merge([
    share('a', [{ weight: 100, targets: ['192.0.2.1'] }]),
    share('b', [{ weight: 200, targets: ['192.0.2.2'] }]),
    share('c', [{ geoCodes: ['DE'], targets: ['192.0.2.3'] }]),
  ])
  t.strictSame(lines(merged), [
    'k.example.com A 60 192.0.2.1 w=100',
    'k.example.com A 60 192.0.2.2 w=200',
    'k.example.com A 60 192.0.2.3 DE',
  ])
})

t.test('the first site decides on a set identifier with different content', async (t) => {
  const merged = merge([
    share('b', [{ setIdentifier: 'x\n', weight: 2 }]),
    share('a', [{ setIdentifier: 'x\n', weight: 1 }]),
  ])
  t.strictSame(lines(merged), ['k.example.com A 60 192.0.2.1 [x\n] w=1'])
  t.strictSame(merged.conflicts, [
    {
      site: 'b',
      text: 'k.example.com A: set identifier "x\\n" of b differs from that of a: it is not served',
    },
  ])
})

t.test('a CNAME has one target: that of the first site', async (t) => {
  const to = (target: string) => [{ recordType: 'CNAME', targets: [target] }]
  const merged = merge([share('b', to('x.example.net')), share('a', to('y.example.net'))])
  t.strictSame(lines(merged), ['k.example.com CNAME 60 y.example.net'])
  t.match(texts(merged), [/an endpoint of b differs from that of a: it is not served/])
})

t.test('CNAME beside other types: the first site decides', async (t) => {
  const merged = merge([
    share('a', [{ recordType: 'CNAME', targets: ['x.example.net'] }]),
    share('b', [{}]),
  ])
  t.strictSame(lines(merged), ['k.example.com CNAME 60 x.example.net'])
  t.strictSame(texts(merged), [
    'k.example.com: CNAME of a beside other types of b: CNAME is served',
  ])
})

t.test('the second of two defaults with codes keeps its code', async (t) => {
  const geo = (code: string, target: string) => ({
    recordType: 'CNAME',
    setIdentifier: 'default',
    geoCodes: [code],
    isDefault: true,
    targets: [target],
  })
  const merged = merge([
    share('a', [geo('GEO-EU', 'eu.k.example.com')]),
    share('b', [geo('GEO-NA', 'na.k.example.com')]),
  ])
  t.strictSame(lines(merged), [
    'k.example.com CNAME 60 na.k.example.com [GEO-NA] GEO-NA',
    'k.example.com CNAME 60 eu.k.example.com [default] GEO-EU default',
  ])
  t.match(texts(merged), [/"default" of b differs from that of a: only its geo codes are used/])
})

const OLD = { generation: 'v1' } as const

t.test('an endpoint of a v1 peer gives way to the same endpoint of v2 peers', async (t) => {
  const merged = merge(
    [
      share('192.0.2.53:53', [{ targets: ['192.0.2.1', '192.0.2.7'] }], OLD),
      share('192.0.2.54:53', [{ targets: ['192.0.2.2'] }], OLD),
      share('b', [{ targets: ['192.0.2.2'], setIdentifier: 'b', weight: 5 }]),
    ],
    { own: [{ targets: ['192.0.2.1'], setIdentifier: 'own', weight: 7 }] },
  )
  t.strictSame(lines(merged), [
    'k.example.com A 60 192.0.2.7',
    'k.example.com A 60 192.0.2.2 [b] w=5',
    'k.example.com A 60 192.0.2.1 [own] w=7',
  ])
})

t.test('v1 peers that disagree lose nothing: v1 has no set identifiers', async (t) => {
  const cname = (target: string, given: Partial<PeerEndpoint> = {}) => ({
    recordType: 'CNAME',
    targets: [target],
    ...given,
  })
  const merged = merge([
    share('192.0.2.53:53', [cname('x.k.example.com')], OLD),
    share('192.0.2.54:53', [cname('y.k.example.com')], OLD),
    share(
      '192.0.2.55:53',
      [
        cname('geo-na.k.example.com', {
          setIdentifier: 'default',
          geoCodes: ['GEO-NA'],
          isDefault: true,
        }),
      ],
      OLD,
    ),
    share(
      '192.0.2.56:53',
      [
        cname('geo-eu.k.example.com', {
          setIdentifier: 'default',
          geoCodes: ['GEO-EU'],
          isDefault: true,
        }),
      ],
      OLD,
    ),
  ])
  t.strictSame(lines(merged), [
    'k.example.com CNAME 60 x.k.example.com',
    'k.example.com CNAME 60 geo-eu.k.example.com [GEO-EU] GEO-EU',
    'k.example.com CNAME 60 geo-na.k.example.com [default] GEO-NA default',
    'k.example.com CNAME 60 y.k.example.com [y.k.example.com]',
  ])
  t.strictSame(merged.conflicts, [])
})

t.test('states of our own site from peers are ignored', async (t) => {
  const merged = merge([share('m', [{ targets: ['192.0.2.66'] }], { seenMs: 99 })], { own: [{}] })
  t.strictSame(lines(merged), ['k.example.com A 60 192.0.2.1'])
})

t.test('a site that has nothing any more takes its endpoints away at once', async (t) => {
  const reported = share('a', [{}], { seenMs: 1 })
  t.equal(merge([reported]).endpoints.length, 1)
  t.strictSame(merge([reported, share('a', [], { seenMs: 2 })]).endpoints, [])
})

t.test('targets that are down have an endpoint of their own', async (t) => {
  const merged = merge([
    share('a', [{ targets: ['192.0.2.1', '192.0.2.2'], health: 'down' }]),
    share('b', [{ targets: ['192.0.2.2'], health: 'up' }]),
    share('c', [{ targets: ['192.0.2.1'] }]),
  ])
  t.strictSame(lines(merged), [
    'k.example.com A 60 192.0.2.1 down',
    'k.example.com A 60 192.0.2.2 up',
  ])
  t.strictSame(dropDown(merged.endpoints).map(print), ['k.example.com A 60 192.0.2.2 up'])
})

t.test('if a record has no room, no site displaces another', async (t) => {
  const many = (site: string, count: number, from: number) =>
    share(
      site,
      Array.from({ length: count }, (_, i) => ({
        setIdentifier: String(i),
        weight: 1,
        targets: [`10.${from}.${i >> 8}.${i & 255}`],
        dnsName: `n${i}.${site}.${HOST}`,
      })),
    )
  const merged = merge([many('a', 7000, 1), many('b', 10, 2), many('c', 1500, 3)], { own: [{}] })
  const count = (site: string) => merged.endpoints.filter((e) => e.sites[0] === site).length
  t.strictSame(['m', 'a', 'b', 'c'].map(count), [1, 6489, 10, 1500])
  t.match(texts(merged), [/^a: too many endpoints beside those of the other sites/])
})
