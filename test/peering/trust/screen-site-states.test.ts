import t from 'tap'
import { HostIndex, namesAbove } from '../../../src/peering/trust/host-index.ts'
import { NameCounts } from '../../../src/peering/trust/name-counts.ts'
import { type PeerRule, scanPeerRules } from '../../../src/peering/trust/peer-rule.ts'
import { type OwnNames, screenSiteStates } from '../../../src/peering/trust/screen-site-states.ts'
import { share, shared } from '../samples.ts'

const ZONE = 'k.example.com'

/** Names of endpoints by root host. */
type Records = Readonly<Record<string, readonly string[]>>

function ownNames(records: Records, merged: string): OwnNames {
  const index = new HostIndex()
  const bare = (host: string) => host.replace(/^\*\./, '')
  const hosts = Object.keys(records)
  for (const host of hosts) index.add(bare(host))
  return {
    isApex: (name) => name === ZONE,
    hasHost: (host) => hosts.some((one) => bare(one) === host),
    hasHostBelow: (name) => index.hasBelow(name),
    namesElsewhere: (host) => {
      const counts = new NameCounts()
      for (const h of hosts) if (bare(h) === host && h !== merged) counts.add(records[h]!)
      return counts
    },
  }
}

/** Why a peer's endpoint is refused at a site that has these records; '' = it is not. */
function refusal(
  records: Records,
  reported: readonly [string, string, string],
  rules = '',
): string {
  const [rootHost, dnsName, recordType] = reported
  const targets: Record<string, string> = {
    A: '192.0.2.6',
    AAAA: '2001:db8::6',
    CNAME: 'evil.example',
    NS: 'ns.evil.example',
    MX: '10 mx.evil.example',
    TXT: 'token',
    HTTPS: '0 evil.example.',
    SRV: '1 1 443 evil.example',
    CAA: '0 issue "evil.example"',
  }
  const endpoint = shared({ rootHost, dnsName, recordType, targets: [targets[recordType]!] })
  const bare = rootHost.replace(/^\*\./, '')
  const merged = Object.keys(records).find((host) => host.replace(/^\*\./, '') === bare) ?? ''
  const own = (records[merged] ?? []).map((name) => {
    const type = name === `klb.app.${ZONE}` ? 'CNAME' : 'A'
    return shared({ rootHost: merged, dnsName: name, recordType: type, targets: [targets[type]!] })
  })
  const given = [{ ...share('evil', []), rootHost, endpoints: [{ ...endpoint, site: 'evil' }] }]
  const allowed = scanPeerRules(rules)
  if (typeof allowed === 'string') throw new Error(allowed)
  const names = ownNames(records, merged)
  const { siteStates: shares, refused } = screenSiteStates(given, {
    names,
    own,
    rulesOf: () => allowed,
  })
  t.equal(shares[0]!.endpoints.length, refused.length === 0 ? 1 : 0)
  return refused.map(({ text }) => text).join('\n')
}

/** A host with DNSPolicy's layout, a plain one, a wildcard, and one that is below another. */
const RECORDS: Records = {
  [`app.${ZONE}`]: [`app.${ZONE}`, `klb.app.${ZONE}`, `geo-eu.klb.app.${ZONE}`],
  [`www.${ZONE}`]: [`www.${ZONE}`],
  [`*.any.${ZONE}`]: [`*.any.${ZONE}`, `klb.any.${ZONE}`],
  [`a.deep.${ZONE}`]: [`a.deep.${ZONE}`],
}
const APEX: Records = { ...RECORDS, [ZONE]: [ZONE, `klb.${ZONE}`, `other.${ZONE}`] }

