import t from 'tap'
import { findIgnored } from '../../../src/records/validate/ignored.ts'
import { SERVED, validateResource } from '../../../src/records/validate/resource.ts'
import { SETTING_NAMES } from '../../../src/records/validate/settings.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

function record(more: { readonly [key: string]: YamlValue }): YamlValue {
  const endpoint = { dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.1'], ...more }
  return { spec: { rootHost: 'k.example.com', endpoints: [endpoint] } }
}

const properties = (...pairs: readonly (readonly [string, YamlValue])[]): YamlValue =>
  record({ providerSpecific: pairs.map(([name, value]) => ({ name, value })) })

function probedAt(
  spec: { readonly [key: string]: YamlValue },
  labels: { readonly [key: string]: string } = {},
): YamlValue {
  const providerSpecific = [
    { name: 'health-port', value: '8081' },
    { name: 'health-address', value: '192.0.2.9' },
  ]
  return { metadata: { labels }, spec: { ...spec, endpoints: [{ providerSpecific }] } }
}

const TABLE: readonly { name: string; given: YamlValue; want: readonly string[] }[] = [
  { name: 'nothing', given: record({ recordTTL: 1, labels: {}, setIdentifier: 's' }), want: [] },
  {
    name: 'all that is read',
    given: properties(
      ['weight', 1],
      ['geo-code', 'IE'],
      ['geo-code', 'FR'],
      ['default', 'true'],
      ['location', '52.52,13.40'],
    ),
    want: [],
  },
  { name: 'where to probe', given: probedAt({ healthCheck: { path: '/' } }), want: [] },
  {
    name: 'where to probe, but no probe',
    given: probedAt({}),
    want: [
      'spec.endpoints.0.providerSpecific.0: property health-port has no effect here: the record has no healthCheck',
      'spec.endpoints.0.providerSpecific.1: property health-address has no effect here: the record has no healthCheck',
    ],
  },
  ...[
    { 'kuadrant.io/coredns-zone-name': 'kdrnt' },
    { 'kuadrant.io/authoritative-record': 'true' },
    { 'kuadrant.io/type': 'merged' },
  ].map((labels) => ({
    name: `where to probe, in a derived record: ${Object.keys(labels)}`,
    given: probedAt({}, labels),
    want: [],
  })),
  {
    name: 'a field of another spelling',
    given: record({ recordTtl: 1 }),
    want: [
      'spec.endpoints.0.recordTtl: "recordTtl" is not a field of an endpoint and is ignored; did you mean recordTTL?',
    ],
  },
  {
    name: "other providers' properties",
    given: properties(['aws/weight', '1'], ['x.example/default', 'true']),
    want: [],
  },
  {
    name: 'a property that nothing reads',
    given: properties(['priority', '1']),
    want: [
      'spec.endpoints.0.providerSpecific.0: property "priority" is unknown and is ignored; the known ones are weight, geo-code, default, location, health-port, health-address',
    ],
  },
  {
    name: 'two weights',
    given: properties(['weight', 1], ['weight', 2]),
    want: ['spec.endpoints.0.providerSpecific.1: a second weight replaces the first'],
  },
  {
    name: 'a default that is neither',
    given: properties(['default', 'yes'], ['default', false]),
    want: [
      'spec.endpoints.0.providerSpecific.0: property default must be true or false: "yes" is ignored',
    ],
  },
  {
    name: 'an annotation of another spelling, beside known and foreign ones',
    given: {
      metadata: {
        annotations: { 'sextant.io/all_down': 'x', 'sextant.io/sticky': 'true', 'a.io/b': '' },
      },
    },
    want: [
      `metadata.annotations.sextant.io/all_down: annotation "sextant.io/all_down" is unknown and is ignored; the known ones are ${SETTING_NAMES.join(', ')}; did you mean sextant.io/all-down?`,
    ],
  },
  {
    name: 'fields of every part of a record',
    given: {
      kind: 'DNSRecord',
      endpoints: [],
      metadata: { label: {}, fieldOfNewerVersions: 1, managedFields: [{ x: 1 }], uid: 'u' },
      spec: {
        endpoint: [],
        healthcheck: {},
        rootHosts: 'x',
        providerRef: { nam: 'a' },
        healthCheck: { failureTreshold: 1, intervall: '1m', additionalHeadersRef: { nam: 'x' } },
        endpoints: [
          { ttl: 1, labels: { any: 'x' }, providerSpecific: [{ name: 'weight', valu: 1 }] },
        ],
      },
      status: { conditions: [], healty: true },
    },
    want: [
      'endpoints: "endpoints" is not a field of DNSRecord and is ignored; did you mean spec.endpoints?',
      'metadata.label: "label" is not a field of metadata and is ignored; did you mean labels?',
      'spec.endpoint: "endpoint" is not a field of spec and is ignored; did you mean endpoints?',
      'spec.healthcheck: "healthcheck" is not a field of spec and is ignored; did you mean healthCheck?',
      'spec.rootHosts: "rootHosts" is not a field of spec and is ignored; did you mean rootHost?',
      'spec.providerRef.nam: "nam" is not a field of spec.providerRef and is ignored; did you mean name?',
      'spec.healthCheck.failureTreshold: "failureTreshold" is not a field of spec.healthCheck and is ignored; did you mean failureThreshold?',
      'spec.healthCheck.intervall: "intervall" is not a field of spec.healthCheck and is ignored; did you mean interval?',
      'spec.healthCheck.additionalHeadersRef.nam: "nam" is not a field of spec.healthCheck.additionalHeadersRef and is ignored; did you mean name?',
      'spec.endpoints.0.ttl: "ttl" is not a field of an endpoint and is ignored; did you mean recordTTL?',
      'spec.endpoints.0.providerSpecific.0.valu: "valu" is not a field of a property and is ignored; did you mean value?',
    ],
  },
  {
    name: 'fields of a probe',
    given: {
      kind: 'DNSHealthCheckProbe',
      metadata: { annotations: { 'sextant.io/x': '' } },
      spec: { adress: 'x', rootHost: 'x' },
      status: { healty: false, ofNewerVersions: 1 },
    },
    want: [
      'spec.adress: "adress" is not a field of spec and is ignored; did you mean address?',
      'spec.rootHost: "rootHost" is not a field of spec and is ignored',
      'status.healty: "healty" is not a field of status and is ignored; did you mean healthy?',
    ],
  },
  { name: 'what is no record', given: [null, 'x'], want: [] },
]

t.test('fields of a record that have no effect', async (t) => {
  for (const { name, given, want } of TABLE) {
    const got = findIgnored(given).map(({ path, message }) => `${path.join('.')}: ${message}`)
    t.strictSame(got, want, name)
  }
})

t.test('a health check of a wildcard host', async (t) => {
  const of = (rootHost: string, protocol: string, labels = {}): string[] => {
    const resource = {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'a', labels },
      spec: { rootHost, endpoints: [], healthCheck: { protocol, port: 443 } },
    }
    const served = validateResource(resource, SERVED)
    if (served.kind !== 'record') return [served.kind]
    return findIgnored(resource, served.record).map(({ path, message }) => {
      return `${path.join('.')}: ${message}`
    })
  }
  t.strictSame(of('*.k.example.com', 'HTTPS'), [
    'spec.healthCheck: healthCheck has no effect: rootHost *.k.example.com is a wildcard, so HTTPS has no host name to send; use TCP or DNS, or a DNSHealthCheckProbe with a hostname',
  ])
  t.strictSame(of('*.k.example.com', 'TCP'), [])
  t.strictSame(of('k.example.com', 'HTTPS'), [])
  t.strictSame(of('*.k.example.com', 'HTTPS', { 'kuadrant.io/type': 'merged' }), [])
})

