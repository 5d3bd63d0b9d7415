import fc from 'fast-check'
import t from 'tap'
import { textOf } from '../../src/kube/api.ts'
import { findIgnored } from '../../src/records/validate/ignored.ts'
import { validateResource } from '../../src/records/validate/resource.ts'
import type { ExternalEndpoint } from '../../src/webhook/external-endpoint.ts'
import { OWNER_LABEL, REGISTRY_ANNOTATION } from '../../src/webhook/host-record.ts'

import { recordLog } from '../support/recorded-log.ts'
import { endpoint, openSite, planOf, RECORDS, registryOf } from './external-dns.ts'

const A = endpoint({ dnsName: 'shop.example.org', recordType: 'A', targets: ['192.0.2.1'] })
const UNAVAILABLE = { message: /^the API server: / }
const AAAA = endpoint({ dnsName: 'shop.example.org', recordType: 'AAAA', targets: ['2001:db8::1'] })

t.test('one record per host has the endpoints, and its registry is not served', async (t) => {
  const { provider, records } = openSite()
  const put = [A, registryOf(A), AAAA, registryOf(AAAA)]
  t.match(await provider.apply({ remove: [], put }), { written: 1, failures: [] })
  const [record] = records()
  t.equal(records().length, 1)
  t.match(record, {
    metadata: {
      name: /^shop-example-org-webhook-[0-9a-f]{10}$/,
      namespace: 'dns',
      labels: { [OWNER_LABEL]: 'default', 'kuadrant.io/coredns-zone-name': 'example.org' },
      annotations: { [REGISTRY_ANNOTATION]: /heritage=external-dns/ },
    },
    spec: { rootHost: 'shop.example.org' },
  })
  t.same(
    record?.spec.endpoints.map(({ recordType }) => recordType),
    ['A', 'AAAA'],
  )
  t.equal(validateResource(JSON.parse(JSON.stringify(record))).kind, 'record')
  t.same(findIgnored(JSON.parse(JSON.stringify(record))), [])
  t.same(new Set(await provider.records()), new Set(put))
  t.same(await provider.apply({ remove: [], put }), { written: 0, removed: 0, failures: [] })
  await provider.apply({ remove: [A, registryOf(A)], put: [] })
  t.same(await provider.records(), [AAAA, registryOf(AAAA)])
  t.match(await provider.apply({ remove: [AAAA, registryOf(AAAA)], put: [] }), { removed: 1 })
  t.same(records(), [])
})

t.test('the longest zone is the label, and names are those of the DNS', async (t) => {
  const { provider, records } = openSite()
  const put = ['*.Sub.example.org', '_sip._tcp.example.org', 'bücher.example.org.'].map((dnsName) =>
    endpoint({ dnsName, recordType: 'TXT', targets: ['"a"'] }),
  )
  t.same((await provider.apply({ remove: [], put })).failures, [])
  const zones = new Map(
    records().map(({ metadata, spec }) => [
      spec.rootHost,
      metadata.labels?.['kuadrant.io/coredns-zone-name'],
    ]),
  )
  t.same(
    zones,
    new Map([
      ['*.sub.example.org', 'sub.example.org'],
      ['_sip._tcp.example.org', 'example.org'],
      ['xn--bcher-kva.example.org', 'example.org'],
    ]),
  )
})

t.test('hosts that cannot be stored are refused, and the others are stored', async (t) => {
  const cases: readonly [object, RegExp][] = [
    [{ dnsName: 'shop.example.net' }, /outside of --zones/],
    [{ dnsName: 'badexample.org' }, /outside of --zones/],
    [{ dnsName: 'a.internal.example.org' }, /outside of --zones/],
    [{ dnsName: '' }, /outside of --zones/],
    [{ dnsName: 'a\nb.example.org' }, /not a domain name/],
    [{ dnsName: '__proto__.example.org', recordType: '__proto__' }, /recordType/],
    [{ dnsName: 'constructor.example.org', targets: ['nonsense'] }, /not an IPv4 address/],
    [{ dnsName: 'none.example.org', targets: [] }, /no targets/],
    [{ dnsName: 'ttl.example.org', recordTTL: 2 ** 40 }, /recordTTL/],
    [
      {
        dnsName: 'weight.example.org',
        providerSpecific: [{ name: 'webhook/weight', value: '-1' }],
      },
      /weight/,
    ],
  ]
  for (const [fields, reason] of cases) {
    const { provider } = openSite()
    const bad = endpoint({ recordType: 'A', targets: ['192.0.2.1'], ...fields })
    const { failures } = await provider.apply({ remove: [], put: [bad, A] })
    t.equal(failures.length, 1)
    t.match(failures[0], reason)
    t.same(await provider.records(), [A])
  }
})

