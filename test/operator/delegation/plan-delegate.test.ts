import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import {
  AUTHORITATIVE,
  address,
  DelegationFixture,
  HOST,
} from '../../support/delegation-fixture.ts'
import { dnsRecord } from '../../support/operator-objects.ts'

// Long: many simulated clusters.

const READY = 'True ProviderSuccess: Provider ensured the dns record'

t.test('a record is held, put into the authoritative one, and reported', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('app', [address(HOST, '192.0.2.1')])
  t.strictSame(await fixture.settle(), [
    'hold app',
    `put ${AUTHORITATIVE}`,
    'status app',
    `status ${AUTHORITATIVE}`,
  ])
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1`])
  t.strictSame(fixture.field(AUTHORITATIVE, 'metadata', 'labels'), {
    'kuadrant.io/authoritative-record': 'true',
    'kuadrant.io/authoritative-record-hash': AUTHORITATIVE.slice(-8),
    'kuadrant.io/dns-provider-name': 'coredns',
    'kuadrant.io/coredns-zone-name': HOST,
  })
  t.equal(fixture.field(AUTHORITATIVE, 'metadata', 'ownerReferences'), undefined)
  t.equal(fixture.field(AUTHORITATIVE, 'spec', 'providerRef'), undefined)
  t.equal(fixture.condition('app'), READY)
  t.equal(fixture.condition('app', 'ReadyForDelegation'), 'True FinalizersSet: ')
  const owner = fixture.field('app', 'status', 'ownerID')
  t.match(owner, /^[0-9a-z]{8}$/)
  t.match(fixture.field('app', 'status'), {
    zoneID: AUTHORITATIVE,
    zoneDomainName: HOST,
    domainOwners: [owner],
    observedGeneration: 1,
    writeCounter: 1,
    endpoints: [address(HOST, '192.0.2.1')],
  })
})

t.test('records of one host are merged, and each leaves with what is its own', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('one', [address(HOST, '192.0.2.1', '192.0.2.9')])
  fixture.delegate('two', [address(HOST, '192.0.2.2', '192.0.2.9')])
  fixture.delegate('wild', [address(`*.${HOST}`, '192.0.2.3')], `*.${HOST}`)
  await fixture.settle()
  t.strictSame(fixture.served().toSorted(), [
    `*.${HOST} A 192.0.2.3`,
    `${HOST} A 192.0.2.1,192.0.2.2,192.0.2.9`,
  ])
  const owners = ['one', 'two', 'wild'].map((name) => fixture.field(name, 'status', 'ownerID'))
  await fixture.settleLater()
  t.strictSame(fixture.field('one', 'status', 'domainOwners'), owners.toSorted())
  fixture.cluster.markDeleted('a/one')
  t.strictSame((await fixture.settle()).slice(0, 2), [`put ${AUTHORITATIVE}`, 'unhold one'])
  t.strictSame(fixture.served().toSorted(), [
    `*.${HOST} A 192.0.2.3`,
    `${HOST} A 192.0.2.2,192.0.2.9`,
  ])
  await fixture.settleLater()
  t.strictSame(fixture.field('two', 'status', 'domainOwners'), owners.slice(1).toSorted())
  t.notMatch(JSON.stringify(fixture.field(AUTHORITATIVE, 'spec')), String(owners[0]))
  fixture.cluster.markDeleted('a/two')
  fixture.cluster.markDeleted('a/wild')
  await fixture.settle()
  t.strictSame([...fixture.cluster.records.keys()], [], 'nothing is left behind')
})

t.test('an edit takes the place of what was there', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('app', [address(HOST, '192.0.2.1'), address(`old.${HOST}`, '192.0.2.1')])
  await fixture.settle()
  fixture.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.8')] })
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.8`])
  t.match(fixture.field('app', 'status'), { observedGeneration: 2, writeCounter: 2 })
})

t.test('edits of the authoritative record by others are undone', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('app', [address(HOST, '192.0.2.1')])
  await fixture.settle()
  fixture.cluster.edit(`a/${AUTHORITATIVE}`, { endpoints: [] })
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1`])
  fixture.cluster.records.delete(`a/${AUTHORITATIVE}`)
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1`])
})

t.test('a writer that loses a race writes nothing, and retries later', async (t) => {
  const fixture = new DelegationFixture()
  const refuseOnce = (kind: string): void => {
    fixture.cluster.refuse = (write) => {
      if (write.kind !== kind) return undefined
      fixture.cluster.refuse = () => undefined
      const key = `a/${AUTHORITATIVE}`
      const labels = { 'kuadrant.io/authoritative-record': 'true' }
      const present =
        fixture.cluster.stored(key) ??
        dnsRecord({ name: AUTHORITATIVE, metadata: { labels }, spec: { endpoints: [] } })
      fixture.cluster.put({ ...present })
      return undefined
    }
  }
  fixture.delegate('app', [address(HOST, '192.0.2.1')])
  refuseOnce('put')
  t.ok(await fixture.hasConflict('app'), 'when it is made')
  t.strictSame(fixture.served(), [])
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1`])
  fixture.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.2')] })
  refuseOnce('put')
  t.ok(await fixture.hasConflict('app'), 'when it is changed')
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.2`])
  fixture.cluster.markDeleted('a/app')
  refuseOnce('drop')
  t.ok(await fixture.hasConflict('app'), 'when it is to go')
  t.ok(fixture.cluster.stored('a/app'), 'the record stays until then')
  await fixture.settle()
  t.strictSame([...fixture.cluster.records.keys()], [])
})