const TABLE: readonly {
  readonly name: string
  readonly reported: readonly [rootHost: string, dnsName: string, type: string]
  readonly records?: Records
  /** Absent = it is served. */
  readonly want?: RegExp
}[] = [
  { name: 'an address of our host', reported: ['app', 'app', 'A'] },
  { name: 'another family', reported: ['app', 'app', 'AAAA'] },
  { name: 'a branch of our host', reported: ['app', 'c9.klb.app', 'A'] },
  { name: 'an alias at a name of ours', reported: ['app', 'klb.app', 'CNAME'] },
  { name: 'a host of its own', reported: ['shop', 'shop', 'A'] },
  { name: 'mail for a host of its own', reported: ['shop', 'shop', 'MX'] },
  { name: 'a branch of a wildcard host of ours', reported: ['*.any', 'geo.klb.any', 'A'] },
  { name: 'our wildcard', reported: ['*.any', '*.any', 'A'] },
  { name: 'a host below one of ours', reported: ['x.www', 'x.www', 'A'] },
  { name: 'an address of our host at the apex', reported: ['', '', 'A'], records: APEX },
  { name: 'a branch of our host at the apex', reported: ['', 'c9.klb', 'A'], records: APEX },
  { name: 'NS of our host', reported: ['app', 'app', 'NS'], want: /may not delegate/ },
  { name: 'NS of a name of ours', reported: ['app', 'klb.app', 'NS'], want: /may not delegate/ },
  { name: 'NS beside our names', reported: ['app', 'x.app', 'NS'], want: /may not delegate/ },
  { name: 'NS of a host of its own', reported: ['shop', 'shop', 'NS'], want: /may not delegate/ },
  { name: 'NS at the apex', reported: ['', '', 'NS'], want: /may not delegate/ },
  { name: 'NS above our hosts', reported: ['deep', 'deep', 'NS'], want: /may not delegate/ },
  { name: 'the apex', reported: ['', '', 'A'], want: /apex of a zone of ours/ },
  { name: 'MX at the apex', reported: ['', '', 'MX'], want: /apex of a zone of ours/ },
  {
    name: 'MX at the apex, where that is our host',
    reported: ['', '', 'MX'],
    records: APEX,
    want: /we have no MX there/,
  },
  {
    name: 'the wildcard of the zone',
    reported: ['*.', '*.', 'A'],
    want: /wildcards that we do not have/,
  },
  { name: 'it under the apex', reported: ['', '*.', 'A'], want: /wildcards/ },
  {
    name: 'it under the apex, where that is our host',
    reported: ['', '*.', 'A'],
    records: APEX,
    want: /not below one of our names/,
  },
  { name: 'the wildcard of our host', reported: ['*.app', '*.app', 'A'], want: /wildcards/ },
  {
    name: 'a wildcard inside of our host',
    reported: ['app', '*.klb.app', 'CNAME'],
    want: /wildcards/,
  },
  { name: 'a wildcard above names', reported: ['app', 'x.*.app', 'A'], want: /wildcards/ },
  { name: 'a wildcard of its own', reported: ['*.shop', '*.shop', 'A'], want: /wildcards/ },
  {
    name: 'a certificate for our host',
    reported: ['app', '_acme-challenge.app', 'TXT'],
    want: /underscore/,
  },
  {
    name: 'a certificate for the zone',
    reported: ['_acme-challenge', '_acme-challenge', 'TXT'],
    want: /underscore/,
  },
  {
    name: 'it by an alias, in capitals',
    reported: ['app', '_ACME-Challenge.app', 'CNAME'],
    want: /underscore/,
  },
  {
    name: 'a certificate for a host of its own',
    reported: ['_acme-challenge.shop', '_acme-challenge.shop', 'TXT'],
    want: /underscore/,
  },
  {
    name: 'a service of our host',
    reported: ['app', '_https._tcp.app', 'SRV'],
    want: /underscore/,
  },
  { name: 'HTTPS of our host', reported: ['app', 'app', 'HTTPS'], want: /we have no HTTPS there/ },
  { name: 'CAA of our host', reported: ['app', 'app', 'CAA'], want: /we have no CAA there/ },
  { name: 'mail for our host', reported: ['app', 'app', 'MX'], want: /we have no MX there/ },
  { name: 'SPF of our host', reported: ['www', 'www', 'TXT'], want: /we have no TXT there/ },
  {
    name: 'our host by way of the zone',
    reported: ['', 'www', 'CNAME'],
    want: /belongs to our host www\.k\.example\.com/,
  },
  {
    name: 'our host by way of the zone, where that is ours too',
    reported: ['', 'c9.klb.app', 'CNAME'],
    records: APEX,
    want: /belongs to our host app\.k/,
  },
  {
    name: 'a name of our host as a host of its own',
    reported: ['klb.app', 'klb.app', 'A'],
    want: /our record of app\.k\.example\.com has that name/,
  },
  {
    name: 'a name of our apex record as a host of its own',
    reported: ['other', 'other', 'CNAME'],
    records: APEX,
    want: /our record of k\.example\.com has that name/,
  },
  {
    name: 'a name server in the zone of our apex record',
    reported: ['', 'ns1', 'A'],
    records: APEX,
    want: /not below one of our names/,
  },
  {
    name: 'a name above our host',
    reported: ['deep', 'deep', 'A'],
    want: /our hosts are below/,
  },
  {
    name: 'a name that our wildcard answers',
    reported: ['x.any', 'x.any', 'A'],
    want: /our wildcard/,
  },
  { name: 'a name below one', reported: ['b.x.any', 'b.x.any', 'A'], want: /our wildcard/ },
  {
    name: 'a name that our wildcard answers, under its host',
    reported: ['*.any', 'www.any', 'CNAME'],
    want: /our wildcard/,
  },
]

