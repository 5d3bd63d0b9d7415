import fc from 'fast-check'
import t from 'tap'
import { PATH_CHARACTERS_MAX } from '../../src/records/health-check.ts'
import { SPEC } from '../../src/records/validate/fields.ts'
import { scanHealthCheck } from '../../src/records/validate/health-check.ts'
import { findIgnored } from '../../src/records/validate/ignored.ts'
import {
  type KnownFields,
  PROBE_STATUS_FIELDS,
  SPEC_FIELDS,
} from '../../src/records/validate/known-fields.ts'
import { validateResource } from '../../src/records/validate/resource.ts'
import type { YamlValue } from '../../src/yaml/scan-block-yaml.ts'
import { readCrd } from '../support/cluster.ts'

const PLURALS = ['dnsrecords', 'dnshealthcheckprobes']

/** The only version of a kind. */
function versionOf(plural: string) {
  return readCrd(plural).spec.versions[0]
}

function schemaOf(plural: string, part: 'spec' | 'status') {
  return versionOf(plural).schema.openAPIV3Schema.properties[part]
}

/** `path: type` of every field below a schema. */
// biome-ignore lint/suspicious/noExplicitAny: a schema is any mapping
function fieldsOf(schema: any, path = ''): string[] {
  if (schema.type === 'array') return fieldsOf(schema.items, `${path}[]`)
  if (schema.type !== 'object') return [`${path}: ${schema.type}`]
  const values = schema.additionalProperties
  if (values !== undefined) return fieldsOf(values, `${path}{}`)
  const below = Object.entries(schema.properties ?? {})
  if (below.length === 0) return [`${path}: object`]
  return below.flatMap(([name, field]) => fieldsOf(field, path === '' ? name : `${path}.${name}`))
}

/** `message` of every rule of a schema and what is in it. */
// biome-ignore lint/suspicious/noExplicitAny: a schema is any mapping
function rulesOf(schema: any): string[] {
  const own = (schema['x-kubernetes-validations'] ?? []).map(
    (rule: { message: string }) => rule.message,
  )
  const below = [...Object.values(schema.properties ?? {}), schema.items ?? []].flat()
  return [...own, ...below.flatMap(rulesOf)]
}

const ENDPOINT_FIELDS = (path: string): string[] => [
  `${path}[].dnsName: string`,
  `${path}[].recordType: string`,
  `${path}[].targets[]: string`,
  `${path}[].recordTTL: integer`,
  `${path}[].setIdentifier: string`,
  `${path}[].labels{}: string`,
  `${path}[].providerSpecific[].name: string`,
  `${path}[].providerSpecific[].value: string`,
]

const CONDITION_FIELDS = (path: string): string[] =>
  [
    'type: string',
    'status: string',
    'observedGeneration: integer',
    'lastTransitionTime: string',
    'reason: string',
    'message: string',
  ].map((field) => `${path}[].${field}`)

t.test('both kinds are namespaced, have a status of their own and one version', (t) => {
  for (const plural of PLURALS) {
    const { spec, metadata } = readCrd(plural)
    t.equal(metadata.name, `${plural}.kuadrant.io`)
    t.equal(spec.group, 'kuadrant.io')
    t.equal(spec.scope, 'Namespaced')
    t.equal(spec.names.plural, plural)
    t.equal(spec.versions.length, 1)
    t.match(spec.versions[0], { name: 'v1alpha1', served: true, storage: true })
    t.strictSame(spec.versions[0].subresources, { status: {} })
  }
  t.equal(readCrd('dnsrecords').spec.names.kind, 'DNSRecord')
  t.equal(readCrd('dnshealthcheckprobes').spec.names.kind, 'DNSHealthCheckProbe')
  t.end()
})

