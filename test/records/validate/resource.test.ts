import t from 'tap'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import type { Endpoint, Resource } from '../../../src/records/dns-record.ts'
import { packRecord, unpackRecord } from '../../../src/records/pack.ts'
import { itemsOf, validateResource } from '../../../src/records/validate/resource.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

type Fields = { readonly [key: string]: YamlValue }

function resource(endpoint: Fields, spec: Fields = {}, metadata: Fields = {}): YamlValue {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', namespace: 'n', ...metadata },
    spec: { rootHost: 'app.k.example.com', endpoints: [{ ...GOOD, ...endpoint }], ...spec },
  }
}

const GOOD: Fields = {
  dnsName: 'app.k.example.com',
  recordType: 'A',
  recordTTL: 60,
  targets: ['192.0.2.1'],
}
const property = (name: string, value: YamlValue): Fields => ({
  providerSpecific: [{ name, value }],
})

function nested(depth: number): YamlValue {
  let value: YamlValue = []
  for (let i = 0; i < depth; i++) value = [value]
  return value
}

function endpointOf(got: Resource): Endpoint {
  if (got.kind !== 'record') throw new Error(JSON.stringify(got))
  return got.record.endpoints[0]!
}

const REFUSED: readonly { name: string; given: YamlValue; want: RegExp; path: string }[] = [
  {
    name: 'an unknown type',
    given: resource({ recordType: 'DNAME' }),
    want: /recordType "DNAME" must be one of A/,
    path: 'spec.endpoints.0.recordType',
  },
  {
    name: 'no type',
    given: resource({ recordType: null }),
    want: /recordType "" must be one of/,
    path: 'spec.endpoints.0.recordType',
  },
  {
    name: 'an address that is none',
    given: resource({ targets: ['192.0.2.256'] }),
    want: /is not an IPv4 address/,
    path: 'spec.endpoints.0.targets.0',
  },
  {
    name: 'an IPv4 address as AAAA',
    given: resource({ recordType: 'AAAA' }),
    want: /is not an IPv6 address/,
    path: 'spec.endpoints.0.targets.0',
  },
  {
    name: 'an address as CNAME',
    given: resource({ recordType: 'CNAME' }),
    want: /is an address; a name is needed/,
    path: 'spec.endpoints.0.targets.0',
  },
  {
    name: 'a name with a space',
    given: resource({ recordType: 'CNAME', targets: ['a b'] }),
    want: /is not a domain name/,
    path: 'spec.endpoints.0.targets.0',
  },
  {
    name: 'two CNAME targets',
    given: resource({ recordType: 'CNAME', targets: ['a.example', 'b.example'] }),
    want: /a CNAME must have one/,
    path: 'spec.endpoints.0.targets',
  },
  {
    name: 'a property whose value says itself what its text is',
    given: resource(property('weight', { toString: 1, valueOf: 1 })),
    want: /value must be a string, a number or a boolean/,
    path: 'spec.endpoints.0.providerSpecific.0.value',
  },
  {
    name: 'a property whose value is nested deeper than a stack',
    given: resource(property('weight', nested(100_000))),
    want: /value must be a string, a number or a boolean/,
    path: 'spec.endpoints.0.providerSpecific.0.value',
  },
  {
    name: 'a TTL that says itself what its text is',
    given: resource({ recordTTL: { toString: 1 } }),
    want: /recordTTL must be a string, a number or a boolean/,
    path: 'spec.endpoints.0.recordTTL',
  },
  {
    name: 'a set identifier beyond the bound',
    given: resource({ setIdentifier: 'x'.repeat(1025) }),
    want: /setIdentifier may have up to 1024 characters/,
    path: 'spec.endpoints.0.setIdentifier',
  },
  {
    name: 'strings of the gateway-local form that are too many for one record',
    given: resource(
      { dnsName: 'w.a.kdrnt', recordType: 'TXT', targets: Array(9).fill('x'.repeat(8000)) },
      { rootHost: 'a.kdrnt' },
      { labels: { 'kuadrant.io/coredns-zone-name': 'kdrnt' } },
    ),
    want: /has more strings than a record can contain/,
    path: 'spec.endpoints.0.targets',
  },
  {
    name: 'no targets',
    given: resource({ targets: [] }),
    want: /has no targets/,
    path: 'spec.endpoints.0.targets',
  },
  {
    name: 'too many targets',
    given: resource({ targets: Array(257).fill('192.0.2.1') }),
    want: /up to 256 targets/,
    path: 'spec.endpoints.0.targets',
  },
  {
    name: 'too many endpoints',
    given: resource({}, { endpoints: Array(1001).fill(GOOD) }),
    want: /up to 1000 endpoints/,
    path: 'spec.endpoints',
  },
  {
    name: 'an MX without a preference',
    given: resource({ recordType: 'MX', targets: ['mail.example'] }),
    want: /target "mail.example"/,
    path: 'spec.endpoints.0.targets.0',
  },
  {
    name: 'an open quotation mark',
    given: resource({ recordType: 'TXT', targets: ['"abc'] }),
    want: /unbalanced quotation marks/,
    path: 'spec.endpoints.0.targets.0',
  },
  {
    name: 'a continent that is none',
    given: resource(property('geo-code', 'GEO-US')),
    want: /^unexpected continent code\. "GEO-US"/,
    path: 'spec.endpoints.0.providerSpecific.0.value',
  },
  {
    name: 'a geo code that is none',
    given: resource(property('geo-code', 'notageocode')),
    want: /^unexpected geo code\. Prefix with GEO- for continents or use ISO_3166 Alpha 2 supported code for countries/,
    path: 'spec.endpoints.0.providerSpecific.0.value',
  },
  {
    name: 'one bad code in a list',
    given: resource(property('geo-code', 'IE,XX9')),
    want: /unexpected geo code/,
    path: 'spec.endpoints.0.providerSpecific.0.value',
  },
  {
    name: 'a negative weight',
    given: resource(property('weight', '-1')),
    want: /^invalid weight expected a value >= 0/,
    path: 'spec.endpoints.0.providerSpecific.0.value',
  },
  {
    name: 'a weight that is no number',
    given: resource(property('weight', 'heavy')),
    want: /^invalid weight expected a value >= 0/,
    path: 'spec.endpoints.0.providerSpecific.0.value',
  },
  {
    name: 'an absurd weight',
    given: resource(property('weight', '1000001')),
    want: /^invalid weight expected a value <= 1000000/,
    path: 'spec.endpoints.0.providerSpecific.0.value',
  },
  {
    name: 'a name outside the root host',
    given: resource({ dnsName: 'other.k.example.com' }),
    want: /^invalid endpoint discovered other\.k\.example\.com all endpoints should be equal to or end with the rootHost app\.k\.example\.com/,
    path: 'spec.endpoints.0.dnsName',
  },
  {
    name: 'a name that only ends with the letters of the root host',
    given: resource({ dnsName: 'badapp.k.example.com' }),
    want: /^invalid endpoint discovered/,
    path: 'spec.endpoints.0.dnsName',
  },
  {
    name: 'no name',
    given: resource({ dnsName: null }),
    want: /dnsName is required/,
    path: 'spec.endpoints.0.dnsName',
  },
  {
    name: 'a label of 64 octets',
    given: resource({ dnsName: `${'a'.repeat(64)}.app.k.example.com` }),
    want: /is not a domain name/,
    path: 'spec.endpoints.0.dnsName',
  },
  {
    name: 'a negative TTL',
    given: resource({ recordTTL: -1 }),
    want: /recordTTL must be an integer/,
    path: 'spec.endpoints.0.recordTTL',
  },
  {
    name: 'a TTL of 2^31',
    given: resource({ recordTTL: 2 ** 31 }),
    want: /recordTTL must be an integer/,
    path: 'spec.endpoints.0.recordTTL',
  },
  {
    name: 'no root host',
    given: resource({}, { rootHost: null }),
    want: /rootHost is required/,
    path: 'spec.rootHost',
  },
  {
    name: 'a root host of one label',
    given: resource({}, { rootHost: 'localhost' }),
    want: /is not a domain name/,
    path: 'spec.rootHost',
  },
  {
    name: 'a zone label that the root host is not in',
    given: resource({}, {}, { labels: { 'kuadrant.io/coredns-zone-name': 'other.example' } }),
    want: /names zone other\.example, but rootHost is not in that zone/,
    path: 'metadata.labels.kuadrant.io/coredns-zone-name',
  },
  {
    name: 'endpoints that are no list',
    given: resource({}, { endpoints: 'x' }),
    want: /endpoints must be a list/,
    path: 'spec.endpoints',
  },
  {
    name: 'another version',
    given: { ...(resource({}) as Fields), apiVersion: 'kuadrant.io/v1' },
    want: /apiVersion must be kuadrant\.io\/v1alpha1/,
    path: 'apiVersion',
  },
]

