import fc from 'fast-check'
import t from 'tap'
import { dropDown } from '../../../src/peering/merge/health.ts'
import type { Merge } from '../../../src/peering/merge/merge-site-states.ts'
import type { MergedEndpoint } from '../../../src/peering/merge/merged-endpoint.ts'
import type { PeerEndpoint, SiteState } from '../../../src/peering/peer-endpoint.ts'
import { endpoints, HOST, mergeReported, share, shared, shares } from '../samples.ts'

const EVEN_TARGETS_MAX = 16

const RUNS = { seed: 17, numRuns: 300 }

/** Endpoints of one site that do not contradict each other, with TTLs that peers serve as they are. */
const consistent = fc.array(endpoints, { maxLength: 6 }).map((given) => {
  const kept: PeerEndpoint[] = []
  for (const one of given) {
    const sameName = kept.filter(({ dnsName }) => dnsName === one.dnsName)
    const sameType = sameName.filter(({ recordType }) => recordType === one.recordType)
    const isAlias = one.recordType === 'CNAME'
    const isPlain = one.setIdentifier === ''
    if (sameName.some(({ recordType }) => (recordType === 'CNAME') !== isAlias)) continue
    if (sameType.some((other) => other.setIdentifier === one.setIdentifier)) continue
    if (isAlias && sameType.some((other) => isPlain || other.setIdentifier === '')) continue
    const ttlSeconds = sameType[0]?.ttlSeconds ?? Math.max(one.ttlSeconds, 30)
    kept.push({ ...one, ttlSeconds })
  }
  return kept
})

/** What hostile peers may say of the host: other weights, codes, TTLs and health, under names that come first. */
const hostile: fc.Arbitrary<readonly SiteState[]> = fc
  .tuple(shares, fc.array(endpoints, { maxLength: 8 }), fc.constantFrom('0', '-', 'm', 'zz'))
  .map(([given, reported, site]) => {
    const worst = reported.map((one) => ({
      ...one,
      site,
      ttlSeconds: 0,
      weight: one.weight === undefined ? undefined : 1_000_000,
      health: 'down' as const,
    }))
    return [...given, { ...share(site, []), endpoints: worst, seenMs: 30 }]
  })

function mergeAt(
  site: string,
  own: readonly PeerEndpoint[],
  reported: readonly SiteState[],
): Merge {
  const endpoints = own.map((one) => ({ ...one, site }))
  return mergeReported({ site, endpoints }, reported)
}

const setOf = (e: Pick<MergedEndpoint, 'dnsName' | 'recordType'>) => `${e.dnsName} ${e.recordType}`
const isPlain = (e: PeerEndpoint) =>
  e.setIdentifier === '' && e.weight === undefined && !e.isDefault && e.geoCodes.length === 0

t.test('whatever peers report, what is ours is served as without them', async (t) => {
  const property = fc.property(consistent, hostile, (own, reported) => {
    const alone = mergeAt('m', own, [])
    const beside = mergeAt('m', own, reported)
    const served = dropDown(beside.endpoints)
    for (const e of dropDown(alone.endpoints)) {
      const { dnsName, recordType, setIdentifier, weight, geoCodes, isDefault } = e
      const steering = { setIdentifier, weight, geoCodes, isDefault }
      const same = beside.endpoints.filter(
        (one) =>
          setOf(one) === setOf(e) &&
          JSON.stringify([one.setIdentifier, one.weight, one.geoCodes, one.isDefault]) ===
            JSON.stringify(Object.values(steering)) &&
          e.targets.some((target) => one.targets.includes(target)),
      )
      t.equal(same.length, 1, `${dnsName} ${recordType} ${JSON.stringify(steering)}`)
      const [found] = same
      t.equal(found!.ttlSeconds, e.ttlSeconds)
      for (const target of e.targets) t.ok(found!.targets.includes(target), target)
      // An alias that leads to what peers have is as healthy as that.
      if (recordType === 'CNAME') continue
      if (e.health === 'down') t.equal(found!.health, 'down')
      else t.ok(served.includes(found!), 'it is served')
    }
    // No type of a name goes, and none takes its place.
    const before = new Set(alone.endpoints.map(({ dnsName }) => dnsName))
    for (const { dnsName, recordType } of beside.endpoints) {
      if (!before.has(dnsName)) continue
      const had = alone.endpoints.filter((one) => one.dnsName === dnsName)
      t.equal(
        recordType === 'CNAME',
        had.some((one) => one.recordType === 'CNAME'),
        dnsName,
      )
    }
  })
  fc.assert(property, RUNS)
})