t.test('records of others are not read, changed or deleted', async (t) => {
  const { api, provider, records } = openSite()
  await provider.apply({ remove: [], put: [A] })
  const name = textOf(records()[0]?.metadata as never, 'name')
  const stranger = openSite({ api, owner: 'other' })
  t.same(await stranger.provider.records(), [])
  await stranger.provider.apply({ remove: [A], put: [] })
  t.same(await provider.records(), [A])
  for (const label of ['other', '']) {
    api.put(RECORDS, { metadata: { namespace: 'dns', name, labels: { [OWNER_LABEL]: label } } })
    const { failures } = await provider.apply({ remove: [A], put: [AAAA] })
    t.match(failures, [/exists and has another owner than default/])
    t.equal(records()[0]?.metadata.labels?.[OWNER_LABEL], label)
  }
})

t.test('what others wrote into a record is kept', async (t) => {
  const { api, provider, records } = openSite()
  const sticky = { ...A, properties: [{ name: 'webhook/sticky', value: '24 48' }] }
  await provider.apply({ remove: [], put: [sticky] })
  const { name, annotations } = records()[0]!.metadata
  t.equal(annotations?.['sextant.io/sticky'], '24 48')
  const drained = { ...annotations, 'sextant.io/drain': 'by hand' }
  api.put(RECORDS, {
    ...(records()[0] as object),
    metadata: { namespace: 'dns', name, annotations: drained },
  })
  t.match(await provider.apply({ remove: [], put: [A] }), { written: 1, failures: [] })
  t.same(records()[0]?.metadata.annotations, { 'sextant.io/drain': 'by hand' })
})

t.test('writers at the same time all succeed', async (t) => {
  const { api, provider } = openSite()
  const put = Array.from({ length: 5 }, (_, index) => ({ ...A, setIdentifier: `set-${index}` }))
  const sites = put.map(() => openSite({ api }))
  const outcomes = await Promise.all(
    sites.map((site, index) => site.provider.apply({ remove: [], put: [put[index]!] })),
  )
  t.same(
    outcomes.flatMap(({ failures }) => failures),
    [],
  )
  t.same(await provider.records(), put)
})

t.test('a writer that is always slower reports it', async (t) => {
  const { api, provider } = openSite()
  api.refuse = ({ method }) => (method === 'POST' ? 409 : undefined)
  const { failures } = await provider.apply({ remove: [], put: [A] })
  t.match(failures, [/other writers change .* constantly/])
})

t.test('an API server that does not answer', async (t) => {
  const { api, provider } = openSite()
  for (const status of [500, 429]) {
    api.refuse = () => status
    await t.rejects(provider.records(), UNAVAILABLE)
    await t.rejects(provider.apply({ remove: [], put: [A] }), UNAVAILABLE)
    t.same(await provider.adjust([A]), [A])
  }
  api.refuse = ({ method }) => (method === 'POST' ? 403 : undefined)
  t.match((await provider.apply({ remove: [], put: [A] })).failures, [/403/])
  api.refuse = () => undefined
  t.match(await provider.apply({ remove: [], put: [A] }), { written: 1 })
})

t.test('an endpoint that becomes invalid is kept as it is stored', async (t) => {
  const { log, lines } = recordLog()
  const { provider } = openSite({ log })
  await provider.apply({ remove: [], put: [A, registryOf(A)] })
  const bad = { ...A, properties: [{ name: 'webhook/geo-code', value: 'Europe' }] }
  const unknown = { ...bad, dnsName: 'new.example.org' }
  const outside = { ...bad, dnsName: 'new.example.net' }
  for (let round = 0; round < 2; round++)
    t.same(await provider.adjust([bad, unknown, outside]), [A])
  const text = lines.join('\n')
  t.match(
    text,
    /A shop\.example\.org is not changed: providerSpecific\[0\]\.value: unexpected geo code/,
  )
  t.equal(text.split('\n').filter((line) => line.includes('shop')).length, 1, 'logged once')
})

t.test('a host whose settings are invalid is kept as it is stored', async (t) => {
  const cases: readonly [string, string, RegExp][] = [
    ['webhook/sticky', 'much', /sticky/],
    ['webhook/shift', 'nowhere 10% 100% every 1h', /nowhere/],
    ['webhook/health-check', '{', /health-check/],
    ['webhook/health-check', 'protocol: EXEC\ncommand: reboot', /EXEC is not possible/],
    ['webhook/health-check', 'port: none', /port/],
  ]
  for (const [name, value, reason] of cases) {
    const { log, lines } = recordLog()
    const { provider } = openSite({ log })
    await provider.apply({ remove: [], put: [A] })
    const bad = { ...A, targets: ['192.0.2.9'], properties: [{ name, value }] }
    t.same(await provider.adjust([bad, AAAA]), [A], value)
    t.match(lines, [reason])
    const { failures } = await provider.apply({ remove: [], put: [bad] })
    t.match(failures, [reason])
  }
})

