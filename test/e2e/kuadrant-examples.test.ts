import t from 'tap'
import { endpointOf } from '../publish/record-zone-stage.ts'
import { askEach } from '../support/dig.ts'
import { cityEntry, composeMmdb } from '../support/mmdb.ts'
import { needs } from '../support/peer.ts'
import { freePort, layFiles, runSextant, startServer } from '../support/server.ts'

// Long: it starts a server for each example.

/** One record of an example; `endpoints` as in `record-zone-stage.ts`. */
interface ExampleRecord {
  readonly name: string
  readonly namespace?: string
  readonly labels?: { readonly [key: string]: string }
  readonly rootHost: string
  readonly endpoints: readonly string[]
}

interface Example {
  /** Where Kuadrant/dns-operator has it. */
  readonly from: string
  readonly zone?: string
  readonly records: readonly ExampleRecord[]
  /** `NAME TYPE [PLACE]`, and the targets of the answer; several lists = any of them. */
  readonly want: { readonly [question: string]: readonly (readonly string[])[] }
  /** What `check` says; missing = nothing. */
  readonly warnings?: readonly RegExp[]
  readonly faults?: readonly RegExp[]
}

/** Client networks of Kuadrant's demo database. */
const PLACES: { readonly [place: string]: string } = { IE: '127.0.100.0/24', US: '127.0.200.0/24' }
const DEMO = composeMmdb({
  networks: { [PLACES.IE!]: cityEntry('IE', 'EU'), [PLACES.US!]: cityEntry('US', 'NA') },
})

const zoneConfig = (name: string, ns: readonly string[], address: string): ExampleRecord => ({
  name,
  rootHost: 'k.example.com',
  endpoints: [
    `k.example.com NS ${ns.map((label) => `${label}.k.example.com`).join(',')}`,
    ...ns.map((label) => `${label}.k.example.com A ${address}`),
  ],
})

/** The layout of a DNSPolicy: host, klb, geo, cluster. */
const balanced = (
  name: string,
  host: string,
  { geo, weight, address }: { geo: string; weight: number; address: string },
  isDefault = false,
): ExampleRecord => {
  const place = `${geo.toLowerCase()}.klb.${host}`
  const cluster = `${name}.klb.${host}`
  return {
    name,
    rootHost: host,
    endpoints: [
      `${host} CNAME klb.${host} ttl=300`,
      `klb.${host} CNAME ${place} ttl=300 geo=${geo} id=${geo}`,
      ...(isDefault ? [`klb.${host} CNAME ${place} ttl=300 geo=* id=default`] : []),
      `${place} CNAME ${cluster} weight=${weight} id=${cluster}`,
      `${cluster} A ${address}`,
    ],
  }
}

const HOST = 'loadbalanced.k.example.com'
const IRELAND = { geo: 'IE', weight: 200 }
const chain = (geo: string, cluster: string, address: string, host = HOST) => {
  return [`klb.${host}.`, `${geo}.klb.${host}.`, `${cluster}.klb.${host}.`, address]
}

const geoWeight = (us: string): ExampleRecord => ({
  name: 'api-k-example-com',
  labels: { 'kuadrant.io/zone-name': 'k.example.com' },
  rootHost: 'api.k.example.com',
  endpoints: [
    'api.k.example.com CNAME klb.api.k.example.com ttl=300',
    'klb.api.k.example.com CNAME geo-eu.klb.api.k.example.com ttl=300 geo=GEO-EU id=GEO-EU',
    `klb.api.k.example.com CNAME geo-us.klb.api.k.example.com ttl=300 geo=${us} id=${us}`,
    'geo-us.klb.api.k.example.com CNAME cluster1.klb.api.k.example.com weight=200 id=c1',
    'geo-eu.klb.api.k.example.com CNAME cluster2.klb.api.k.example.com weight=200 id=c2',
    'geo-eu.klb.api.k.example.com CNAME cluster3.klb.api.k.example.com weight=200 id=c3',
    'cluster3.klb.api.k.example.com A 127.0.0.3',
    'cluster2.klb.api.k.example.com A 127.0.0.2',
    'cluster1.klb.api.k.example.com CNAME some.external.loadbalancer',
    '*.api.k.example.com A 9.9.9.9',
  ],
})