t.test('peers take no clients from ours by weights or codes that ours do not have', async (t) => {
  const property = fc.property(consistent, hostile, (own, reported) => {
    const merged = mergeAt('m', own, reported)
    const exporters = new Set(reported.map(({ exporter }) => exporter)).size
    for (const set of new Set(own.map(setOf))) {
      const ours = own.filter((one) => setOf(one) === set)
      const all = merged.endpoints.filter((one) => setOf(one) === set)
      const theirs = all.filter(({ sites }) => !sites.includes('m'))
      if (ours.some(({ weight }) => weight === undefined)) {
        t.ok(theirs.every(({ weight }) => weight === undefined))
        const known = new Set(ours.flatMap(({ targets }) => targets))
        const added = new Set(all.flatMap(({ targets }) => targets).filter((o) => !known.has(o)))
        t.ok(added.size <= exporters * EVEN_TARGETS_MAX)
      }
      if (ours.some((one) => !one.isDefault && one.geoCodes.length === 0)) {
        t.ok(theirs.every((one) => !one.isDefault && one.geoCodes.length === 0))
      }
      if (ours.some((one) => one.isDefault)) t.ok(theirs.every((one) => !one.isDefault))
    }
  })
  fc.assert(property, RUNS)
})

t.test('a merge beside our own does not depend on order, repetition or older news', async (t) => {
  const property = fc.property(consistent, hostile, hostile, (own, a, b) => {
    const want = mergeAt('m', own, [...a, ...b])
    t.strictSame(mergeAt('m', own, [...b, ...a]), want)
    t.strictSame(mergeAt('m', own, [...a, ...b, ...a]), want)
    t.strictSame(mergeAt('m', [...own].reverse(), [...a, ...b]), want)
  })
  fc.assert(property, { ...RUNS, numRuns: 100 })
})

t.test('three sites without a conflict answer alike', async (t) => {
  let alike = 0
  const property = fc.property(consistent, consistent, consistent, (a, b, c) => {
    const all = { a, b, c }
    const stateOf = (site: string, list: readonly PeerEndpoint[]): SiteState => ({
      ...share(site, []),
      endpoints: list.map((one) => ({ ...one, site })),
    })
    const merges = Object.entries(all).map(([site, own]) => {
      const others = Object.entries(all).filter(([other]) => other !== site)
      return mergeAt(
        site,
        own,
        others.map(([other, list]) => stateOf(other, list)),
      )
    })
    if (merges.some(({ conflicts }) => conflicts.length > 0)) return
    alike++
    for (const { endpoints } of merges) t.strictSame(endpoints, merges[0]!.endpoints)
  })
  fc.assert(property, { ...RUNS, numRuns: 1500 })
  t.ok(alike > 100, `${alike} of 1500 without a conflict`)
})

/** What of an attack is served at the site of `own`; `name TYPE ttl targets [set] w= codes default health`. */
function lines(merged: Merge): string[] {
  return dropDown(merged.endpoints).map((e) => {
    const words = [e.dnsName.replace(`.${HOST}`, ''), e.recordType, e.ttlSeconds, e.targets.join()]
    if (e.setIdentifier !== '') words.push(`[${e.setIdentifier}]`)
    if (e.weight !== undefined) words.push(`w=${e.weight}`)
    if (e.geoCodes.length > 0) words.push(e.geoCodes.join())
    if (e.isDefault) words.push('default')
    return words.join(' ')
  })
}

const A = { targets: ['192.0.2.1'] }
const ALIAS = { recordType: 'CNAME', targets: ['lb.example.net'] }
const EVIL_ALIAS = { recordType: 'CNAME', targets: ['evil.example'] }
const THEIRS = { targets: ['198.51.100.6'] }
const many = (count: number, of: (i: number) => Partial<PeerEndpoint>) =>
  Array.from({ length: count }, (_, i) => of(i))