t.test('delegate in a manifest', async (t) => {
  for (const [delegate, origin, want] of [
    [true, 'manifest', /^delegate has no effect in a manifest, .*: the endpoints are served as/],
    [true, 'cluster', /^$/],
    [false, 'manifest', /^$/],
  ] as const) {
    const resource = {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'a' },
      spec: { rootHost: 'k.example.com', delegate, endpoints: [] },
    }
    const served = validateResource(resource, SERVED)
    const record = served.kind === 'record' ? served.record : undefined
    const got = findIgnored(resource, record, origin).map(({ message }) => message)
    t.match(got.join(), want)
  }
})

t.test('endpoints outside of the root host', async (t) => {
  const names = [
    'k.example.com',
    'X.example.com',
    'y.k.example.com',
    'x.example.com',
    'badk.example.com',
  ]
  const of = (labels: { readonly [key: string]: string }, rootHost: string): string[] => {
    const resource = {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'a', labels },
      spec: {
        rootHost,
        endpoints: names.map((dnsName) => ({ dnsName, recordType: 'A', targets: ['192.0.2.1'] })),
      },
    }
    const strict = validateResource(resource)
    const served = validateResource(resource, SERVED)
    if (served.kind !== 'record') return ['refused']
    t.equal(strict.kind, 'refused')
    return findIgnored(resource, served.record).map(({ path, message }) => {
      return `${path.join('.')}: ${message}`
    })
  }
  for (const rootHost of ['k.example.com', '*.K.example.com']) {
    t.match(of({}, rootHost), [
      /^spec\.endpoints\.1\.dnsName: X\.example\.com is outside of the rootHost .*: it is served, but/,
      /^spec\.endpoints\.3\.dnsName: x\.example\.com is outside/,
      /^spec\.endpoints\.4\.dnsName: badk\.example\.com is outside/,
    ])
  }
  t.strictSame(of({ 'kuadrant.io/coredns-zone-name': 'kdrnt' }, 'k.example.com.kdrnt'), ['refused'])
})