t.test('a record is refused whole, with the field and the reason', (t) => {
  for (const { name, given, want, path } of REFUSED) {
    const got = validateResource(given)
    if (got.kind !== 'refused') {
      t.fail(`${name}: ${got.kind}`)
      continue
    }
    t.match(got.problem.message, want, name)
    t.equal(got.problem.path.join('.'), path, `${name}: path`)
    t.equal(got.key, 'n/app', `${name}: key`)
  }
  t.end()
})

const TARGETS: readonly { name: string; type: string; given: string; want: string }[] = [
  { name: 'an A', type: 'A', given: '192.0.2.1', want: '192.0.2.1' },
  { name: 'an AAAA', type: 'AAAA', given: '2001:DB8::1', want: '2001:db8::1' },
  {
    name: 'a CNAME, lower-cased',
    type: 'CNAME',
    given: 'Www.Example.ORG',
    want: 'www.example.org.',
  },
  {
    name: 'an NS with its final dot',
    type: 'NS',
    given: 'ns1.example.org.',
    want: 'ns1.example.org.',
  },
  {
    name: 'a TXT without quotation marks',
    type: 'TXT',
    given: 'v=spf1 "x" -all',
    want: '"v=spf1 \\"x\\" -all"',
  },
  {
    name: 'a TXT in quotation marks',
    type: 'TXT',
    given: '"heritage=external-dns"',
    want: '"heritage=external-dns"',
  },
  { name: 'a TXT of two strings', type: 'TXT', given: '"a b" "c\\"d"', want: '"a b" "c\\"d"' },
  { name: 'an MX', type: 'MX', given: '10 mail.example.org', want: '10 mail.example.org.' },
  {
    name: 'an SRV',
    type: 'SRV',
    given: '1 2 5060 sip.example.org',
    want: '1 2 5060 sip.example.org.',
  },
  {
    name: 'a CAA',
    type: 'CAA',
    given: '0 issue "ca.example.net"',
    want: '0 issue "ca.example.net"',
  },
  { name: 'a PTR', type: 'PTR', given: 'host.example.org', want: 'host.example.org.' },
]

