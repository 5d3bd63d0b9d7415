import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { ClusterServer } from '../../support/cluster-server.ts'
import { address, DelegationFixture, HOST } from '../../support/delegation-fixture.ts'
import { at, dnsRecord } from '../../support/operator-objects.ts'
import { DelegationSimulation, type SimulatedSite } from '../delegation-simulation.ts'

const WWW = `www.${HOST}`
const A = address(WWW, '192.0.2.1')
const API = address(`api.${HOST}`, '192.0.2.3')
const CNAME = { dnsName: WWW, recordType: 'CNAME', recordTTL: 60, targets: ['lb.example.net'] }
const READY = /^True ProviderSuccess/
const LOST = `${WWW} CNAME lb.example.net of a/app is not served: a/plain, which takes precedence, has A 192.0.2.1, and a CNAME must be alone; delete one of the two`
const YIELDED = `${WWW} A 192.0.2.1 of a/plain is not served: a/app, which takes precedence, has CNAME lb.example.net, and a CNAME must be alone; delete one of the two`
const FAILED = 'False ProviderError: The DNS provider failed to ensure the record: '

/** Gives a record its age: seconds after the others. */
function age(object: ApiObject, second: number): ApiObject {
  const creationTimestamp = `2026-01-01T00:00:0${second}Z`
  return { ...object, metadata: { ...(object.metadata as ApiObject), creationTimestamp } }
}

/** Types that a server of the cluster serves at WWW. */
function servedTypes(records: Iterable<ApiObject>): readonly string[] {
  const server = new ClusterServer()
  server.apply(records)
  const keys = [...server.sets.keys()].filter((key) => key.startsWith(`${WWW}. `))
  return keys.map((key) => key.split(' ')[1]!)
}

t.test('a delegating record says what another record keeps it from', async (t) => {
  for (const { name, second, endpoints, ready, served, plain, types } of [
    {
      name: 'it is younger',
      second: 5,
      endpoints: [CNAME],
      ready: FAILED + LOST,
      served: [],
      plain: READY,
      types: ['A'],
    },
    {
      name: 'a part of it',
      second: 5,
      endpoints: [CNAME, API],
      ready: READY,
      served: [`api.${HOST}`],
      plain: READY,
      types: ['A'],
    },
    {
      // The authoritative record itself is younger than both.
      name: 'it is older',
      second: 1,
      endpoints: [CNAME],
      ready: READY,
      served: [WWW],
      plain: FAILED + YIELDED,
      types: ['CNAME'],
    },
  ]) {
    const fixture = new DelegationFixture()
    const spec = { endpoints: [A], providerRef: { name: 'coredns' } }
    fixture.cluster.put(age(dnsRecord({ name: 'plain', spec }), 3))
    fixture.delegate('app', endpoints)
    fixture.cluster.put(age(fixture.cluster.stored('a/app')!, second))
    await fixture.settle()
    t.match(fixture.condition('app'), ready, name)
    t.match(fixture.condition('plain'), plain, name)
    t.strictSame(servedTypes(fixture.cluster.records.values()), types, name)
    const told = fixture.field('app', 'status', 'endpoints') as readonly ApiObject[]
    t.strictSame(
      told.map(({ dnsName }) => dnsName),
      served,
      name,
    )
    const condition = fixture.condition('app', 'EndpointsServed')
    t.equal(condition, name === 'it is older' ? '' : `False RecordConflict: ${LOST}`, name)
    t.equal(fixture.field('app', 'status', 'served'), `${served.length}/${endpoints.length}`, name)
    fixture.cluster.records.delete('a/plain')
    await fixture.settle()
    t.match(fixture.condition('app'), READY, `${name}: the conflict is over`)
  }
})

t.test('so does one of another cluster', async (t) => {
  const simulation = new DelegationSimulation()
  const first = simulation.add('first')
  const second = simulation.add('second', 'secondary')
  const spec = { endpoints: [A], providerRef: { name: 'coredns' } }
  first.cluster.put(age(dnsRecord({ name: 'plain', spec }), 3))
  second.delegate('app', [CNAME, API])
  second.cluster.put(age(second.cluster.stored('a/app')!, 5))
  await simulation.settle()
  t.match(second.ready('app', first), READY)
  const conditions = at(second.cluster.stored('a/app'), 'status', 'remoteRecordStatuses', 'first')
  t.match(JSON.stringify(conditions), `second: record of ${HOST} is not served: a/plain, which`)
  t.equal(at(second.cluster.stored('a/app'), 'status', 'served'), '1/2')
})