t.test('endpoints that no client can use', async (t) => {
  const of = (recordType: string, targets: string[], dnsName = 'k.example.com'): string[] => {
    const resource = {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'a' },
      spec: { rootHost: 'k.example.com', endpoints: [{ dnsName, recordType, targets }] },
    }
    const served = validateResource(resource, SERVED)
    if (served.kind !== 'record') return [JSON.stringify(served)]
    return findIgnored(resource, served.record).map(({ path, message }) => {
      return `${path.slice(2).join('.')}: ${message}`
    })
  }
  for (const [type, targets, wanted] of [
    [
      'A',
      ['192.0.2.1', '0.0.0.0'],
      ['0.targets.1: no client can connect to 0.0.0.0 (unspecified) of k'],
    ],
    ['A', ['224.0.0.1', '239.1.2.3'], ['224.0.0.1 (multicast)', '239.1.2.3 (multicast)']],
    ['A', ['255.255.255.255'], ['255.255.255.255 (broadcast)']],
    ['AAAA', ['::', 'FF02::1'], [':: (unspecified)', 'FF02::1 (multicast)']],
    ['A', ['0.0.0.1', '127.0.0.1', '240.0.0.1', '255.255.255.254', '10.0.0.1'], []],
    ['AAAA', ['::1', 'fe80::1', 'fd00::1', '::ffff:192.0.2.1'], []],
    ['TXT', ['0.0.0.0', '*'], []],
  ] as const) {
    const got = of(type, [...targets])
    t.equal(got.length, wanted.length, `${targets}: ${got}`)
    for (const [i, text] of wanted.entries()) t.ok(got[i]!.includes(text), text)
  }
  const label = 'x'.repeat(42)
  for (const name of [
    'k.example.com',
    '*.k.example.com',
    '*.a.k.example.com',
    `${label}.k.example.com`,
  ]) {
    t.strictSame(of('A', ['192.0.2.1'], name), [], name)
  }
  for (const name of ['a.*.k.example.com', '*.*.k.example.com', 'a*.k.example.com']) {
    t.match(of('A', ['192.0.2.1'], name), [
      /^0\.dnsName: .*k\.example\.com is not a wildcard, and answers only queries for this very name: /,
    ])
  }
})
