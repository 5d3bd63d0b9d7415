import t from 'tap'
import { validateResource } from '../../../src/dnsrecord/validate/resource.ts'
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
  for (const { name, given, want } of table) {
    t.equal(scan(given), `spec.healthCheck.${want}`, name)
  }
})
