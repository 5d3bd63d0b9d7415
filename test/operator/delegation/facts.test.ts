import fc from 'fast-check'
import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { readOwners } from '../../../src/operator/delegation/whole.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { annotated, ClusterServer } from '../../support/cluster-server.ts'
import {
  AUTHORITATIVE,
  address,
  DelegationFixture,
  HOST,
} from '../../support/delegation-fixture.ts'
import { at } from '../../support/operator-objects.ts'
import { runs } from '../../support/runs.ts'
import { DelegationSimulation, type SimulatedSite } from '../delegation-simulation.ts'

const SITES = 'sextant.io/sites'
const A = `${HOST}. A`
const ONE = '192.0.2.1'
const TWO = '192.0.2.2'

function setDown(fixture: DelegationFixture | SimulatedSite, name: string, ...down: string[]) {
  const probes = down.map((one) => ({ address: one, health: 'down' as const, reason: 'HTTP 503' }))
  fixture.cluster.health.set(`a/${name}`, { down, up: [], probes })
}

function annotate(fixture: DelegationFixture | SimulatedSite, name: string, annotations: object) {
  const key = `a/${name}`
  fixture.cluster.records.set(key, annotated(fixture.cluster.stored(key)!, { ...annotations }))
}

function serverOf(fixture: DelegationFixture | SimulatedSite, allDown?: string): ClusterServer {
  const settings = { allDown: allDown ?? 'open', sticky: undefined, failover: undefined }
  const server = new ClusterServer(settings)
  server.apply(fixture.cluster.records.values())
  return server
}

const steered = (site: string, target: string, ...properties: [string, string][]) => ({
  ...address(HOST, target),
  setIdentifier: site,
  providerSpecific: properties.map(([name, value]) => ({ name, value })),
})

t.test('all-down is decided per name, over all records of the host', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [address(HOST, ONE)])
  fixture.delegate('two', [address(HOST, TWO)])
  await fixture.settle()
  const table = [
    { down: [], want: `${ONE} ${TWO}` },
    { down: ['one'], want: TWO },
    { down: ['one', 'two'], want: `${ONE} ${TWO}` },
    { down: ['two'], want: ONE },
    { down: [], want: `${ONE} ${TWO}` },
  ]
  const server = new ClusterServer()
  for (const { down, want } of table) {
    setDown(fixture, 'one', ...(down.includes('one') ? [ONE] : []))
    setDown(fixture, 'two', ...(down.includes('two') ? [TWO] : []))
    await fixture.settle()
    t.strictSame(fixture.served(), [`${HOST} A ${want.replace(' ', ',')}`], `${down} in spec`)
    server.apply(fixture.cluster.records.values())
    t.equal(server.targets(A), want, `${down} at the server`)
    t.strictSame(await fixture.settle(), [], 'unchanged facts are not written again')
  }
  t.strictSame(server.refusals, [])
})

t.test('a failover list is checked against all records that delegate the host', async (t) => {
  const fixture = new DelegationFixture()
  const message = (): string => {
    const conditions = at(fixture.cluster.stored('a/one'), 'status', 'conditions')
    return (conditions as readonly ApiObject[]).map((one) => `${one.message}`).join()
  }
  fixture.delegate('one', [steered('eu', ONE, ['geo-code', 'GEO-EU'])])
  annotate(fixture, 'one', { 'sextant.io/failover': 'GEO-EU: spare' })
  await fixture.settle()
  t.match(
    message(),
    /failover names "spare", which no endpoint has; correct the annotation \(a\/one\)/,
  )
  fixture.delegate('two', [steered('spare', TWO)])
  await fixture.settle()
  t.notMatch(message(), /failover/)
})

t.test('a failover list is checked once all clusters have contributed', async (t) => {
  for (const isBackupThere of [true, false]) {
    const simulation = new DelegationSimulation()
    const [dublin, boston] = [simulation.add('dublin'), simulation.add('boston', 'secondary')]
    const server = new ClusterServer()
    boston.isUp = false
    dublin.delegate('app', [steered('eu', ONE, ['geo-code', 'GEO-EU'])])
    annotate(dublin, 'app', { 'sextant.io/failover': 'GEO-EU: backup' })
    const found: boolean[] = []
    const warns = () => {
      server.apply(dublin.cluster.records.values())
      found.push(/failover names "backup"/.test(dublin.ready('app') + server.conflicts.join()))
    }
    await simulation.pass(3, warns)
    boston.delegate('app', [steered(isBackupThere ? 'backup' : 'other', TWO)])
    dublin.restart()
    await simulation.pass(3, warns)
    boston.isUp = true
    await simulation.pass(8, isBackupThere ? warns : undefined)
    t.notOk(found.includes(true), 'before the other cluster has contributed')
    warns()
    t.equal(found.at(-1), !isBackupThere, 'afterwards')
    boston.isUp = false
    dublin.restart()
    t.strictSame(await simulation.settle(), [], 'a restart writes nothing')
  }
})

