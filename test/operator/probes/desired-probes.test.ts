import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import {
  desiredProbes,
  planProbes,
  withFreeNames,
} from '../../../src/operator/probes/desired-probes.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'

function record(spec: object, metadata: object = {}): DnsRecordView {
  return new DnsRecordView({
    metadata: { name: 'app', namespace: 'team', uid: 'u-1', ...metadata },
    spec: {
      rootHost: 'app.k.example.com',
      endpoints: [
        { dnsName: 'app.k.example.com', recordType: 'CNAME', targets: ['klb.app.k.example.com'] },
        { dnsName: 'klb.app.k.example.com', recordType: 'A', targets: ['192.0.2.2', '192.0.2.1'] },
        { dnsName: 'klb.app.k.example.com', recordType: 'AAAA', targets: ['2001:db8::1'] },
        { dnsName: 'x.app.k.example.com', recordType: 'CNAME', targets: ['LB.example.net.'] },
        { dnsName: 'y.app.k.example.com', recordType: 'TXT', targets: ['text'] },
      ],
      ...spec,
    },
  } as unknown as ApiObject)
}

const CHECK = {
  path: '/healthz',
  port: 443,
  protocol: 'HTTPS',
  interval: '5m',
  failureThreshold: 5,
}

// biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
const loose = (object: ApiObject | undefined): any => object
const namesOf = (probes: readonly ApiObject[]) => probes.map((probe) => loose(probe).metadata.name)