const readmeGeo = (us: string): ExampleRecord => ({
  name: 'example.org',
  labels: { 'kuadrant.io/coredns-zone-name': 'example.org' },
  rootHost: 'api.example.org',
  endpoints: [
    'api.example.org A 1.1.1.1 ttl=300 geo=GEO-EU id=GEO-EU',
    `api.example.org A 2.2.2.2 ttl=300 geo=${us} id=${us}`,
  ],
})

const EXAMPLES: readonly Example[] = [
  {
    from: 'coredns/examples/dnsrecord-api-k-example-com.yaml',
    records: [
      {
        name: 'api-k-example-com',
        labels: { 'kuadrant.io/zone-name': 'k.example.com' },
        rootHost: 'api.k.example.com',
        endpoints: [
          'rec1.k.example.com A 1.1.1.1',
          'rec1.k.example.com A 2.2.2.2',
          'rec2.k.example.com A 3.3.3.3',
          'rec3.k.example.com A 4.4.4.4',
          'lb.api.k.example.com CNAME rec1.k.example.com ttl=120',
          'api.k.example.com CNAME lb.api.k.example.com ttl=120',
          '*.api.k.example.com A 9.9.9.9',
        ],
      },
    ],
    want: {
      'api.k.example.com A': [
        ['lb.api.k.example.com.', 'rec1.k.example.com.', '1.1.1.1', '2.2.2.2'],
      ],
      'rec3.k.example.com A': [['4.4.4.4']],
      'any.api.k.example.com A': [['9.9.9.9']],
    },
    warnings: [
      /rec1\.k\.example\.com is outside of the rootHost api\.k\.example\.com: it is served, but/,
      /rec2\.k\.example\.com is outside of the rootHost/,
      /rec3\.k\.example\.com is outside of the rootHost/,
    ],
  },
  {
    from: 'coredns/examples/dnsrecord-api-k-example-com_geo_weight.yaml, with its geo code GEO-US',
    records: [geoWeight('GEO-US')],
    want: {},
    faults: [/unexpected continent code\. "GEO-US"; did you mean US\?/],
  },
  {
    from: 'coredns/examples/dnsrecord-api-k-example-com_geo_weight.yaml, corrected',
    records: [geoWeight('US')],
    want: {
      'api.k.example.com A IE': [2, 3].map((n) => {
        return chain('geo-eu', `cluster${n}`, `127.0.0.${n}`, 'api.k.example.com')
      }),
      'api.k.example.com A US': [
        chain('geo-us', 'cluster1', 'some.external.loadbalancer.', 'api.k.example.com'),
      ],
    },
  },
  {
    from: 'coredns/examples/dnsrecord-c1.yaml and dnsrecord-c2.yaml, in one cluster',
    records: [
      balanced('cluster1', 'k.example.com', { geo: 'GEO-NA', weight: 200, address: '81.17.23.20' }),
      balanced('cluster2', 'k.example.com', { geo: 'GEO-EU', weight: 200, address: '81.17.23.10' }),
    ],
    // The CNAME at the apex acts as an ALIAS.
    want: {
      'k.example.com A IE': [['81.17.23.10']],
      'k.example.com A US': [['81.17.23.20']],
      'klb.k.example.com A IE': [
        ['geo-eu.klb.k.example.com.', 'cluster2.klb.k.example.com.', '81.17.23.10'],
      ],
      'klb.k.example.com A US': [
        ['geo-na.klb.k.example.com.', 'cluster1.klb.k.example.com.', '81.17.23.20'],
      ],
    },
  },
  {
    from: 'coredns/examples/dnsrecord-mail-txt-k-example-com.yaml',
    records: [
      {
        name: 'apex-txt',
        labels: { 'kuadrant.io/coredns-zone-name': 'k.example.com' },
        rootHost: 'k.example.com',
        endpoints: [
          'k.example.com TXT google-site-verification=abc123',
          'k.example.com TXT v=spf1+~all',
        ],
      },
      {
        name: 'dmarc-none',
        labels: { 'kuadrant.io/coredns-zone-name': 'k.example.com' },
        rootHost: 'k.example.com',
        endpoints: ['_dmarc.k.example.com TXT v=DMARC1;p=none'],
      },
    ],
    want: {
      'k.example.com TXT': [['"google-site-verification=abc123"', '"v=spf1+~all"']],
      '_dmarc.k.example.com TXT': [['"v=DMARC1;p=none"']],
    },
  },
  {
    from: 'coredns/plugin/README.md, example 1',
    zone: 'example.org',
    records: [
      {
        name: 'example.org',
        labels: { 'kuadrant.io/coredns-zone-name': 'example.org' },
        rootHost: 'api.example.org',
        endpoints: ['api.example.org A 1.1.1.1'],
      },
    ],
    want: { 'api.example.org A': [['1.1.1.1']] },
  },
  {
    from: 'coredns/plugin/README.md, example 2, with its geo code GEO-US',
    zone: 'example.org',
    records: [readmeGeo('GEO-US')],
    want: {},
    faults: [/unexpected continent code\. "GEO-US"; did you mean US\?/],
  },
  {
    from: 'coredns/plugin/README.md, example 2, corrected',
    zone: 'example.org',
    records: [readmeGeo('US')],
    want: { 'api.example.org A IE': [['1.1.1.1']], 'api.example.org A US': [['2.2.2.2']] },
  },
  {
    from: 'config/local-setup/dnsrecords/basic/coredns/simple',
    records: [
      {
        name: 'dnsrecord-simple-coredns',
        rootHost: 'simple.k.example.com',
        endpoints: ['simple.k.example.com A 172.18.200.1'],
      },
    ],
    want: { 'simple.k.example.com A': [['172.18.200.1']] },
  },
  {
    from: 'config/local-setup/dnsrecords/delegating/coredns/simple',
    records: [1, 2, 3].map((n) => ({
      name: `dnsrecord-simple-coredns-cluster${n}`,
      rootHost: 'simple.k.example.com',
      endpoints: [`simple.k.example.com A 172.18.200.${n}`],
    })),
    want: { 'simple.k.example.com A': [['172.18.200.1', '172.18.200.2', '172.18.200.3']] },
  },
  {
    from: 'config/local-setup/dnsrecords/delegating/coredns/loadbalanced',
    records: [
      balanced('cluster1-gw1-ns1', HOST, { ...IRELAND, address: '172.18.200.1' }, true),
      balanced('cluster2-gw1-ns1', HOST, { ...IRELAND, address: '172.18.200.2' }),
      balanced('cluster3-gw1-ns1', HOST, { geo: 'US', weight: 100, address: '172.18.200.3' }),
    ],
    want: {
      [`${HOST} A IE`]: [1, 2].map((n) => chain('ie', `cluster${n}-gw1-ns1`, `172.18.200.${n}`)),
      [`${HOST} A US`]: [chain('us', 'cluster3-gw1-ns1', '172.18.200.3')],
      [`${HOST} A`]: [1, 2].map((n) => chain('ie', `cluster${n}-gw1-ns1`, `172.18.200.${n}`)),
    },
  },
  {
    from: 'docs/coredns/zone-configuration.md, one cluster',
    records: [zoneConfig('one', ['ns1', 'ns2'], '172.18.0.17')],
    want: {
      'k.example.com NS': [['ns1.k.example.com.', 'ns2.k.example.com.']],
      'ns2.k.example.com A': [['172.18.0.17']],
    },
  },
  {
    from: 'docs/coredns/zone-configuration.md, three clusters',
    records: [1, 2, 3].map((n) => zoneConfig(`c${n}`, [`ns${n}`], `172.18.0.${16 + n}`)),
    want: {
      'k.example.com NS': [[1, 2, 3].map((n) => `ns${n}.k.example.com.`)],
      'ns3.k.example.com A': [['172.18.0.19']],
    },
  },
]