t.test("clients of a dead endpoint's code get another record's endpoint", async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [steered('eu', ONE, ['geo-code', 'GEO-EU'])])
  fixture.delegate('two', [steered('us', TWO, ['geo-code', 'GEO-NA'])])
  setDown(fixture, 'one', ONE)
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A ${TWO}`])
  const server = serverOf(fixture)
  t.equal(server.targets(A), TWO)
  const { endpoints } = server.sets.get(A)!
  t.strictSame(
    endpoints.map(({ candidates }) => candidates.length > 0),
    [false, true],
    'the dead one is known, and not served',
  )
})

t.test('a CNAME is left out if no record has a target of it in service', async (t) => {
  const fixture = new DelegationFixture()
  const cname = (name: string, target: string, id: string) => ({
    dnsName: name,
    recordType: 'CNAME',
    recordTTL: 60,
    setIdentifier: id,
    targets: [target],
    providerSpecific: [{ name: 'geo-code', value: id }],
  })
  const klb = `klb.${HOST}`
  const branch = (geo: string, target: string) => [
    cname(klb, `${geo.toLowerCase()}.${klb}`, geo),
    address(`${geo.toLowerCase()}.${klb}`, target),
  ]
  fixture.delegate('one', branch('GEO-EU', ONE))
  fixture.delegate('two', branch('GEO-NA', TWO))
  setDown(fixture, 'one', ONE)
  await fixture.settle()
  t.strictSame(fixture.served().toSorted(), [
    // The only address of its name: other programs keep it too.
    `geo-eu.${klb} A ${ONE}`,
    `geo-na.${klb} A ${TWO}`,
    `${klb} CNAME geo-na.${klb}`,
  ])
  t.equal(serverOf(fixture).targets(`${klb}. CNAME`), `geo-na.${klb}.`)
})

t.test('registry notes fit what is in spec, and no owner is forgotten', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [address(HOST, ONE, '192.0.2.9')])
  fixture.delegate('two', [address(HOST, TWO)])
  setDown(fixture, 'one', ONE)
  setDown(fixture, 'two', TWO)
  await fixture.settle()
  const notes = () => {
    const endpoints = fixture.field(AUTHORITATIVE, 'spec', 'endpoints') as readonly object[]
    return endpoints.flatMap((one) => {
      const { recordType, targets } = one as { recordType: string; targets: string[] }
      return recordType === 'TXT' ? [/targets=([^,"]*)/.exec(targets[0]!)?.[1]] : []
    })
  }
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.9`])
  t.strictSame(notes(), ['192.0.2.9'])
  const record = () => new DnsRecordView(fixture.cluster.stored(`a/${AUTHORITATIVE}`)!)
  t.equal(readOwners(record()).length, 2)
  await fixture.settleLater()
  t.equal((fixture.field('one', 'status', 'domainOwners') as string[]).length, 2)
  t.strictSame(fixture.field('two', 'status', 'endpoints'), [], 'nothing of it is published')
  fixture.cluster.markDeleted('a/one')
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A ${TWO}`], 'the last one is served although it is down')
  fixture.cluster.markDeleted('a/two')
  await fixture.settle()
  t.strictSame([...fixture.cluster.records.keys()], [])
})

t.test('settings of the original records are in force', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [address(HOST, ONE)])
  fixture.delegate('two', [address(HOST, TWO)])
  annotate(fixture, 'one', { 'sextant.io/sticky': 'true', 'sextant.io/all-down': 'closed' })
  await fixture.settle()
  const server = serverOf(fixture)
  t.strictSame(server.sets.get(A)?.sticky, { ipv4Bits: 24, ipv6Bits: 56 })
  setDown(fixture, 'one', ONE)
  setDown(fixture, 'two', TWO)
  await fixture.settle()
  t.equal(serverOf(fixture).sets.get(A), undefined, 'closed: no answer')
  t.strictSame(fixture.served(), [`${HOST} A ${ONE},${TWO}`], 'other programs do not know it')
})

t.test('all-down of the zone has its effect', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [address(HOST, ONE)])
  setDown(fixture, 'one', ONE)
  await fixture.settle()
  t.equal(serverOf(fixture).targets(A), ONE)
  t.equal(serverOf(fixture, 'closed').targets(A), undefined)
})

t.test('a drain takes out one record, until it ends', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [address(HOST, ONE)])
  fixture.delegate('two', [address(HOST, TWO)])
  const until = new Date(fixture.clock.now() + 60_000).toISOString()
  annotate(fixture, 'one', { 'sextant.io/drain': 'racks move', 'sextant.io/drain-until': until })
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A ${TWO}`])
  const facts = fixture.field(AUTHORITATIVE, 'metadata', 'annotations', SITES)
  fixture.clock.pass(60_000)
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A ${ONE},${TWO}`])
  t.notSame(fixture.field(AUTHORITATIVE, 'metadata', 'annotations', SITES), facts)
})

t.test('endpoints without an owner are served beside the others', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [address(HOST, ONE)])
  await fixture.settle()
  const before = fixture.field(AUTHORITATIVE, 'spec', 'endpoints') as readonly object[]
  const endpoints = [address(`by-hand.${HOST}`, '192.0.2.7'), ...(before as never[])]
  fixture.cluster.edit(`a/${AUTHORITATIVE}`, { endpoints })
  const server = new ClusterServer()
  server.apply(fixture.cluster.records.values())
  t.match(server.refusals, [/does not fit spec\.endpoints, which was edited since/])
  t.equal(server.targets(`by-hand.${HOST}. A`), '192.0.2.7')
  await fixture.settle()
  server.apply(fixture.cluster.records.values())
  t.strictSame(server.store.problems(), [])
  t.equal(server.targets(`by-hand.${HOST}. A`), '192.0.2.7')
  t.equal(server.targets(A), ONE)
})

t.test('an endpoint without an owner serves when those of all owners are down', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [steered('one', ONE)])
  await fixture.settle()
  const before = fixture.field(AUTHORITATIVE, 'spec', 'endpoints') as readonly object[]
  const endpoints = [steered('by-hand', '192.0.2.7'), ...(before as never[])]
  fixture.cluster.edit(`a/${AUTHORITATIVE}`, { endpoints })
  setDown(fixture, 'one', ONE)
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.7`])
  t.equal(serverOf(fixture).targets(A), '192.0.2.7')
})