t.test('the fields of a DNSRecord', (t) => {
  t.strictSame(
    fieldsOf(schemaOf('dnsrecords', 'spec')).sort(),
    [
      'rootHost: string',
      'ownerID: string',
      'providerRef.name: string',
      'delegate: boolean',
      ...ENDPOINT_FIELDS('endpoints'),
      'healthCheck.path: string',
      'healthCheck.port: integer',
      'healthCheck.protocol: string',
      'healthCheck.interval: string',
      'healthCheck.failureThreshold: integer',
      'healthCheck.successThreshold: integer',
      'healthCheck.expectedStatus: string',
      'healthCheck.expectedBody: string',
      'healthCheck.service: string',
      'healthCheck.query: string',
      'healthCheck.expectedRcode: string',
      'healthCheck.expectedAddress: string',
      'healthCheck.additionalHeadersRef.name: string',
    ].sort(),
  )
  t.strictSame(
    fieldsOf(schemaOf('dnsrecords', 'status')).sort(),
    [
      ...CONDITION_FIELDS('conditions'),
      'observedGeneration: integer',
      'writeCounter: integer',
      ...ENDPOINT_FIELDS('endpoints'),
      ...CONDITION_FIELDS('healthCheck.conditions'),
      'healthCheck.probes[].id: string',
      'healthCheck.probes[].ipAddress: string',
      'healthCheck.probes[].host: string',
      'healthCheck.probes[].synced: boolean',
      ...CONDITION_FIELDS('healthCheck.probes[].conditions'),
      'ownerID: string',
      'providerRef.name: string',
      'domainOwners[]: string',
      'zoneID: string',
      'zoneDomainName: string',
      'remoteRecordStatuses{}: object',
      'group: string',
      'activeGroups: string',
      // Ours, beside upstream's.
      'served: string',
      'down: string',
      'peers[].address: string',
      'peers[].state: string',
      'peers[].generation: string',
      'peers[].site: string',
      'peers[].lastSeenTime: string',
      'peers[].serial: integer',
      'peers[].message: string',
      'peers[].relayed: boolean',
      ...ENDPOINT_FIELDS('peers[].endpoints'),
    ].sort(),
  )
  t.end()
})

t.test('the fields of a DNSHealthCheckProbe', (t) => {
  t.strictSame(
    fieldsOf(schemaOf('dnshealthcheckprobes', 'spec')).sort(),
    [
      'port: integer',
      'hostname: string',
      'testAddress: string',
      'address: string',
      'path: string',
      'protocol: string',
      'interval: string',
      'additionalHeadersRef.name: string',
      'failureThreshold: integer',
      'successThreshold: integer',
      'expectedStatus: string',
      'expectedBody: string',
      'service: string',
      'query: string',
      'expectedRcode: string',
      'expectedAddress: string',
      'allowInsecureCertificate: boolean',
    ].sort(),
  )
  t.strictSame(
    fieldsOf(schemaOf('dnshealthcheckprobes', 'status')).sort(),
    [
      'healthy: boolean',
      'consecutiveFailures: integer',
      'reason: string',
      'status: integer',
      'observedGeneration: integer',
    ].sort(),
  )
  t.end()
})

t.test('the API server and manifests accept the same paths', (t) => {
  const { pattern } = schemaOf('dnshealthcheckprobes', 'spec').properties.path
  const texts = [
    '/',
    '/a',
    '?',
    '?ready=1',
    '/a%20b',
    '/healthz',
    '/a/',
    'x',
    '/a b',
    ' /',
    '/\n',
    '/é',
  ]
  const accepts = (path: string): boolean => {
    try {
      scanHealthCheck({ path }, SPEC)
      return true
    } catch {
      return false
    }
  }
  for (const text of texts) t.equal(new RegExp(pattern, 'u').test(text), accepts(text), text)
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (text) => {
      return new RegExp(pattern, 'u').test(text) === accepts(text)
    }),
  )
  t.end()
})

/** The paths of `known`, in the form of `fieldsOf` without types. */
function pathsOfKnown(known: KnownFields, path = ''): string[] {
  return Object.entries(known).flatMap(([name, below]) => {
    const own = path === '' ? name : `${path}.${name}`
    return below === undefined ? [own] : pathsOfKnown(below, own)
  })
}

t.test(
  'manifests may have the fields that the API server accepts, and the name of a command',
  (t) => {
    for (const plural of PLURALS) {
      const kind: keyof typeof SPEC_FIELDS = readCrd(plural).spec.names.kind
      const paths = fieldsOf(schemaOf(plural, 'spec')).map((field) => {
        return field.replace(/(?:\[\]|\{\})?: .*$/, '').replaceAll('[]', '')
      })
      const known = pathsOfKnown(SPEC_FIELDS[kind]).filter((path) => !/(?:^|\.)command$/.test(path))
      t.strictSame(known.sort(), paths.sort(), kind)
    }
    const status = Object.keys(schemaOf('dnshealthcheckprobes', 'status').properties)
    t.strictSame([...PROBE_STATUS_FIELDS].sort(), status.sort())
    t.end()
  },
)

