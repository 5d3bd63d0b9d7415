import t from 'tap'
import type { ApiObject, JsonValue } from '../../../src/kube/api.ts'
import { SERVED, validateResource } from '../../../src/records/validate/resource.ts'
import { RECORD_TYPES } from '../../../src/records/validate/target.ts'
import { DNSENDPOINT } from '../../../src/sources/objects/dnsendpoint/dnsendpoint-kind.ts'
import type { ObjectRecords } from '../../../src/sources/objects/object-kind.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'
import { objectOf, printProblems, printRecords, settledOf } from './settled.ts'

function read(
  endpoints: JsonValue,
  annotations: Readonly<Record<string, string>> = {},
): ObjectRecords | undefined {
  const kind = ['externaldns.k8s.io/v1alpha1', 'DNSEndpoint'] as const
  const object = objectOf(kind, 'app', annotations, { spec: { endpoints } })
  return settledOf(DNSENDPOINT, [{ plural: 'dnsendpoints', object }]).get('shop/app')
}

const A: ApiObject = { dnsName: 'a.example.com', recordType: 'A', targets: ['192.0.2.1'] }

function propertiesOf(properties: Readonly<Record<string, string>>): JsonValue {
  return Object.entries(properties).map(([name, value]) => ({ name, value }))
}

interface Case {
  readonly endpoints: JsonValue
  readonly annotations?: Readonly<Record<string, string>>
  readonly want: readonly string[] | undefined
  readonly problems?: readonly RegExp[]
}

const CASES: Readonly<Record<string, Case>> = {
  'hosts, TTL and labels': {
    endpoints: [
      { ...A, recordTTL: 300, labels: { owner: 'x' } },
      { ...A, dnsName: 'B.example.com.', recordTTL: 0 },
      null,
    ],
    want: ['a.example.com A 192.0.2.1 ttl=300', 'b.example.com A 192.0.2.1'],
  },
  'weights and set identifiers': {
    endpoints: [
      { ...A, setIdentifier: 'eu', providerSpecific: propertiesOf({ 'aws/weight': '10' }) },
      {
        ...A,
        setIdentifier: 'us',
        targets: ['192.0.2.2'],
        providerSpecific: propertiesOf({ weight: '20' }),
      },
    ],
    want: [
      'a.example.com A 192.0.2.1 id=eu weight=10',
      'a.example.com A 192.0.2.2 id=us weight=20',
    ],
  },
  'a derived set identifier': {
    endpoints: [{ ...A, providerSpecific: propertiesOf({ 'geo-code': 'DE' }) }],
    want: ['a.example.com A 192.0.2.1 id=shop/app geo-code=DE'],
  },
  'annotations of the object; those of endpoints come first': {
    endpoints: [
      { ...A, providerSpecific: propertiesOf({ 'aws/weight': '1' }), setIdentifier: 'x' },
      { ...A, dnsName: 'b.example.com' },
    ],
    annotations: { 'sextant.io/weight': '9', 'external-dns.kubernetes.io/aws-weight': '7' },
    want: [
      'a.example.com A 192.0.2.1 id=x weight=1',
      'b.example.com A 192.0.2.1 id=shop/app weight=9',
    ],
  },
  'equal endpoints are united': {
    endpoints: [A, { ...A, targets: ['192.0.2.2', '192.0.2.1'] }, { ...A, recordTTL: 5 }],
    want: ['a.example.com A 192.0.2.1,192.0.2.2', 'a.example.com A 192.0.2.1 ttl=5'],
  },
  'host names are not': {
    endpoints: ['x.example', 'y.example', 'x.example'].map((target) => {
      return { ...A, recordType: 'CNAME', targets: [target] }
    }),
    want: ['a.example.com CNAME x.example', 'a.example.com CNAME y.example'],
  },
  'an alias': {
    endpoints: [
      {
        ...A,
        recordType: 'CNAME',
        targets: ['lb.example.net'],
        providerSpecific: propertiesOf({ alias: 'true', 'aws/target-hosted-zone': 'Z' }),
      },
    ],
    want: ['a.example.com ALIAS lb.example.net'],
  },
  'a registry TXT is a TXT': {
    endpoints: [
      {
        dnsName: 'a-a.example.com',
        recordType: 'TXT',
        targets: ['"heritage=external-dns,external-dns/owner=x"'],
      },
    ],
    want: ['a-a.example.com TXT "heritage=external-dns,external-dns/owner=x"'],
  },
  'types that are not served': {
    endpoints: [
      { ...A, recordType: 'DNAME', targets: ['b.example'] },
      { ...A, recordType: 'TLSA', targets: ['3 1 1 00'] },
      { ...A, recordType: 'a' },
      A,
    ],
    want: ['a.example.com A 192.0.2.1'],
    problems: [
      /^spec.endpoints.0.recordType: DNAME of a.example.com is not served: recordType must be one of A /,
      /^spec.endpoints.1.recordType: TLSA of/,
      /^spec.endpoints.2.recordType: a of .*; did you mean A\?/,
    ],
  },
  'a property without an equal': {
    endpoints: [
      { ...A, providerSpecific: propertiesOf({ weight: '1', 'aws/health-check-id': 'x' }) },
      { ...A, dnsName: 'b.example.com' },
    ],
    want: ['b.example.com A 192.0.2.1'],
    problems: [/^spec.endpoints.0.providerSpecific.1.value: A of a.example.com is not served: aws/],
  },
  'an unknown property': {
    endpoints: [{ ...A, providerSpecific: propertiesOf({ wieght: '1' }) }],
    want: ['a.example.com A 192.0.2.1'],
    problems: [/^spec.endpoints.0.providerSpecific.0.name: .*did you mean weight/],
  },
  'an annotation that does not parse': {
    endpoints: [A],
    annotations: { 'sextant.io/location': 'here' },
    want: undefined,
    problems: [/^metadata.annotations.sextant.io\/location: invalid location/],
  },
  'no list': { endpoints: 'x', want: undefined, problems: [/^spec.endpoints: endpoints must be/] },
  'no mapping': { endpoints: ['x'], want: undefined, problems: [/^spec.endpoints.0: an endpoint/] },
  nothing: { endpoints: [], want: [] },
  'another controller': {
    endpoints: [A],
    annotations: { 'external-dns.alpha.kubernetes.io/controller': 'other' },
    want: [],
  },
}