t.test('the annotation is written again when it is lost or broken', async (t) => {
  const table = [{}, { [SITES]: '{' }, { [SITES]: '{"v":2}' }]
  for (const annotations of table) {
    const fixture = new DelegationFixture()
    fixture.delegate('one', [address(HOST, ONE)])
    fixture.delegate('two', [address(HOST, TWO)])
    setDown(fixture, 'one', ONE)
    await fixture.settle()
    const before = fixture.cluster.stored(`a/${AUTHORITATIVE}`)
    annotate(fixture, AUTHORITATIVE, annotations)
    const broken = serverOf(fixture)
    t.equal(broken.targets(A), TWO, 'spec.endpoints is served meanwhile')
    t.equal(broken.refusals.length, Object.keys(annotations).length)
    await fixture.settle()
    const after = fixture.cluster.stored(`a/${AUTHORITATIVE}`)
    t.strictSame(at(after, 'spec'), at(before, 'spec'))
    t.strictSame(at(after, 'metadata', 'annotations'), at(before, 'metadata', 'annotations'))
  }
})

t.test('a primary publishes what the other operators found', async (t) => {
  for (const role of ['primary', 'secondary'] as const) {
    const simulation = new DelegationSimulation()
    const first = simulation.add('first')
    const second = simulation.add('second', role)
    first.delegate('app', [address(HOST, ONE)])
    second.delegate('app', [address(HOST, TWO)])
    await simulation.settle()
    t.equal(serverOf(first).targets(A), `${ONE} ${TWO}`)
    setDown(second, 'app', TWO)
    await simulation.settle()
    t.strictSame(first.served(), [`${HOST} A ${ONE}`], role)
    const server = serverOf(first)
    t.equal(server.targets(A), ONE, role)
    const [own, other] = server.records().map(({ key, origin, original }) => {
      return { key, site: origin?.site, original }
    })
    const key = `a/${AUTHORITATIVE}`
    t.strictSame(own, { key, site: 'first', original: 'a/app' })
    t.strictSame(other, { key: `${key}@second`, site: 'second', original: undefined })
    t.equal(server.health.reasonOf(`${key}@second`, TWO), 'HTTP 503')
    setDown(first, 'app', ONE)
    await simulation.settle()
    t.equal(serverOf(first).targets(A), `${ONE} ${TWO}`, 'all are down: all are served')
    setDown(second, 'app')
    await simulation.settle()
    t.equal(serverOf(first).targets(A), TWO)
    t.strictSame(await simulation.settle(), [], 'and nothing is written without a change')
  }
})