t.test('a probe for each leaf', (t) => {
  const check = { ...CHECK, expectedStatus: '200-299', expectedBody: 'ready' }
  const probes = desiredProbes(record({ healthCheck: check }), true)
  t.strictSame(namesOf(probes), [
    'app-192.0.2.1',
    'app-192.0.2.2',
    'app-2001-db8--1',
    'app-lb.example.net',
  ])
  t.strictSame(probes[0], {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSHealthCheckProbe',
    metadata: {
      name: 'app-192.0.2.1',
      namespace: 'team',
      labels: { 'kuadrant.io/health-probes-owner': 'app' },
      ownerReferences: [
        {
          apiVersion: 'kuadrant.io/v1alpha1',
          kind: 'DNSRecord',
          name: 'app',
          uid: 'u-1',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      ...check,
      hostname: 'app.k.example.com',
      address: '192.0.2.1',
      allowInsecureCertificate: true,
    },
  })
  t.end()
})

t.test('where the endpoints say that they are probed', async (t) => {
  const endpoint = { dnsName: 'app.k.example.com', recordType: 'A' }
  const test = (name: string, value: string) => ({ providerSpecific: [{ name, value }] })
  const given = record({
    healthCheck: CHECK,
    endpoints: [
      { ...endpoint, targets: ['192.0.2.1'], ...test('health-port', '8443') },
      { ...endpoint, targets: ['192.0.2.2'], ...test('health-address', '192.0.2.9') },
      { ...endpoint, targets: ['192.0.2.3', '192.0.2.1'] },
    ],
  })
  t.match(
    desiredProbes(given, true).map((probe) => probe.spec),
    [
      { address: '192.0.2.1', port: 8443, testAddress: undefined },
      { address: '192.0.2.2', port: 443, testAddress: '192.0.2.9' },
      { address: '192.0.2.3', port: 443, testAddress: undefined },
    ],
  )
})

t.test('records that ask for none', (t) => {
  const table: readonly { name: string; given: DnsRecordView; want: number }[] = [
    { name: 'without a health check', given: record({}), want: 0 },
    {
      name: 'on its way out',
      given: record({ healthCheck: CHECK }, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      want: 0,
    },
    {
      name: 'of a wildcard host',
      given: record({ healthCheck: CHECK, rootHost: '*.app.k.example.com' }),
      want: 0,
    },
    {
      name: 'of a wildcard host, by TCP',
      given: record({
        healthCheck: { ...CHECK, protocol: 'TCP' },
        rootHost: '*.app.k.example.com',
      }),
      want: 4,
    },
    {
      name: 'merged',
      given: record({ healthCheck: CHECK }, { labels: { 'kuadrant.io/type': 'merged' } }),
      want: 0,
    },
    {
      name: 'local',
      given: record(
        { healthCheck: CHECK },
        { labels: { 'kuadrant.io/coredns-zone-name': 'kdrnt' } },
      ),
      want: 0,
    },
    {
      name: 'with a check that can not be read',
      given: record({ healthCheck: { ...CHECK, interval: 'soon' } }),
      want: 0,
    },
  ]
  for (const { name, given, want } of table) t.equal(desiredProbes(given, true).length, want, name)
  t.end()
})

t.test('names and labels that would be too long', (t) => {
  const name = 'a'.repeat(250)
  const probes = desiredProbes(record({ healthCheck: CHECK }, { name }), true).map(loose)
  t.ok(probes.every(({ metadata }) => metadata.name.length <= 253))
  t.equal(new Set(namesOf(probes)).size, 4)
  t.match(probes[0].metadata.labels['kuadrant.io/health-probes-owner'], /^[0-9a-z]{8}$/)
  t.end()
})

t.test('from what there is to what is wanted', (t) => {
  const given = record({ healthCheck: CHECK })
  const desired = desiredProbes(given, true)
  const there = desired.map((probe) => ({ ...probe, status: { healthy: true } }))
  t.strictSame(planProbes(given, desired, there), { apply: [], remove: [], taken: [] })
  t.strictSame(namesOf(planProbes(given, desired, there.slice(1)).apply), ['app-192.0.2.1'])
  const changed = desiredProbes(record({ healthCheck: { ...CHECK, port: 80 } }), true)
  t.equal(planProbes(given, changed, there).apply.length, 4)
  t.strictSame(namesOf(planProbes(given, desired.slice(1), there).remove), ['app-192.0.2.1'])
  const strange = [
    { ...there[0], metadata: { name: 'app-192.0.2.1', namespace: 'team' } },
  ] as ApiObject[]
  t.match(planProbes(given, desired, strange), {
    taken: ['team/app-192.0.2.1'],
    apply: { length: 3 },
  })
  t.strictSame(planProbes(given, [], strange).remove, [], 'probes of other owners are kept')
  const leaving = { ...there[0], metadata: { ...loose(there[0]).metadata, deletionTimestamp: 'x' } }
  t.strictSame(planProbes(given, [], [leaving] as ApiObject[]).remove, [])
  t.end()
})

t.test('a name that a probe of another record has', (t) => {
  const given = record({ healthCheck: CHECK })
  const desired = desiredProbes(given, true)
  const known = new Map<string, ApiObject>()
  const choose = () => withFreeNames(given, desired, (key) => known.get(key))
  const put = (probe: ApiObject): void => {
    const { namespace, name } = loose(probe).metadata
    known.set(`${namespace}/${name}`, probe)
  }
  t.strictSame(choose(), desired)
  const controlledBy = (name: string, uid: string): ApiObject => {
    const owner = { kind: 'DNSRecord', name, uid, controller: true }
    return { ...desired[0], metadata: { ...loose(desired[0]).metadata, ownerReferences: [owner] } }
  }
  put(controlledBy('app', 'an earlier life'))
  t.strictSame(choose(), desired, 'of the same record of before: it is about to go')
  put(controlledBy('app-192', 'another'))
  const [moved] = choose()
  t.match(loose(moved).metadata.name, /^app-192\.0\.2\.1-[0-9a-z]{8}$/)
  t.strictSame(loose(moved).spec, loose(desired[0]).spec)
  t.strictSame(planProbes(given, choose(), [...known.values()]).taken, [])
  put(moved!)
  known.delete('team/app-192.0.2.1')
  t.strictSame(choose()[0], moved, 'it keeps the name')
  const twice = withFreeNames(given, [desired[0]!, desired[0]!], () => undefined)
  t.equal(new Set(namesOf(twice)).size, 2)
  t.end()
})