t.test('ages decide only if the clocks of all API servers are right', async (t) => {
  for (const { name, finds, isOlder } of [
    { name: 'they are right', finds: [], isOlder: true },
    { name: 'that of the other cluster is not', finds: [['dublin', 'zeta']], isOlder: false },
    { name: 'our own is not', finds: [['dublin', 'dublin']], isOlder: false },
    { name: 'the other cluster finds its own wrong', finds: [['zeta', 'zeta']], isOlder: false },
  ] as const) {
    const simulation = new DelegationSimulation()
    const dublin = simulation.add('dublin')
    const zeta = simulation.add('zeta', 'secondary')
    const spec = { endpoints: [A], providerRef: { name: 'coredns' } }
    dublin.cluster.put(age(dnsRecord({ name: 'plain', spec }), 5))
    zeta.delegate('app', [CNAME, API])
    zeta.cluster.put(age(zeta.cluster.stored('a/app')!, 3))
    const sites = new Map([dublin, zeta].map((site) => [site.name, site]))
    await simulation.settle()
    for (const [by, of] of finds) sites.get(by)!.clockFaults.set(of, 'the clock is wrong')
    await simulation.settle()
    t.strictSame(servedTypes(dublin.cluster.records.values()), [isOlder ? 'CNAME' : 'A'], name)
    t.match(dublin.ready('plain'), isOlder ? /^False/ : READY, name)
    const conditions = JSON.stringify(at(zeta.cluster.stored('a/app'), 'status'))
    t.equal(conditions.includes('RecordConflict'), !isOlder, name)
    for (const { clockFaults } of sites.values()) clockFaults.clear()
    await simulation.settle()
    t.strictSame(servedTypes(dublin.cluster.records.values()), ['CNAME'], `${name}: it is over`)
    t.match(dublin.ready('plain'), /^False/, `${name}: it is over`)
  }
})

/** `status.served` and `status.down` of the records of a cluster, by name. */
function columnsOf({ cluster }: SimulatedSite): Record<string, unknown> {
  const columns = [...cluster.records.values()].map((object) => {
    const { served, down } = at(object, 'status') as ApiObject
    const name = String(at(object, 'metadata', 'name')).replace(/-record-.*/, '')
    return [name, down === undefined ? served : `${served}, ${down} is down`]
  })
  return Object.fromEntries(columns)
}

t.test('all records count what is served of them', async (t) => {
  const simulation = new DelegationSimulation()
  const first = simulation.add('first')
  const second = simulation.add('second', 'secondary')
  const [ONE, TWO, THREE] = ['192.0.2.1', '192.0.2.2', '192.0.2.3'] as const
  first.delegate('app', [address(HOST, ONE)])
  second.delegate('app', [address(HOST, TWO, THREE)])
  const setDown = (site: SimulatedSite, ...down: readonly string[]): void => {
    const probes = down.map((one) => ({ address: one, health: 'down' as const }))
    site.cluster.health.set('a/app', { down, up: [], probes })
  }
  for (const { down, ours, theirs } of [
    { down: [[], []], ours: { app: '1/1', authoritative: '3/3' }, theirs: { app: '2/2' } },
    {
      down: [[], [TWO]],
      ours: { app: '1/1', authoritative: `2/3, ${TWO} is down` },
      theirs: { app: `1/2, ${TWO} is down` },
    },
    {
      down: [[ONE], [TWO]],
      ours: { app: `0/1, ${ONE} is down`, authoritative: `1/3, ${ONE} ${TWO} is down` },
      theirs: { app: `1/2, ${TWO} is down` },
    },
    {
      down: [[ONE], [TWO, THREE]],
      ours: { app: `1/1, ${ONE} is down`, authoritative: `3/3, ${ONE} ${TWO} ${THREE} is down` },
      theirs: { app: `2/2, ${TWO} ${THREE} is down` },
    },
  ] as const) {
    setDown(first, ...down[0])
    setDown(second, ...down[1])
    await simulation.settle()
    t.strictSame(columnsOf(first), ours)
    t.strictSame(columnsOf(second), theirs)
  }
})
