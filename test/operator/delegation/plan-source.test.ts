import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { AUTHORITATIVE, address, DelegatingWorld, HOST } from '../../support/delegating.ts'

const READY = 'True ProviderSuccess: Provider ensured the dns record'

t.test('a record is held, put into the authoritative one, and reported', async (t) => {
  const world = new DelegatingWorld()
  world.delegate('app', [address(HOST, '192.0.2.1')])
  t.strictSame(await world.settle(), [
    'hold app',
    `put ${AUTHORITATIVE}`,
    'status app',
    `status ${AUTHORITATIVE}`,
  ])
  t.strictSame(world.served(), [`${HOST} A 192.0.2.1`])
  t.strictSame(world.field(AUTHORITATIVE, 'metadata', 'labels'), {
    'kuadrant.io/authoritative-record': 'true',
    'kuadrant.io/authoritative-record-hash': AUTHORITATIVE.slice(-8),
    'kuadrant.io/dns-provider-name': 'coredns',
    'kuadrant.io/coredns-zone-name': HOST,
  })
  t.equal(world.field(AUTHORITATIVE, 'metadata', 'ownerReferences'), undefined)
  t.equal(world.field(AUTHORITATIVE, 'spec', 'providerRef'), undefined)
  t.equal(world.condition('app'), READY)
  t.equal(world.condition('app', 'ReadyForDelegation'), 'True FinalizersSet: ')
  const owner = world.field('app', 'status', 'ownerID')
  t.match(owner, /^[0-9a-z]{8}$/)
  t.match(world.field('app', 'status'), {
    zoneID: AUTHORITATIVE,
    zoneDomainName: HOST,
    domainOwners: [owner],
    observedGeneration: 1,
    writeCounter: 1,
    endpoints: [address(HOST, '192.0.2.1')],
  })
})

t.test('records of one host are merged, and each leaves with what is its own', async (t) => {
  const world = new DelegatingWorld()
  world.delegate('one', [address(HOST, '192.0.2.1', '192.0.2.9')])
  world.delegate('two', [address(HOST, '192.0.2.2', '192.0.2.9')])
  world.delegate('wild', [address(`*.${HOST}`, '192.0.2.3')], `*.${HOST}`)
  await world.settle()
  t.strictSame(world.served().toSorted(), [
    `*.${HOST} A 192.0.2.3`,
    `${HOST} A 192.0.2.1,192.0.2.2,192.0.2.9`,
  ])
  const owners = ['one', 'two', 'wild'].map((name) => world.field(name, 'status', 'ownerID'))
  await world.settleLater()
  t.strictSame(world.field('one', 'status', 'domainOwners'), owners.toSorted())
  world.cluster.markDeleted('a/one')
  t.strictSame((await world.settle()).slice(0, 2), [`put ${AUTHORITATIVE}`, 'unhold one'])
  t.strictSame(world.served().toSorted(), [
    `*.${HOST} A 192.0.2.3`,
    `${HOST} A 192.0.2.2,192.0.2.9`,
  ])
  await world.settleLater()
  t.strictSame(world.field('two', 'status', 'domainOwners'), owners.slice(1).toSorted())
  t.notMatch(JSON.stringify(world.field(AUTHORITATIVE, 'spec')), String(owners[0]))
  world.cluster.markDeleted('a/two')
  world.cluster.markDeleted('a/wild')
  await world.settle()
  t.strictSame([...world.cluster.records.keys()], [], 'nothing is left behind')
})

t.test('an edit takes the place of what was there', async (t) => {
  const world = new DelegatingWorld()
  world.delegate('app', [address(HOST, '192.0.2.1'), address(`old.${HOST}`, '192.0.2.1')])
  await world.settle()
  world.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.8')] })
  await world.settle()
  t.strictSame(world.served(), [`${HOST} A 192.0.2.8`])
  t.match(world.field('app', 'status'), { observedGeneration: 2, writeCounter: 2 })
})

