import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { ClusterServer } from '../../support/cluster-server.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'
import { OperatorFixture } from '../reconcile/stage.ts'

const HOST = 'k.example.com'
const WWW = `www.${HOST}`
const CNAME = { dnsName: WWW, recordType: 'CNAME', recordTTL: 60, targets: ['lb.example.net'] }
const A = { dnsName: WWW, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }
const API = { dnsName: `api.${HOST}`, recordType: 'A', recordTTL: 60, targets: ['192.0.2.3'] }
const CNAME_LOSES = `${WWW} CNAME lb.example.net of a/second is not served: a/first, which takes precedence, has A 192.0.2.1, and a CNAME must be alone; delete one of the two`
const FIRST_LOSES = `${WWW} CNAME lb.example.net of a/first is not served: a/second, which takes precedence, has A 192.0.2.1, and a CNAME must be alone; delete one of the two`
const READY = 'True ProviderSuccess: Provider ensured the dns record'
const FAILED = 'False ProviderError: The DNS provider failed to ensure the record: '

interface Given {
  readonly endpoints: readonly ApiObject[]
  readonly second?: number
  readonly name?: string
  readonly spec?: ApiObject
}

function record(fixture: OperatorFixture, given: Given): void {
  const { endpoints, second = 0, name = 'first', spec = {} } = given
  const metadata = { creationTimestamp: `2026-01-01T00:00:0${second}Z` }
  fixture.cluster.put(dnsRecord({ name, metadata, spec: { endpoints, ...spec } }))
}

function condition(fixture: OperatorFixture, name: string, type: string): string {
  const conditions = fixture.field(name, 'status', 'conditions') as readonly ApiObject[]
  const found = conditions.find((one) => one.type === type)
  return found === undefined ? '' : `${found.status} ${found.reason}: ${found.message}`
}

async function settle(fixture: OperatorFixture): Promise<void> {
  for (const key of [...fixture.cluster.records.keys()].sort()) await fixture.reconcile(key)
}

/** Types and names of `status.endpoints`. */
function published(fixture: OperatorFixture, name: string): readonly string[] {
  const endpoints = fixture.field(name, 'status', 'endpoints') as readonly ApiObject[]
  return endpoints.map(({ dnsName, recordType }) => `${dnsName} ${recordType}`)
}

/** Types that a nameserver of the cluster serves at WWW. */
function servedTypes(fixture: OperatorFixture): readonly string[] {
  const server = new ClusterServer()
  server.apply(fixture.cluster.records.values())
  const keys = [...server.sets.keys()].filter((key) => key.startsWith(`${WWW}. `))
  return keys.map((key) => key.replace('. ', ' '))
}

