import t from 'tap'
import { validateResource } from '../../../src/records/validate/resource.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** The health check of a record, or why it is refused: field and message. */
function scan(healthCheck: Mapping): unknown {
  const found = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'a' },
    spec: { rootHost: 'a.k.example.com', healthCheck },
  })
  if (found.kind === 'refused') {
    return `${found.problem.path.join('.')}: ${found.problem.message}`
  }
  return found.kind === 'record' ? found.record.healthCheck : undefined
}

t.test('what a check may expect', async (t) => {
  const table: readonly { name: string; given: Mapping; want: unknown }[] = [
    {
      name: 'codes and ranges',
      given: { expectedStatus: '200, 204 ,301-308' },
      want: {
        expectedStatus: [
          { first: 200, last: 200 },
          { first: 204, last: 204 },
          { first: 301, last: 308 },
        ],
      },
    },
    {
      name: 'a number',
      given: { expectedStatus: 204 },
      want: { expectedStatus: [{ first: 204, last: 204 }] },
    },
    {
      name: 'a gRPC service',
      given: { protocol: 'GRPCS', service: 'shop.v1.Cart' },
      want: { protocol: 'GRPCS', grpcService: 'shop.v1.Cart' },
    },
    {
      name: 'a query',
      given: { protocol: 'DNS', port: 53, query: ' Health.Example.org.  AAAA' },
      want: { query: { name: 'Health.Example.org.', type: 28 }, expectedRcode: undefined },
    },
    {
      name: 'a command',
      given: { protocol: 'EXEC', command: 'check-app' },
      want: { protocol: 'EXEC', command: 'check-app' },
    },
    {
      name: 'an answer',
      given: {
        protocol: 'DNS',
        port: 53,
        query: '. NS',
        expectedRcode: 'REFUSED',
        expectedAddress: '2001:db8::1',
      },
      want: { expectedRcode: 5, expectedAddress: '2001:db8::1' },
    },
    { name: 'a text', given: { expectedBody: 'ok ✓' }, want: { expectedBody: 'ok ✓' } },
  ]
  for (const { name, given, want } of table) t.match(scan(given), want, name)
  const plain = scan({}) as object
  t.notOk('expectedStatus' in plain, 'fields that are missing take no memory')
  t.notOk('expectedBody' in plain)
})