t.test('what others do to the authoritative record is put right', async (t) => {
  const world = new DelegatingWorld()
  world.delegate('app', [address(HOST, '192.0.2.1')])
  await world.settle()
  world.cluster.edit(`a/${AUTHORITATIVE}`, { endpoints: [] })
  await world.settle()
  t.strictSame(world.served(), [`${HOST} A 192.0.2.1`])
  world.cluster.records.delete(`a/${AUTHORITATIVE}`)
  await world.settle()
  t.strictSame(world.served(), [`${HOST} A 192.0.2.1`])
})

t.test('who was not as fast as another writes nothing, and has it later', async (t) => {
  const world = new DelegatingWorld()
  const refuseOnce = (kind: string): void => {
    world.cluster.refuse = (write) => {
      if (write.kind !== kind || !('object' in write)) return undefined
      world.cluster.refuse = () => undefined
      const key = `a/${AUTHORITATIVE}`
      const there = world.cluster.record(key) ?? { ...write.object, spec: { rootHost: HOST } }
      world.cluster.put({ ...there })
      return undefined
    }
  }
  world.delegate('app', [address(HOST, '192.0.2.1')])
  refuseOnce('put')
  t.ok(await world.isBeaten('app'), 'when it is made')
  t.strictSame(world.served(), [])
  await world.settle()
  t.strictSame(world.served(), [`${HOST} A 192.0.2.1`])
  world.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.2')] })
  refuseOnce('put')
  t.ok(await world.isBeaten('app'), 'when it is changed')
  await world.settle()
  t.strictSame(world.served(), [`${HOST} A 192.0.2.2`])
  world.cluster.markDeleted('a/app')
  refuseOnce('drop')
  t.ok(await world.isBeaten('app'), 'when it is to go')
  t.ok(world.cluster.record('a/app'), 'the record stays until then')
  await world.settle()
  t.strictSame([...world.cluster.records.keys()], [])
})

t.test('looks at records of one host follow each other, so that none is beaten', async (t) => {
  const world = new DelegatingWorld()
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const [i, name] of names.entries()) world.delegate(name, [address(HOST, `192.0.2.${i}`)])
  const beaten = await Promise.all(names.map((name) => world.isBeaten(name)))
  t.strictSame(
    beaten,
    names.map(() => false),
  )
  t.strictSame(world.served(), [`${HOST} A ${names.map((_, i) => `192.0.2.${i}`)}`])
})

t.test('what can not be had is said, and had once it can', async (t) => {
  const cname: ApiObject = { dnsName: `www.${HOST}`, recordType: 'CNAME', targets: ['x.example'] }
  const world = new DelegatingWorld()
  world.delegate('a', [address(`www.${HOST}`, '192.0.2.1')])
  await world.settle()
  world.delegate('b', [cname, address(HOST, '192.0.2.2')])
  await world.settle()
  t.equal(
    world.condition('b'),
    `False ProviderError: The DNS provider failed to ensure the record: record type conflict, cannot update endpoint 'www.${HOST}' with record type 'CNAME' when endpoint already exists with record type 'A'`,
  )
  t.equal(world.condition('a'), READY)
  t.ok(world.served().includes(`${HOST} A 192.0.2.2`), 'the rest is served')
  world.cluster.markDeleted('a/a')
  await world.settle()
  t.equal(world.condition('b'), READY)
  t.ok(world.served().includes(`www.${HOST} CNAME x.example`))
})