/** One site is `own`, the other, whose name sorts first, is `peer`; each with what both serve then. */
const ATTACKS: readonly {
  readonly name: string
  readonly own: readonly Partial<PeerEndpoint>[]
  readonly peer: readonly Partial<PeerEndpoint>[]
  readonly want: readonly string[]
  /** What the other site serves; absent = `want`. */
  readonly there?: readonly string[]
  /** Absent = neither site reports a conflict. */
  readonly conflict?: RegExp
}[] = [
  {
    name: 'a peer finds our address down',
    own: [A],
    peer: [{ ...A, health: 'down' }, THEIRS],
    want: ['k.example.com A 60 192.0.2.1,198.51.100.6'],
    there: ['k.example.com A 60 198.51.100.6'],
    conflict: /reports another health of one of our targets/,
  },
  {
    name: 'a peer finds our named endpoint down',
    own: [{ ...A, setIdentifier: 'x', weight: 1 }],
    peer: [
      { ...A, setIdentifier: 'x', weight: 1, health: 'down' },
      { ...THEIRS, setIdentifier: 'y', weight: 1 },
    ],
    want: ['k.example.com A 60 192.0.2.1 [x] w=1', 'k.example.com A 60 198.51.100.6 [y] w=1'],
    there: ['k.example.com A 60 198.51.100.6 [y] w=1'],
    conflict: /reports another health/,
  },
  {
    name: 'a peer finds up what we find down',
    own: [{ ...A, health: 'down' }, { targets: ['192.0.2.2'] }],
    peer: [{ ...A, health: 'up' }],
    want: ['k.example.com A 60 192.0.2.2'],
    there: ['k.example.com A 60 192.0.2.1,192.0.2.2'],
    conflict: /reports another health/,
  },
  {
    name: 'a CNAME over our address, from a site whose name sorts first',
    own: [A],
    peer: [EVIL_ALIAS],
    want: ['k.example.com A 60 192.0.2.1'],
    there: ['k.example.com CNAME 60 evil.example'],
    conflict: /other types .* beside CNAME|CNAME .* beside other types/,
  },
  {
    name: 'an address over our CNAME',
    own: [ALIAS],
    peer: [THEIRS],
    want: ['k.example.com CNAME 60 lb.example.net'],
    there: ['k.example.com A 60 198.51.100.6'],
    conflict: /other types .* beside CNAME|CNAME .* beside other types/,
  },
  {
    name: 'another target for our CNAME',
    own: [ALIAS],
    peer: [EVIL_ALIAS],
    want: ['k.example.com CNAME 60 lb.example.net'],
    there: ['k.example.com CNAME 60 evil.example'],
    conflict: /the CNAME of .* is not served beside our endpoints/,
  },
  {
    name: 'CNAMEs with set identifiers beside our plain one',
    own: [ALIAS],
    peer: many(50, (i) => ({ ...EVIL_ALIAS, setIdentifier: `s${i}` })),
    want: ['k.example.com CNAME 60 lb.example.net'],
    there: many(50, (i) => ({ ...EVIL_ALIAS, setIdentifier: `s${i}` }))
      .map(({ setIdentifier }) => `k.example.com CNAME 60 evil.example [${setIdentifier}]`)
      .sort(),
    conflict: /the CNAME of .* is not served beside our endpoints/,
  },
  {
    name: 'our set identifier for something else',
    own: [{ ...A, setIdentifier: 'eu', weight: 10 }],
    peer: [{ ...THEIRS, setIdentifier: 'eu', weight: 10 }],
    want: ['k.example.com A 60 192.0.2.1 [eu] w=10'],
    there: ['k.example.com A 60 198.51.100.6 [eu] w=10'],
    conflict: /set identifier "eu" of .* differs/,
  },
  {
    name: 'TTL 0 beside our endpoints',
    own: [A],
    peer: [{ ...THEIRS, ttlSeconds: 0 }],
    want: ['k.example.com A 60 192.0.2.1,198.51.100.6'],
    there: ['k.example.com A 0 192.0.2.1,198.51.100.6'],
    conflict: /TTL \d+ of .* differs from ours|TTL 0 of/,
  },
  {
    name: 'a weight of a million beside our endpoint without one',
    own: [A],
    peer: [{ ...THEIRS, setIdentifier: '!', weight: 1_000_000 }],
    want: ['k.example.com A 60 192.0.2.1', 'k.example.com A 60 198.51.100.6 [!]'],
    there: ['k.example.com A 60 192.0.2.1', 'k.example.com A 60 198.51.100.6 [!] w=1000000'],
    conflict: /weights of .* are ignored|have no weight, but ours do/,
  },
  {
    name: 'all geo codes beside our endpoint without one',
    own: [A],
    peer: [{ ...THEIRS, setIdentifier: '!', geoCodes: ['GEO-EU', 'GEO-NA'], isDefault: true }],
    want: ['k.example.com A 60 192.0.2.1', 'k.example.com A 60 198.51.100.6 [!]'],
    there: [
      'k.example.com A 60 192.0.2.1',
      'k.example.com A 60 198.51.100.6 [!] GEO-EU,GEO-NA default',
    ],
    conflict: /geo codes of .* are ignored|have no geo code, but ours do/,
  },
  {
    name: 'a second default',
    own: [{ ...A, setIdentifier: 'x', isDefault: true }],
    peer: [{ ...THEIRS, setIdentifier: 'y', isDefault: true }],
    want: ['k.example.com A 60 192.0.2.1 [x] default'],
    there: ['k.example.com A 60 198.51.100.6 [y] default'],
    conflict: /the default of .* differs from ours/,
  },
  {
    name: 'a second default with codes keeps them',
    own: [{ ...A, setIdentifier: 'default', isDefault: true, geoCodes: ['GEO-EU'] }],
    peer: [{ ...THEIRS, setIdentifier: 'default', isDefault: true, geoCodes: ['GEO-NA'] }],
    want: [
      'k.example.com A 60 198.51.100.6 [GEO-NA] GEO-NA',
      'k.example.com A 60 192.0.2.1 [default] GEO-EU default',
    ],
    there: [
      'k.example.com A 60 192.0.2.1 [GEO-EU] GEO-EU',
      'k.example.com A 60 198.51.100.6 [default] GEO-NA default',
    ],
    conflict: /the default of .* differs from ours/,
  },
  {
    name: 'as many addresses as an endpoint can have',
    own: [A],
    peer: [
      { targets: many(256, (i) => ({ targets: [`10.0.0.${i}`] })).flatMap((e) => e.targets!) },
    ],
    want: [
      `k.example.com A 60 ${[
        '10.0.0.0 10.0.0.1 10.0.0.10 10.0.0.100 10.0.0.101 10.0.0.102 10.0.0.103 10.0.0.104',
        '10.0.0.105 10.0.0.106 10.0.0.107 10.0.0.108 10.0.0.109 10.0.0.11 10.0.0.110 10.0.0.111',
      ]
        .join(' ')
        .replaceAll(' ', ',')},192.0.2.1`,
    ],
    there: [
      `k.example.com A 60 ${many(256, (i) => ({ targets: [`10.0.0.${i}`] }))
        .flatMap((e) => e.targets!)
        .sort()
        .join()}`,
      'k.example.com A 60 192.0.2.1',
    ],
    conflict: /only 16 of the targets of .* without weights are served|other sites serve only 16/,
  },
  {
    name: 'the same endpoint at both sites',
    own: [{ ...A, setIdentifier: 'x', weight: 5 }],
    peer: [{ ...A, setIdentifier: 'x', weight: 5, health: 'up' }],
    want: ['k.example.com A 60 192.0.2.1 [x] w=5'],
  },
  {
    name: 'another address beside ours',
    own: [A],
    peer: [THEIRS],
    want: ['k.example.com A 60 192.0.2.1,198.51.100.6'],
  },
]