t.test(
  'of records with a CNAME and another type at one name, the older one is served',
  async (t) => {
    for (const { name, first, second, ready, served, texts } of [
      {
        name: 'the CNAME is younger',
        first: { endpoints: [A] },
        second: { endpoints: [CNAME], second: 1 },
        ready: FAILED + CNAME_LOSES,
        served: [],
        texts: CNAME_LOSES,
      },
      {
        name: 'the CNAME is older',
        first: { endpoints: [CNAME] },
        second: { endpoints: [A], second: 1 },
        ready: `${FAILED}${WWW} A 192.0.2.1 of a/second is not served: a/first, which takes precedence, has CNAME lb.example.net, and a CNAME must be alone; delete one of the two`,
        served: [],
        texts: /^False RecordConflict: /,
      },
      {
        name: 'both are as old: the id decides, and that of the second is lower',
        first: { endpoints: [CNAME] },
        second: { endpoints: [A] },
        ready: READY,
        served: [`${WWW} A`],
        texts: '',
      },
      {
        name: 'a part of a record',
        first: { endpoints: [A] },
        second: { endpoints: [CNAME, API], second: 1 },
        ready: READY,
        served: [`api.${HOST} A`],
        texts: CNAME_LOSES,
      },
      {
        name: 'records of different zones',
        first: { endpoints: [A], spec: { providerRef: { name: 'other' } } },
        second: { endpoints: [CNAME], second: 1 },
        ready: READY,
        served: [`${WWW} CNAME`],
        texts: '',
      },
    ]) {
      const fixture = new OperatorFixture()
      fixture.cluster.put(secret('a', 'other', { ZONES: 'example.com' }))
      record(fixture, first)
      record(fixture, { ...second, name: 'second' })
      await settle(fixture)
      const isFirst = !name.startsWith('both')
      t.equal(condition(fixture, 'first', 'Ready'), isFirst ? READY : FAILED + FIRST_LOSES, name)
      t.equal(condition(fixture, 'first', 'EndpointsServed') === '', isFirst, name)
      t.equal(condition(fixture, 'second', 'Ready'), ready, name)
      t.strictSame(published(fixture, 'second'), served, name)
      const told = condition(fixture, 'second', 'EndpointsServed')
      t.match(told, texts === '' ? /^$/ : texts, name)
      if (!name.includes('zones')) {
        const all = [...published(fixture, 'first'), ...published(fixture, 'second')]
        const wanted = all.filter((one) => one.startsWith(WWW))
        t.strictSame(servedTypes(fixture), wanted, `${name}: the server agrees`)
      }
      fixture.cluster.records.delete('a/first')
      await settle(fixture)
      t.equal(condition(fixture, 'second', 'Ready'), READY, `${name}: the conflict is over`)
      t.match(condition(fixture, 'second', 'EndpointsServed'), texts === '' ? /^$/ : /^True/, name)
    }
  },
)

t.test('a CNAME at the apex of the zone acts as an ALIAS', async (t) => {
  const fixture = new OperatorFixture()
  record(fixture, { endpoints: [{ ...CNAME, dnsName: HOST }] })
  await settle(fixture)
  t.equal(condition(fixture, 'first', 'Ready'), READY)
  t.strictSame(published(fixture, 'first'), [`${HOST} CNAME`])
})

t.test('a record that loses a set identifier loses it for all types', async (t) => {
  const named = (recordType: string, target: string): ApiObject => {
    return { ...A, recordType, targets: [target], setIdentifier: 'one' }
  }
  const fixture = new OperatorFixture()
  record(fixture, { endpoints: [named('A', '192.0.2.1')] })
  const endpoints = [named('A', '192.0.2.2'), named('AAAA', '2001:db8::2'), API]
  record(fixture, { endpoints, second: 1, name: 'second' })
  await settle(fixture)
  const has = 'a/first, which takes precedence, has A 192.0.2.1 with the same set identifier "one"'
  const text = condition(fixture, 'second', 'EndpointsServed')
  for (const own of ['A 192.0.2.2', 'AAAA 2001:db8::2']) {
    t.match(text, `${WWW} ${own} of a/second is not served: ${has}; change one of the two`)
  }
  t.strictSame(published(fixture, 'second'), [`api.${HOST} A`])
})

t.test('one set identifier with two contents', async (t) => {
  const weighted = (target: string, location: string): ApiObject => ({
    ...A,
    targets: [target],
    setIdentifier: 'one',
    providerSpecific: [
      { name: 'weight', value: '7' },
      { name: 'location', value: location },
    ],
  })
  const here = '52.52,13.40'
  for (const { target, location, says } of [
    { target: '192.0.2.2', location: here, says: 'A 192.0.2.1' },
    { target: '192.0.2.1', location: '1,2', says: `location ${here}, not 1.00,2.00,` },
  ]) {
    const fixture = new OperatorFixture()
    record(fixture, { endpoints: [weighted('192.0.2.1', here)] })
    record(fixture, { endpoints: [weighted(target, location), API], second: 1, name: 'second' })
    await settle(fixture)
    t.match(
      condition(fixture, 'second', 'EndpointsServed'),
      `${WWW} A ${target} of a/second is not served: a/first, which takes precedence, has ${says} with the same set identifier "one"; change one of the two`,
    )
    t.strictSame(published(fixture, 'second'), [`api.${HOST} A`])
  }
})