t.test('settings of records of other clusters are in force', async (t) => {
  const simulation = new DelegationSimulation()
  const first = simulation.add('first')
  const second = simulation.add('second', 'secondary')
  first.delegate('app', [address(HOST, ONE)])
  second.delegate('app', [address(HOST, TWO)])
  annotate(second, 'app', { 'sextant.io/sticky': '16 48' })
  await simulation.settle()
  t.strictSame(serverOf(first).sets.get(A)?.sticky, { ipv4Bits: 16, ipv6Bits: 48 })
})

t.test('a report that is not valid, or of another site, decides nothing', async (t) => {
  const table = [
    { name: 'not JSON', text: '{', want: TWO, note: /of its operator is not a JSON object/ },
    { name: 'another version', text: '{"v":9}', want: TWO, note: /has version 9/ },
    {
      name: 'an address of another record',
      text: `{"v":1,"site":"x","of":"4f53cda18c2baa0c","parts":[{"site":"x","down":{"${ONE}":""}}]}`,
      want: TWO,
      note: /its operator reports health of addresses that the record lacks: 192\.0\.2\.1; these reports are ignored$/,
    },
    {
      name: 'the name of this site',
      text: `{"v":1,"site":"first","of":"4f53cda18c2baa0c"}`,
      want: TWO,
      note: /its operator uses the site name first, the name of this cluster; give each cluster/,
    },
  ]
  for (const { name, text, want, note } of table) {
    const simulation = new DelegationSimulation()
    const first = simulation.add('first')
    // Its operator is another program.
    const second = simulation.add('second', 'secondary')
    first.delegate('app', [address(HOST, ONE)])
    second.delegate('app', [address(HOST, TWO)])
    await simulation.settle()
    setDown(first, 'app', ONE)
    second.isUp = false
    annotate(second, 'app', { [SITES]: text })
    second.isUp = true
    await first.reconcile()
    t.equal(serverOf(first).targets(A), want, name)
    t.match(second.ready('app', first), note, name)
  }
})

const HOSTS = [HOST, `b.${HOST}`]
const NAMES = ['one', 'two', 'three']
const step = fc.oneof(
  fc.record({
    kind: fc.constant('put' as const),
    name: fc.constantFrom(...NAMES),
    hosts: fc.subarray(HOSTS, { minLength: 1 }),
    targets: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant('down' as const),
    name: fc.constantFrom(...NAMES),
    targets: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant('delete' as const), name: fc.constantFrom(...NAMES) }),
)

t.test('what is served depends on the records and their health only', async (t) => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 10 }), async (steps) => {
    const fixture = new DelegationFixture()
    const wanted = new Map<string, { hosts: string[]; targets: string[] }>()
    const down = new Map<string, string[]>()
    for (const one of steps) {
      const { name } = one
      const targets = 'targets' in one ? one.targets.map((i) => `192.0.2.${i}`) : []
      if (one.kind === 'put') {
        const endpoints = one.hosts.map((host) => address(host, ...targets))
        const key = `a/${name}`
        if (fixture.cluster.stored(key)) fixture.cluster.edit(key, { endpoints })
        else fixture.delegate(name, endpoints)
        wanted.set(name, { hosts: one.hosts, targets })
      } else if (one.kind === 'down') {
        setDown(fixture, name, ...targets)
        down.set(name, targets)
      } else if (wanted.delete(name)) fixture.cluster.markDeleted(`a/${name}`)
      // Only this one: its writer must restore what the others have.
      await fixture.hasConflict(name)
      fixture.cluster.takeWrites()
    }
    const want = HOSTS.map((host) => {
      const all = [...wanted].flatMap(([name, { hosts, targets }]) => {
        return hosts.includes(host) ? targets.map((target) => ({ name, target })) : []
      })
      const up = all.filter(({ name, target }) => !down.get(name)?.includes(target))
      const served = (up.length > 0 ? up : all).map(({ target }) => target)
      return [...new Set(served)].sort().join(' ')
    })
    const server = serverOf(fixture)
    const served = HOSTS.map((host) => server.targets(`${host}. A`) ?? '')
    t.strictSame(served, want, 'at the server')
    const inSpec = HOSTS.map((host) => {
      return fixture
        .served()
        .filter((line) => line.startsWith(`${host} A `))
        .map((line) => line.split(' ')[2]!.replaceAll(',', ' '))
        .join()
    })
    t.strictSame(inSpec, want, 'in spec')
    t.strictSame(server.refusals, [])
    const later = await fixture.settle()
    t.strictSame(
      later.filter((write) => write.startsWith('put')),
      [],
      'nothing was missing',
    )
  })
  await fc.assert(property, { numRuns: runs(100) })
})