const full = (name: string): string => (name === '' ? ZONE : `${name}.${ZONE}`.replace('..', '.'))

for (const { name, reported, records = RECORDS, want } of TABLE) {
  t.test(name, async (t) => {
    const [rootHost, dnsName, type] = reported
    const endpoint = [full(rootHost), full(dnsName), type] as const
    const got = refusal(records, endpoint)
    if (want === undefined) {
      t.equal(got, '')
      return
    }
    t.match(got, want)
    t.ok(got.includes(`${JSON.stringify(full(dnsName).toLowerCase())} ${type}: `), got)
    // The cure that a refusal names is one.
    const cure = /`allow (.*)`/.exec(got)?.[1]
    if (cure === undefined || type === 'NS') return
    t.equal(refusal(records, endpoint, cure), '')
  })
}

t.test('no rule lets a peer replace names of ours', async (t) => {
  const rules = `subdomain ${ZONE}; subdomain ${ZONE} NS`
  const taken = (reported: readonly [string, string, string], records = RECORDS) =>
    refusal(records, [full(reported[0]), full(reported[1]), reported[2]], rules)
  t.match(taken(['app', 'app', 'NS']), /replace names of ours/)
  t.match(taken(['', '', 'NS']), /replace names of ours/)
  t.match(taken(['deep', 'deep', 'NS']), /replace names of ours/)
  t.equal(taken(['shop', 'shop', 'NS']), '')
  t.match(taken(['klb.app', 'klb.app', 'A']), /our record of/)
  t.match(taken(['', 'www', 'CNAME']), /belongs to our host www/)
})

t.test('rules', async (t) => {
  const rules = scanPeerRules(`name Mail.${ZONE}. MX txt;\n subdomain s.${ZONE}`)
  t.strictSame(rules, [
    { kind: 'name', name: `mail.${ZONE}`, types: new Set(['MX', 'TXT']) },
    { kind: 'subdomain', name: `s.${ZONE}`, types: undefined },
  ] satisfies PeerRule[])
  t.strictSame(scanPeerRules(''), [])
  for (const [text, want] of [
    ['zone k.example.com', /allow takes name or subdomain/],
    ['name', /"" is not a domain name/],
    ['name a..b', /"a..b" is not a domain name/],
    ['name k.example.com SPF', /unknown record type SPF; use one of A AAAA/],
    [Array.from({ length: 101 }, () => 'name k.example.com').join(';'), /up to 100 rules/],
  ] as const) {
    t.match(scanPeerRules(text), want)
  }
})

t.test('refusals of a peer are cut to ten', async (t) => {
  const reported = Array.from({ length: 30 }, (_, i) => ({ dnsName: `_${i}.k.example.com` }))
  const given = [share('evil', reported), share('good', [{}])]
  const names = ownNames({}, '')
  const { siteStates: shares, refused } = screenSiteStates(given, {
    names,
    own: [],
    rulesOf: () => [],
  })
  t.strictSame(
    shares.map(({ endpoints }) => endpoints.length),
    [0, 0],
  )
  const of = (peer: string) => refused.filter((one) => one.peer === peer)
  t.equal(of('evil').length, 11)
  t.equal(of('evil').at(-1)!.text, 'k.example.com: and 20 more')
  t.match(of('good'), [{ text: /apex/ }])
})

t.test('hosts are counted by the names above them', async (t) => {
  const index = new HostIndex()
  t.strictSame([...namesAbove('a.b.c')], ['b.c', 'c'])
  for (const host of ['a.b.c', 'x.b.c']) index.add(host)
  index.remove('a.b.c')
  t.ok(index.hasBelow('b.c'))
  t.notOk(index.hasBelow('x.b.c'))
  index.remove('x.b.c')
  t.notOk(index.hasBelow('c'))
})