t.test('required fields, defaults and limits', (t) => {
  const record = schemaOf('dnsrecords', 'spec')
  t.strictSame(record.required, ['rootHost'])
  t.match(record.properties.rootHost, { minLength: 1, maxLength: 255 })
  t.match(record.properties.ownerID, { minLength: 6, maxLength: 36 })
  t.strictSame(record.properties.providerRef.required, ['name'])
  t.equal(record.properties.endpoints.minItems, 0)
  t.equal(
    record.properties.endpoints.items.required,
    undefined,
    'every field of an endpoint is optional',
  )
  t.equal(record.properties.endpoints.items.properties.recordTTL.format, 'int64')
  const { healthCheck } = record.properties
  const defaults = Object.entries<{ default?: unknown }>(healthCheck.properties).map(
    ([name, field]) => [name, field.default],
  )
  t.strictSame(Object.fromEntries(defaults), {
    path: undefined,
    port: 443,
    protocol: 'HTTPS',
    interval: '5m',
    failureThreshold: 5,
    successThreshold: undefined,
    expectedStatus: undefined,
    expectedBody: undefined,
    service: undefined,
    query: undefined,
    expectedRcode: undefined,
    expectedAddress: undefined,
    additionalHeadersRef: undefined,
  })
  const probe = schemaOf('dnshealthcheckprobes', 'spec')
  t.equal(JSON.stringify(probe).includes('"default"'), false, 'a probe has no defaults')
  const { path } = healthCheck.properties
  t.strictSame(probe.properties.path, path)
  t.equal(path.maxLength, PATH_CHARACTERS_MAX)
  t.end()
})

t.test('the rules, by what they say', (t) => {
  t.strictSame(
    rulesOf(schemaOf('dnsrecords', 'spec')).sort(),
    [
      'Failure threshold must be greater than 0',
      'Only HTTP, HTTPS, TCP, GRPC, GRPCS or DNS protocols are allowed',
      'Only ports 53, 80, 443, 1024-49151 are allowed',
      'OwnerID is immutable',
      "OwnerID can't be set if it was previously unset",
      "OwnerID can't be unset if it was previously set",
      'RootHost is immutable',
      'Success threshold must be greater than 0',
      "delegate can't be set to true if unset",
      "delegate can't be unset if true",
      'delegate is immutable',
      'delegate=true and providerRef are mutually exclusive',
    ].sort(),
  )
  t.end()
})

t.test('columns that kubectl shows', (t) => {
  const columns = (plural: string) =>
    versionOf(plural).additionalPrinterColumns.map(
      ({ name, priority = 0 }: { name: string; priority?: number }) => `${name} ${priority}`,
    )
  t.strictSame(columns('dnsrecords'), [
    'Host 0',
    'Ready 0',
    'Served 0',
    'Down 0',
    'Age 0',
    'Healthy 2',
    'Owner ID 2',
    'Zone Domain 2',
    'Zone ID 2',
  ])
  const ofProbes = ['Address 0', 'Healthy 0', 'Failures 0', 'Reason 0', 'Age 0']
  t.strictSame(columns('dnshealthcheckprobes'), ofProbes)
  t.end()
})

/** What our validation says about a record with that spec; '' = it is served. */
function refusalOf(spec: YamlValue): string {
  const metadata = { name: 'a', namespace: 'b' }
  const resource = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata,
    spec,
  })
  return resource.kind === 'refused' ? resource.problem.message : ''
}

t.test('our validation takes the root hosts that the schema takes', (t) => {
  const { pattern, maxLength } = schemaOf('dnsrecords', 'spec').properties.rootHost
  const table: readonly { name: string; given: string; want: boolean }[] = [
    { name: 'a host', given: 'a.example.org', want: true },
    { name: 'a wildcard', given: '*.a.example.org', want: true },
    { name: 'a single label', given: 'localhost', want: false },
    { name: 'a space', given: 'a b.example.org', want: false },
    { name: 'nothing', given: '', want: false },
    { name: 'more than 255 characters', given: `${'a.'.repeat(127)}aaa`, want: false },
  ]
  for (const { name, given, want } of table) {
    const takes = new RegExp(pattern).test(given) && given.length <= maxLength
    t.equal(takes, want, `schema: ${name}`)
    t.equal(refusalOf({ rootHost: given }) === '', want, `ours: ${name}`)
  }
  t.end()
})