function manifestOf({ name, namespace, labels = {}, rootHost, endpoints }: ExampleRecord): string {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, namespace: namespace ?? 'kuadrant-coredns', labels },
    spec: {
      rootHost,
      endpoints: endpoints.map(endpointOf),
      providerRef: { name: 'dns-provider-credentials-coredns' },
    },
  })
}

function filesOf(example: Example, folder: string): { [path: string]: string } {
  const files = example.records.map((record, i) => [`${folder}/${i}.json`, manifestOf(record)])
  return Object.fromEntries(files)
}

/** The Corefile of `coredns/examples`, with manifests as the source of the records. */
const block = ({ zone = 'k.example.com' }: Example, folder: string, port = 53): string => `
${zone}:${port} {
    bind 127.0.0.1
    debug
    errors
    log
    geoip GeoLite2-City-demo.mmdb {
        edns-subnet
    }
    metadata
    transfer {
        to *
    }
    kuadrant {
        manifests ${folder}
    }
}
`

t.test("Kuadrant's examples are served as they are", needs('dig'), async (t) => {
  const ports = await Promise.all(EXAMPLES.map(() => freePort()))
  const corefile = EXAMPLES.map((one, i) => block(one, `records/${i}`, ports[i]!)).join('')
  const all = EXAMPLES.map((one, i) => filesOf(one, `records/${i}`))
  const files = Object.assign({ 'GeoLite2-City-demo.mmdb': DEMO }, ...all)
  await startServer(t, { corefile, files })
  for (const [i, { from, want }] of EXAMPLES.entries()) {
    const questions = Object.keys(want).map((question) => {
      const [name, type, place] = question.split(' ')
      return [name!, type!, ...(place === undefined ? [] : [`+subnet=${PLACES[place]}`])]
    })
    if (questions.length === 0) continue
    const replies = await askEach(ports[i]!, [], questions)
    for (const [k, [question, targets]] of Object.entries(want).entries()) {
      const got = replies[k]!.answer.map((line) => line.split(' ').slice(4).join(' ')).sort()
      const isWanted = targets.some((list) => list.toSorted().join() === got.join())
      t.ok(isWanted, `${from}: ${question}: ${got.join(', ')}`)
    }
  }
})

for (const example of EXAMPLES) {
  const { from, warnings = [], faults = [] } = example
  t.test(`check of ${from}`, async (t) => {
    const directory = t.testdir({})
    const files = { 'GeoLite2-City-demo.mmdb': DEMO, Corefile: block(example, 'records') }
    layFiles(directory, { ...files, ...filesOf(example, 'records') })
    const args = ['check', '-conf', 'Corefile']
    const isNsAddressed = /ns1\.k\.example\.com|ns1\.example\.org/
    const { code, stderr } = await runSextant(directory, args)
    const lines = stderr.split('\n').filter((line) => line !== '' && !isNsAddressed.test(line))
    t.match(
      lines.filter((line) => line.startsWith('[WARNING]')),
      warnings,
    )
    t.match(
      lines.filter((line) => !line.startsWith('[WARNING]')),
      faults,
    )
    t.equal(lines.length, warnings.length + faults.length, stderr)
    t.equal(code, faults.length > 0 ? 1 : 0)
    if (warnings.length === 0) return
    const strict = await runSextant(directory, [...args, '--strict'])
    t.equal(strict.code, 1)
  })
}