t.test('looks at records of one host follow each other, so that none is beaten', async (t) => {
  const fixture = new DelegationFixture()
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const [i, name] of names.entries()) fixture.delegate(name, [address(HOST, `192.0.2.${i}`)])
  const beaten = await Promise.all(names.map((name) => fixture.hasConflict(name)))
  t.strictSame(
    beaten,
    names.map(() => false),
  )
  t.strictSame(fixture.served(), [`${HOST} A ${names.map((_, i) => `192.0.2.${i}`)}`])
})

t.test('a failure is reported, and retried until it succeeds', async (t) => {
  const cname: ApiObject = { dnsName: `www.${HOST}`, recordType: 'CNAME', targets: ['x.example'] }
  const fixture = new DelegationFixture()
  fixture.delegate('a', [address(`www.${HOST}`, '192.0.2.1')])
  await fixture.settle()
  fixture.delegate('b', [cname, address(HOST, '192.0.2.2')])
  await fixture.settle()
  t.equal(
    fixture.condition('b'),
    `False ProviderError: The DNS provider failed to ensure the record: record type conflict, cannot update endpoint 'www.${HOST}' with record type 'CNAME' when endpoint already exists with record type 'A'`,
  )
  t.equal(fixture.condition('a'), READY)
  t.ok(fixture.served().includes(`${HOST} A 192.0.2.2`), 'the rest is served')
  fixture.cluster.markDeleted('a/a')
  await fixture.settle()
  t.equal(fixture.condition('b'), READY)
  t.ok(fixture.served().includes(`www.${HOST} CNAME x.example`))
})

t.test('a record that is not fit takes nothing away', async (t) => {
  const table = [
    {
      name: 'no Secret',
      spoil: (fixture: DelegationFixture) => fixture.cluster.secrets.clear(),
      want: /^False DNSProviderError: .*No default provider secret/,
    },
    {
      name: 'no zone',
      spoil: (fixture: DelegationFixture) => fixture.putSecret('other.example'),
      want: /^False DNSProviderError: .*no zone for host: k\.example\.com$/,
    },
    {
      name: 'a bad address',
      spoil: (fixture: DelegationFixture) =>
        fixture.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.999')] }),
      want: /^False ValidationError: validation of DNSRecord failed: /,
    },
    {
      name: 'no endpoints beside those of others',
      spoil: (fixture: DelegationFixture) => fixture.cluster.edit('a/app', { endpoints: [] }),
      want: /^False ProviderError: .*no endpoints discovered for k\.example\.com$/,
      served: [`${HOST} A 192.0.2.7`],
    },
  ]
  for (const { name, spoil, want, served } of table) {
    const fixture = new DelegationFixture()
    fixture.delegate('app', [address(HOST, '192.0.2.1')])
    fixture.delegate('other', [address(HOST, '192.0.2.7')])
    await fixture.settle()
    const before = fixture.served()
    spoil(fixture)
    await fixture.settle()
    t.match(fixture.condition('app'), want, name)
    t.strictSame(fixture.served(), served ?? before, name)
    fixture.cluster.markDeleted('a/app')
    fixture.cluster.markDeleted('a/other')
    await fixture.settle()
    const names = [...fixture.cluster.records.keys()]
    t.strictSame(names, [], `${name}: it can be deleted all the same`)
  }
})

t.test('an object of another owner is never written or deleted', async (t) => {
  const labels = { 'kuadrant.io/authoritative-record': 'true' }
  const table = [
    {
      name: 'without the label',
      labels: {},
      rootHost: HOST,
      want: /exists and was not created for delegating records; rename it$/,
    },
    {
      name: 'of another host',
      labels,
      rootHost: 'b.k.example.com',
      want: /which has the same hash$/,
    },
  ]
  for (const { name, labels, rootHost, want } of table) {
    const fixture = new DelegationFixture()
    fixture.cluster.put({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { namespace: 'a', name: AUTHORITATIVE, labels, generation: 1, uid: 'theirs' },
      spec: { rootHost, providerRef: { name: 'aws' }, endpoints: [address(rootHost, '192.0.2.9')] },
    })
    fixture.delegate('app', [address(HOST, '192.0.2.1')])
    const isOurs = (write: string) => !write.endsWith(AUTHORITATIVE)
    t.ok(
      (await fixture.settle()).filter((write) => !write.startsWith('status')).every(isOurs),
      name,
    )
    t.match(fixture.condition('app'), want, name)
    fixture.cluster.markDeleted('a/app')
    await fixture.settle()
    t.strictSame([...fixture.cluster.records.keys()], [`a/${AUTHORITATIVE}`], name)
  }
})

t.test('ownership records of an upstream operator are kept unchanged', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('app', [address(HOST, '192.0.2.1')])
  await fixture.settle()
  const notes = fixture.field(AUTHORITATIVE, 'spec', 'endpoints')
  fixture.cluster.records.delete('a/app')
  fixture.delegate('app', [address(HOST, '192.0.2.1')])
  t.strictSame(await fixture.settle(), ['hold app', 'status app'])
  t.strictSame(fixture.field(AUTHORITATIVE, 'spec', 'endpoints'), notes)
})

t.test('with many owners of one host, each is written rarely, not once per owner', async (t) => {
  const fixture = new DelegationFixture()
  const count = 30
  let writes = 0
  for (let i = 0; i < count; i++) {
    fixture.delegate(`app-${i}`, [address(HOST, `192.0.2.${i}`)])
    writes += (await fixture.settle()).filter((write) => write.startsWith('status app')).length
  }
  t.ok(writes < 2 * count, `${writes} writes of a status for ${count} owners that came at once`)
  const later = await fixture.settleLater()
  t.ok(later.length < count)
  const owners = fixture.field('app-0', 'status', 'domainOwners') as readonly string[]
  t.equal(owners.length, count, 'in the end each knows all')
  t.strictSame(await fixture.settleLater(), [])
})