for (const { name, own, peer, want, there = want, conflict } of ATTACKS) {
  t.test(name, async (t) => {
    const ours = own.map((one) => shared({ ...one, site: 'ours' }))
    const theirs = peer.map((one) => shared({ ...one, site: '0evil' }))
    const here = mergeAt('ours', ours, [{ ...share('0evil', []), endpoints: theirs }])
    const atPeer = mergeAt('0evil', theirs, [{ ...share('ours', []), endpoints: ours }])
    t.strictSame(lines(here).sort(), [...want].sort())
    t.strictSame(lines(atPeer).sort(), [...there].sort())
    for (const { conflicts } of [here, atPeer]) {
      if (conflict === undefined) t.strictSame(conflicts, [])
      else t.match(conflicts[0]!.text, conflict)
    }
  })
}

t.test('a set that a peer fills keeps ours', async (t) => {
  const codes = ['DE', 'FR', 'IT', 'ES', 'NL', 'BE', 'AT', 'CH', 'PL', 'SE', 'NO', 'FI', 'DK', 'IE']
  const own = shared({ ...A, setIdentifier: 'zz', weight: 1, geoCodes: ['GEO-EU'], site: 'ours' })
  const reported = many(900, (i) => ({
    targets: [`10.0.${i >> 8}.${i & 255}`],
    setIdentifier: `!${i}`,
    weight: 1,
    geoCodes: codes,
  }))
  const merged = mergeAt('ours', [own], [share('0evil', reported)])
  t.ok(merged.endpoints.some(({ setIdentifier }) => setIdentifier === 'zz'))
  const candidates = merged.endpoints.reduce((sum, { geoCodes }) => sum + geoCodes.length + 1, 0)
  t.ok(candidates <= 4096)
  t.match(
    merged.conflicts.map(({ text }) => text).join('\n'),
    /\d+ of 901 endpoints of all sites fit/,
  )
})

t.test('an address that our probes found down is not brought back by a peer', async (t) => {
  const own = [shared({ targets: ['192.0.2.2'], site: 'm' })]
  const reported = [share('b', [{ targets: ['192.0.2.1', '192.0.2.3'], health: 'up' }])]
  const merged = mergeReported({ endpoints: own, down: ['192.0.2.1'] }, reported)
  t.strictSame(lines(merged), ['k.example.com A 60 192.0.2.2,192.0.2.3'])
  t.match(merged.conflicts, [{ site: 'b', text: /another health of one of our targets/ }])
  t.ok(own.every(isPlain))
})

t.test('TTLs of sites without an own endpoint have a floor', async (t) => {
  const merged = mergeAt('m', [], [share('b', [{ ttlSeconds: 0 }])])
  t.strictSame(lines(merged), ['k.example.com A 5 192.0.2.1'])
  t.match(merged.conflicts, [{ site: 'b', text: /TTL 0 of b: its peers serve at least 5/ }])
})