t.test('targets are read in external-dns text form', (t) => {
  for (const { name, type, given, want } of TARGETS) {
    const endpoint = endpointOf(validateResource(resource({ recordType: type, targets: [given] })))
    t.equal(printRdata(endpoint.type, endpoint.rdata[0]!), want, name)
  }
  const long = endpointOf(
    validateResource(resource({ recordType: 'TXT', targets: ['x'.repeat(300)] })),
  )
  t.strictSame([long.rdata[0]![0], long.rdata[0]![256], long.rdata[0]!.length], [255, 45, 302])
  for (const [type, target] of [
    ['HTTPS', '1 . alpn=h2,h3'],
    ['SVCB', '1 svc.example.org port=8443'],
    ['NAPTR', '100 10 "u" "E2U+sip" "!^.*$!sip:x@example.org!" .'],
  ]) {
    t.equal(
      validateResource(resource({ recordType: type!, targets: [target!] })).kind,
      'record',
      String(type),
    )
  }
  t.end()
})

t.test('properties say whom an endpoint is for and how much it weighs', (t) => {
  const read = (fields: Fields) => {
    const { weight, codes, isDefault } = endpointOf(validateResource(resource(fields)))
    return [weight, codes.map((c) => c.text).join(), isDefault]
  }
  t.strictSame(read({}), [undefined, '', false], 'nothing')
  t.strictSame(read(property('weight', '0')), [0, '', false], 'zero weight')
  t.strictSame(read(property('geo-code', 'ie, GEO-NA')), [undefined, 'IE,GEO-NA', false], 'a list')
  t.strictSame(read(property('geo-code', '*')), [undefined, '', true], 'the default code')
  t.strictSame(
    read({ ...property('geo-code', 'IE'), setIdentifier: 'default' }),
    [undefined, 'IE', true],
    'set identifier default with a code',
  )
  t.strictSame(
    read({ ...property('weight', '5'), setIdentifier: 'default' }),
    [5, '', false],
    'set identifier default without one',
  )
  t.strictSame(
    read({
      providerSpecific: [
        { name: 'geo-code', value: 'IE' },
        { name: 'geo-code', value: 'US' },
        { name: 'default', value: 'true' },
        { name: 'aws/weight', value: 'x' },
      ],
    }),
    [undefined, 'IE,US', true],
    'several',
  )
  t.end()
})

t.test('objects that must be ours are refused, not ignored', (t) => {
  const metadata = { name: 'a' }
  const apiVersion = 'kuadrant.io/v1alpha1'
  for (const { given, key, want, path } of [
    {
      given: { kind: 'DnsRecord', apiVersion },
      key: 'default/a',
      want: /^kind must be DNSRecord, not "DnsRecord"$/,
      path: ['kind'],
    },
    {
      given: { kind: 'dnshealthcheckprobe', apiVersion },
      key: 'DNSHealthCheckProbe default/a',
      want: /^kind must be DNSHealthCheckProbe, /,
      path: ['kind'],
    },
    {
      given: { kind: 'DNSRecord' },
      key: 'default/a',
      want: /^apiVersion must be kuadrant\.io\/v1alpha1$/,
      path: ['apiVersion'],
    },
    {
      given: { kind: 'DNSRecord', apiVersion: 1 },
      key: 'default/a',
      want: /^apiVersion must be/,
      path: ['apiVersion'],
    },
    {
      given: { kind: 'DNSRecord', apiVersion: 'kuadrant.io' },
      key: 'default/a',
      want: /^apiVersion must be .*, not "kuadrant\.io"$/,
      path: ['apiVersion'],
    },
  ]) {
    const problem = { path, message: want }
    t.match(validateResource({ ...given, metadata }), { kind: 'refused', key, problem })
  }
  t.end()
})