t.test('a record that is not fit takes nothing away', async (t) => {
  const table = [
    {
      name: 'no Secret',
      spoil: (world: DelegatingWorld) => world.cluster.secrets.clear(),
      want: /^False DNSProviderError: .*No default provider secret/,
    },
    {
      name: 'no zone',
      spoil: (world: DelegatingWorld) => world.putSecret('other.example'),
      want: /^False DNSProviderError: .*no zone for host: k\.example\.com$/,
    },
    {
      name: 'a bad address',
      spoil: (world: DelegatingWorld) =>
        world.cluster.edit('a/app', { endpoints: [address(HOST, '192.0.2.999')] }),
      want: /^False ValidationError: validation of DNSRecord failed: /,
    },
    {
      name: 'no endpoints beside those of others',
      spoil: (world: DelegatingWorld) => world.cluster.edit('a/app', { endpoints: [] }),
      want: /^False ProviderError: .*no endpoints discovered for k\.example\.com$/,
      served: [`${HOST} A 192.0.2.7`],
    },
  ]
  for (const { name, spoil, want, served } of table) {
    const world = new DelegatingWorld()
    world.delegate('app', [address(HOST, '192.0.2.1')])
    world.delegate('other', [address(HOST, '192.0.2.7')])
    await world.settle()
    const before = world.served()
    spoil(world)
    await world.settle()
    t.match(world.condition('app'), want, name)
    t.strictSame(world.served(), served ?? before, name)
    world.cluster.markDeleted('a/app')
    world.cluster.markDeleted('a/other')
    await world.settle()
    const names = [...world.cluster.records.keys()]
    t.strictSame(names, [], `${name}: it can be deleted all the same`)
  }
})

t.test('an object of somebody else is never written to, nor deleted', async (t) => {
  const labels = { 'kuadrant.io/authoritative-record': 'true' }
  const table = [
    { name: 'without the label', labels: {}, rootHost: HOST, want: /is in the way; rename it$/ },
    {
      name: 'of another host',
      labels,
      rootHost: 'b.k.example.com',
      want: /which has the same hash$/,
    },
  ]
  for (const { name, labels, rootHost, want } of table) {
    const world = new DelegatingWorld()
    world.cluster.put({
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { namespace: 'a', name: AUTHORITATIVE, labels, generation: 1, uid: 'theirs' },
      spec: { rootHost, providerRef: { name: 'aws' }, endpoints: [address(rootHost, '192.0.2.9')] },
    })
    world.delegate('app', [address(HOST, '192.0.2.1')])
    const isOurs = (write: string) => !write.endsWith(AUTHORITATIVE)
    t.ok((await world.settle()).filter((write) => !write.startsWith('status')).every(isOurs), name)
    t.match(world.condition('app'), want, name)
    world.cluster.markDeleted('a/app')
    await world.settle()
    t.strictSame([...world.cluster.records.keys()], [`a/${AUTHORITATIVE}`], name)
  }
})

t.test('what an upstream operator noted is taken over as it stands', async (t) => {
  const world = new DelegatingWorld()
  world.delegate('app', [address(HOST, '192.0.2.1')])
  await world.settle()
  const notes = world.field(AUTHORITATIVE, 'spec', 'endpoints')
  world.cluster.records.delete('a/app')
  world.delegate('app', [address(HOST, '192.0.2.1')])
  t.strictSame(await world.settle(), ['hold app', 'status app'])
  t.strictSame(world.field(AUTHORITATIVE, 'spec', 'endpoints'), notes)
})

t.test(
  'many owners of one host cost each a write now and then, and not one for each',
  async (t) => {
    const world = new DelegatingWorld()
    const count = 60
    let writes = 0
    for (let i = 0; i < count; i++) {
      world.delegate(`app-${i}`, [address(HOST, `192.0.2.${i}`)])
      writes += (await world.settle()).filter((write) => write.startsWith('status app')).length
    }
    t.ok(writes < 2 * count, `${writes} writes of a status for ${count} owners that came at once`)
    const later = await world.settleLater()
    t.ok(later.length < count)
    const owners = world.field('app-0', 'status', 'domainOwners') as readonly string[]
    t.equal(owners.length, count, 'in the end each knows all')
    t.strictSame(await world.settleLater(), [])
  },
)