t.test('our validation reads every field of an endpoint that the schema has', (t) => {
  const { properties } = schemaOf('dnsrecords', 'spec').properties.endpoints.items
  const good: Record<string, YamlValue> = {
    dnsName: 'a.example.org',
    recordType: 'A',
    targets: ['192.0.2.1'],
    recordTTL: 60,
    setIdentifier: 'one',
    labels: { any: 'thing' },
    providerSpecific: [{ name: 'weight', value: '1' }],
  }
  t.strictSame(Object.keys(properties).sort(), Object.keys(good).sort())
  t.equal(refusalOf({ rootHost: 'a.example.org', endpoints: [good] }), '')
  // Labels are an operator's own business.
  for (const field of Object.keys(good).filter((name) => name !== 'labels')) {
    const endpoint = { ...good, [field]: { of: 'another type' } }
    t.not(refusalOf({ rootHost: 'a.example.org', endpoints: [endpoint] }), '', field)
  }
  t.end()
})

t.test('fields of an endpoint that the schema lacks are the ones that are called ignored', (t) => {
  const { properties } = schemaOf('dnsrecords', 'spec').properties.endpoints.items
  const endpoint = Object.fromEntries(Object.keys(properties).map((name) => [name, null]))
  const ignored = findIgnored({ spec: { endpoints: [{ ...endpoint, nonsense: 1 }] } })
  t.strictSame(
    ignored.map(({ path }) => path),
    [['spec', 'endpoints', 0, 'nonsense']],
  )
  t.end()
})

t.test('our validation reads of a probe what the schema has', (t) => {
  const probe = (spec: YamlValue, status: YamlValue) =>
    validateResource({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSHealthCheckProbe',
      metadata: { name: 'a', labels: { 'kuadrant.io/health-probes-owner': 'b' } },
      spec,
      status,
    })
  const { address } = schemaOf('dnshealthcheckprobes', 'spec').properties
  const { healthy } = schemaOf('dnshealthcheckprobes', 'status').properties
  t.match([address, healthy], [{ type: 'string' }, { type: 'boolean' }])
  t.match(probe({ address: '192.0.2.1' }, { healthy: false }), {
    kind: 'probe',
    probe: { address: '192.0.2.1', isDown: true },
  })
  t.match(probe({ address: ['192.0.2.1'] }, { healthy: false }), { kind: 'refused' })
  const unclear = probe({ address: '192.0.2.1' }, { healthy: 'no' })
  t.match(unclear, { probe: { isDown: false } }, 'what is not said to be down is not')
  t.end()
})

/** Values that a schema takes, so far as its types go. */
// biome-ignore lint/suspicious/noExplicitAny: a schema is any mapping
function valuesOf(schema: any): fc.Arbitrary<YamlValue> {
  switch (schema.type) {
    case 'string':
      return fc.oneof(
        fc.string(),
        fc.constantFrom('A', 'a.example.org', '192.0.2.1', 'weight', '7'),
      )
    case 'integer':
      return fc.maxSafeInteger()
    case 'boolean':
      return fc.boolean()
    case 'array':
      return fc.array(valuesOf(schema.items), { maxLength: 3 })
    default: {
      if (schema.additionalProperties !== undefined) {
        return fc.dictionary(fc.string(), valuesOf(schema.additionalProperties), { maxKeys: 3 })
      }
      const fields = Object.entries(schema.properties ?? {})
      const arbitraries = fields.map(([name, field]) => [name, valuesOf(field)] as const)
      const mapping = fc.record(Object.fromEntries(arbitraries), { requiredKeys: [] })
      return mapping.map((value) => value as YamlValue)
    }
  }
}

t.test('whatever the schema takes is served or refused with the field to blame', (t) => {
  const spec = schemaOf('dnsrecords', 'spec')
  let served = 0
  fc.assert(
    fc.property(valuesOf(spec), (given) => {
      const host = { ...(given as object), rootHost: 'a.example.org' } as YamlValue
      const resource = validateResource({
        apiVersion: 'kuadrant.io/v1alpha1',
        kind: 'DNSRecord',
        metadata: { name: 'a', namespace: 'b' },
        spec: host,
      })
      if (resource.kind === 'record') served++
      else if (resource.kind === 'refused') t.ok(resource.problem.path.includes('spec'))
      else t.fail(resource.kind)
    }),
    { seed: 1, numRuns: 500 },
  )
  t.ok(served > 0, 'some are served')
  t.end()
})