t.test('a health check is that of the record', async (t) => {
  const { provider, records } = openSite()
  const value = '{protocol: HTTP, port: 8080, path: /ready}'
  const checked = { ...A, properties: [{ name: 'webhook/health-check', value }] }
  await provider.apply({
    remove: [],
    put: (await provider.adjust([checked])) as ExternalEndpoint[],
  })
  t.match(records()[0]?.spec.healthCheck, { protocol: 'HTTP', port: 8080, path: '/ready' })
  await provider.apply({ remove: [], put: [A] })
  t.equal(records()[0]?.spec.healthCheck, undefined)
})

t.test('an alias is a CNAME for external-dns', async (t) => {
  const { provider, records } = openSite()
  const alias = endpoint({
    dnsName: 'example.org',
    recordType: 'CNAME',
    targets: ['lb.example.net'],
    providerSpecific: [{ name: 'alias', value: 'true' }],
  })
  t.same(await provider.adjust([alias]), [alias])
  t.match(await provider.apply({ remove: [], put: [alias] }), { written: 1 })
  t.match(records()[0]?.spec.endpoints, [{ recordType: 'ALIAS', targets: ['lb.example.net'] }])
  t.same(await provider.records(), [alias])
  const plain = { ...alias, properties: [{ name: 'alias', value: 'false' }] }
  t.same(await provider.adjust([plain]), [{ ...alias, properties: [] }])
})

t.test('a registry that is too large is refused', async (t) => {
  const { provider } = openSite()
  const put = Array.from({ length: 1000 }, (_, index) => {
    return registryOf({ ...A, setIdentifier: String(index).padStart(250, 'x') })
  })
  t.match((await provider.apply({ remove: [], put })).failures, [/TXT registry have more than/])
})

const TARGETS: Readonly<Record<string, readonly string[]>> = {
  A: ['192.0.2.1', '192.0.2.2'],
  AAAA: ['2001:DB8::1', '2001:db8::2'],
  CNAME: ['X.example.net'],
  TXT: ['"t"', 'heritage=other'],
  MX: ['1 x.example.net', 'nonsense'],
  SRV: ['1 2 3 x.example.net'],
  DNAME: ['x.example.net'],
}

const address = fc.record({
  type: fc.constantFrom(...Object.entries(TARGETS)),
  dnsName: fc.constantFrom('a.example.org', '*.a.example.org', 'B.example.org', 'c.example.net'),
  setIdentifier: fc.constantFrom('', 'one', 'two', 'default'),
  recordTTL: fc.constantFrom(0, 1, 300),
  targetsMax: fc.constantFrom(1, 2),
  providerSpecific: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom(
        ...['webhook/weight', 'weight', 'aws/weight', 'webhook/geo-code', 'webhook/default'],
        ...[
          'aws/geolocation-country-code',
          'aws/failover',
          'webhook/location',
          'webhook/sextant-sticky',
        ],
        ...['alias', 'webhook/unknown', 'aws/health-check-id', 'webhook/health-check'],
      ),
      value: fc.constantFrom('1', '120', 'DE', 'GEO-EU', 'true', '52.52,13.40', '24 48', 'PRIMARY'),
    }),
    { maxLength: 4, selector: ({ name }) => name },
  ),
})

const endpoints = fc.array(
  address.map(({ type: [recordType, targets], targetsMax, ...rest }) => {
    return endpoint({ ...rest, recordType, targets: targets.slice(0, targetsMax) })
  }),
  { maxLength: 8 },
)

t.test('property: after adjust and apply, the plan is empty', async (t) => {
  let applied = 0
  await fc.assert(
    fc.asyncProperty(endpoints, async (given) => {
      const { provider } = openSite()
      const wanted = unique(await provider.adjust(given))
      const owned = [...wanted, ...wanted.map((one) => registryOf(one))]
      const { failures } = await provider.apply(planOf([], owned))
      t.same(failures, [])
      applied += wanted.length
      const current = await provider.records()
      const again = unique(await provider.adjust(given))
      t.same(planOf(current, [...again, ...again.map((one) => registryOf(one))]), {
        remove: [],
        put: [],
      })
      t.same(unique(await provider.adjust(wanted)), wanted, 'a second adjustment changes nothing')
      const { removed } = await provider.apply({ remove: current, put: [] })
      t.equal(removed, new Set(wanted.map(({ dnsName }) => dnsName)).size)
    }),
    { numRuns: 200 },
  )
  t.ok(applied > 50, `${applied} endpoints`)
})

/** external-dns has one endpoint of a key. */
function unique(endpoints: readonly ExternalEndpoint[]): ExternalEndpoint[] {
  const seen = new Map(
    endpoints.map((one) => [JSON.stringify([one.dnsName, one.recordType, one.setIdentifier]), one]),
  )
  return [...seen.values()]
}