t.test('objects of others and objects being deleted are ignored', (t) => {
  t.equal(validateResource({ kind: 'ConfigMap', apiVersion: 'v1' }).kind, 'other')
  t.equal(validateResource({ kind: 'DNSRecord', apiVersion: 'other.io/v1' }).kind, 'other')
  t.equal(validateResource({ kind: 'DNSRecord', apiVersion: 'kuadrant.iota/v1' }).kind, 'other')
  t.equal(validateResource({ kind: 'DNSPolicy', apiVersion: 'kuadrant.io/v1' }).kind, 'other')
  t.equal(validateResource(null).kind, 'other')
  t.match(validateResource('text'), { kind: 'refused', key: '', problem: { path: [] } })
  t.match(validateResource([]), { kind: 'refused', key: '', problem: { path: [] } })
  t.equal(
    validateResource(resource({}, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })).kind,
    'other',
  )
  t.strictSame(itemsOf({ kind: 'List', items: [1, 2] }), [1, 2])
  t.strictSame(itemsOf({ kind: 'DNSRecordList', items: [] }), [])
  t.end()
})

t.test('a wildcard root host holds names below it', (t) => {
  const got = validateResource(
    resource({ dnsName: '*.k.example.com' }, { rootHost: '*.k.example.com' }),
  )
  t.equal(got.kind, 'record')
  t.end()
})

t.test('a merged record may have more endpoints', async (t) => {
  const labels = [
    { 'kuadrant.io/type': 'merged' },
    { 'kuadrant.io/authoritative-record': 'true' },
    { 'kuadrant.io/coredns-zone-name': 'kdrnt' },
  ]
  for (const label of labels) {
    const isLocal = 'kuadrant.io/coredns-zone-name' in label
    const suffix = isLocal ? '.kdrnt' : ''
    const endpoint = { ...GOOD, dnsName: `app.k.example.com${suffix}` }
    const of = (count: number) => {
      const rootHost = `app.k.example.com${suffix}`
      const endpoints = Array(count).fill(endpoint)
      return validateResource(resource({}, { rootHost, endpoints }, { labels: label }))
    }
    t.equal(of(8000).kind, 'record', JSON.stringify(label))
    t.match(of(8001), { problem: { message: /up to 8000 endpoints/ } })
  }
})

t.test('a record knows that its host is a wildcard, over packing too', async (t) => {
  for (const rootHost of ['*.app.k.example.com', 'app.k.example.com']) {
    const got = validateResource(resource({}, { rootHost }))
    if (got.kind !== 'record') throw new Error(JSON.stringify(got))
    t.equal(got.record.isWildcardHost, rootHost.startsWith('*.'))
    t.equal(unpackRecord(packRecord(got.record)).isWildcardHost, got.record.isWildcardHost)
  }
})

t.test('packing a record and unpacking it gives the record', (t) => {
  const fields = {
    ...property('geo-code', 'IE,US'),
    setIdentifier: 'é',
    targets: ['192.0.2.1', '192.0.2.2'],
  }
  const got = validateResource(
    resource(
      fields,
      {},
      { creationTimestamp: '2026-01-02T03:04:05Z', labels: { 'kuadrant.io/type': 'merged' } },
    ),
  )
  if (got.kind !== 'record') throw new Error('refused')
  const { namespace, name, ...content } = got.record
  const packed = packRecord(got.record)
  const plain = (value: unknown) =>
    JSON.parse(JSON.stringify(value, (_, v) => (v instanceof Uint8Array ? [...v] : v)))
  t.strictSame(plain(unpackRecord(packed)), plain(content))
  t.strictSame([content.isAggregate, content.isWildcardHost], [true, false])
  t.strictSame([namespace, name], ['n', 'app'])
  t.end()
})

t.test(
  'a length that does not fit is never packed: it would make endpoints of what follows',
  async (t) => {
    const got = validateResource(resource({}))
    if (got.kind !== 'record') throw new Error(JSON.stringify(got))
    const [endpoint] = got.record.endpoints
    const endpoints = [{ ...endpoint!, setIdentifier: 'x'.repeat(65_536) }]
    t.throws(() => packRecord({ ...got.record, endpoints }), /assertion failed/)
  },
)