t.test('a wrong field refuses the record with its place', async (t) => {
  const statuses = [
    'abc',
    '200,',
    '99',
    '199',
    '600',
    '308-301',
    '200-',
    '200 204',
    '2000',
    '1-599',
  ]
  for (const given of [...statuses, Array(17).fill('200').join(',')]) {
    t.match(scan({ expectedStatus: given }), /^spec\.healthCheck\.expectedStatus: .* got "/, given)
  }
  const table: readonly { name: string; given: Mapping; want: string }[] = [
    {
      name: 'a list of statuses',
      given: { expectedStatus: [200] },
      want: 'expectedStatus: expectedStatus must be a string, a number or a boolean',
    },
    {
      name: 'a text that is too long',
      given: { expectedBody: 'a'.repeat(1025) },
      want: 'expectedBody: expectedBody may have up to 1024 characters',
    },
    {
      name: 'a number as text',
      given: { expectedBody: 1 },
      want: 'expectedBody: expectedBody must be a string',
    },
    {
      name: 'a status of TCP',
      given: { protocol: 'TCP', expectedStatus: '200' },
      want: 'expectedStatus: expectedStatus needs protocol HTTP or HTTPS, not TCP',
    },
    {
      name: 'a text of TCP',
      given: { protocol: 'TCP', expectedBody: 'a' },
      want: 'expectedBody: expectedBody needs protocol HTTP or HTTPS, not TCP',
    },
  ]
  const dns = { protocol: 'DNS', port: 53, query: 'a.example A' }
  const ofDns: readonly { given: Mapping; want: string }[] = [
    { given: { port: 443 }, want: 'port: protocol DNS needs its port, such as port: 53' },
    { given: { query: 'a.example' }, want: 'query: query must be a name and a type, such as' },
    { given: { query: '' }, want: 'query: query must be' },
    { given: { query: 'a.example A IN' }, want: 'query: query must be' },
    { given: { query: 'a..example A' }, want: 'query: query must be' },
    { given: { query: 'a.example NOTYPE' }, want: 'query: query must be' },
    { given: { expectedRcode: 'noerror' }, want: 'expectedRcode: expectedRcode must be a code' },
    { given: { expectedRcode: 'BADVERS' }, want: 'expectedRcode: expectedRcode must be a code' },
    { given: { expectedAddress: 'a' }, want: 'expectedAddress: expectedAddress "a" is not an IP' },
    { given: { service: 'a' }, want: 'service: service needs protocol GRPC or GRPCS, not DNS' },
    { given: { protocol: 'GRPC' }, want: 'query: query needs protocol DNS, not GRPC' },
    { given: { protocol: 'grpc' }, want: 'protocol: protocol must be one of HTTP HTTPS TCP' },
  ]
  for (const { given, want } of ofDns) {
    const found = String(scan({ ...dns, ...given }))
    t.ok(found.startsWith(`spec.healthCheck.${want}`), found)
  }
  for (const command of ['', '/bin/true', 'a b', '-a', 'a'.repeat(64)]) {
    t.match(scan({ protocol: 'EXEC', command }), /^spec\.healthCheck\.command: command must be/)
  }
  for (const service of ['a b', 'a/b', 'a'.repeat(256)]) {
    t.match(scan({ protocol: 'GRPC', service }), /^spec\.healthCheck\.service: service must be/)
  }
  for (const { name, given, want } of table) {
    t.equal(scan(given), `spec.healthCheck.${want}`, name)
  }
})

t.test('a wildcard host has only checks that send no host name', async (t) => {
  const scanOf = (healthCheck: Mapping): boolean => {
    const found = validateResource({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'a' },
      spec: { rootHost: '*.k.example.com', healthCheck },
    })
    return found.kind === 'record' && found.record.healthCheck !== undefined
  }
  for (const protocol of ['HTTP', 'HTTPS', 'GRPC', 'GRPCS']) {
    t.equal(scanOf({ protocol }), false, protocol)
  }
  t.equal(scanOf({ protocol: 'TCP' }), true)
  t.equal(scanOf({ protocol: 'DNS', port: 53, query: 'a.example A' }), true)
})

t.test('a record that an operator derived has a check for what acts as an ALIAS', async (t) => {
  const zone = 'k.example.com'
  const check = { protocol: 'TCP', port: 8080 }
  const portOf = (type: string, host: string, healthCheck: Mapping): number | undefined => {
    const labels = { 'kuadrant.io/type': 'merged', 'kuadrant.io/coredns-zone-name': zone }
    const target = type === 'A' ? '192.0.2.1' : 'lb.example'
    const found = validateResource({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name: 'merged-a', labels },
      spec: {
        ...{ rootHost: host, healthCheck },
        endpoints: [
          { dnsName: host, recordType: type, targets: [target] },
          {
            dnsName: `www.${host.replace('*.', '')}`,
            recordType: 'CNAME',
            targets: ['lb.example'],
          },
        ],
      },
    })
    if (found.kind !== 'record') throw new Error(JSON.stringify(found))
    t.equal(found.record.isAggregate, true)
    return found.record.healthCheck?.port
  }
  const host = `a.${zone}`
  t.equal(portOf('ALIAS', host, check), 8080)
  t.equal(portOf('A', host, check), undefined)
  t.equal(portOf('ALIAS', host, { protocol: 'LATER' }), undefined, 'of a newer operator')
  t.equal(portOf('CNAME', zone, check), 8080, 'at the apex')
  t.equal(portOf('CNAME', zone.toUpperCase(), check), 8080)
  t.equal(portOf('A', zone, check), undefined)
  t.equal(portOf('CNAME', host, check), undefined)
  t.equal(portOf('CNAME', `*.${zone}`, check), undefined)
})