t.test('a DNSEndpoint gives a record for each host', async (t) => {
  for (const [name, { endpoints, annotations = {}, want, problems = [] }] of Object.entries(
    CASES,
  )) {
    const found = read(endpoints, annotations)
    if (want?.length === 0) {
      t.equal(found, undefined, name)
      continue
    }
    t.strictSame(printRecords(found?.records), want, name)
    const printed = found === undefined ? [] : printProblems(found)
    t.equal(printed.length, problems.length, `${name}: ${printed.join('; ')}`)
    for (const [index, problem] of problems.entries()) t.match(printed[index], problem, name)
  }
})

/** A valid target of each type, as external-dns writes it. */
const TARGETS: Readonly<Record<string, string>> = {
  A: '192.0.2.1',
  AAAA: '2001:db8::1',
  CNAME: 'b.example.com',
  NS: 'ns1.example.com',
  TXT: 'v=spf1 -all',
  MX: '10 mail.example.com',
  SRV: '0 50 80 b.example.com.',
  CAA: '0 issue "ca.example"',
  PTR: 'b.example.com',
  NAPTR: '10 100 "S" "SIP+D2U" "" _sip._udp.example.com.',
  HTTPS: '1 . alpn=h2',
  SVCB: '1 b.example.com port=8443',
  ALIAS: 'b.example.com',
}

t.test('all types of records are served', async (t) => {
  for (const recordType of RECORD_TYPES.keys()) {
    const found = read([{ ...A, recordType, targets: [TARGETS[recordType] ?? ''] }])
    t.strictSame(found?.problems, [], recordType)
    for (const record of found?.records ?? []) {
      const resource = validateResource(record as unknown as YamlValue, SERVED)
      t.equal(resource.kind, 'record', `${recordType}: ${JSON.stringify(resource)}`)
    }
    t.equal(found?.records?.length, 1)
  }
})

t.test('names and targets are left to validation, which keeps the last valid record', async (t) => {
  for (const bad of [
    { ...A, targets: ['300.0.0.1'] },
    { ...A, targets: [] },
    { ...A, dnsName: 'a\u0007.example.com' },
    { ...A, dnsName: '__proto__' },
    { ...A, recordTTL: -1 },
  ]) {
    const found = read([bad, { ...A, dnsName: 'b.example.com' }])
    const kinds = found?.records?.map(
      (record) => validateResource(record as unknown as YamlValue).kind,
    )
    t.strictSame(kinds, ['refused', 'record'], JSON.stringify(bad))
  }
})

t.test('settings that are properties count for their host', async (t) => {
  const set = (dnsName: string, properties: Readonly<Record<string, string>>) => {
    return { ...A, dnsName, providerSpecific: propertiesOf(properties), setIdentifier: dnsName }
  }
  const found = read(
    [
      set('a.example.com', { 'aws/multi-value-answer': '', 'sextant/sticky': 'true' }),
      {
        ...set('a.example.com', { 'sextant/sticky': 'false' }),
        recordType: 'AAAA',
        targets: ['::2'],
      },
      set('b.example.com', { 'sextant/health-check': '{protocol: TCP}' }),
      { ...A, dnsName: 'c.example.com' },
    ],
    { 'sextant.io/all-down': 'closed', 'sextant.io/shift': 'to=b.example.com steps=50% bake=1m' },
  )
  const parts = found?.records?.map(({ metadata, spec }) => [
    metadata.annotations,
    spec.healthCheck,
  ])
  t.strictSame(parts, [
    [
      { 'sextant.io/all-down': 'closed', 'sextant.io/answers': '8', 'sextant.io/sticky': 'true' },
      undefined,
    ],
    [
      { 'sextant.io/all-down': 'closed', 'sextant.io/shift': 'to=b.example.com steps=50% bake=1m' },
      { protocol: 'TCP' },
    ],
    [{ 'sextant.io/all-down': 'closed' }, undefined],
  ])
  t.match(found?.problems, [
    {
      path: ['spec', 'endpoints', 1, 'providerSpecific'],
      message: /has another sticky, which counts/,
    },
  ])
})
