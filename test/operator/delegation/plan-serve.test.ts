import t from 'tap'
import { AUTHORITATIVE, address, DelegatingWorld, HOST } from '../../support/delegating.ts'

const APP = `app.${HOST}`
const OF_APP = 'authoritative-record-2zmbcr91'
const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'

t.test('an authoritative record says how it is served', async (t) => {
  const world = new DelegatingWorld()
  world.delegate('app', [address(HOST, '192.0.2.1')])
  await world.settle()
  t.equal(world.condition(AUTHORITATIVE), 'True ProviderSuccess: Provider ensured the dns record')
  t.match(world.field(AUTHORITATIVE, 'status'), {
    zoneID: HOST,
    zoneDomainName: HOST,
    providerRef: { name: 'coredns' },
    endpoints: world.field(AUTHORITATIVE, 'spec', 'endpoints'),
  })
})

t.test('it follows the zones of the Secret, and stays where it is if there is none', async (t) => {
  const world = new DelegatingWorld()
  world.delegate('app', [address(APP, '192.0.2.1')], APP)
  await world.settle()
  const zone = () => world.field(OF_APP, 'metadata', 'labels', ZONE_LABEL)
  t.equal(zone(), HOST)
  world.putSecret('example.com')
  t.ok((await world.settle()).includes(`put ${OF_APP}`))
  t.equal(zone(), 'example.com')
  t.strictSame(world.served(OF_APP), [`${APP} A 192.0.2.1`])
  world.putSecret('other.example')
  await world.settle()
  t.match(world.condition(OF_APP), /^False DNSProviderError: /)
  t.equal(zone(), 'example.com')
})

t.test("it is let go with another operator's finalizer on it", async (t) => {
  const world = new DelegatingWorld()
  world.delegate('app', [address(HOST, '192.0.2.1')])
  await world.settle()
  world.cluster.records.delete('a/app')
  const record = world.cluster.record(`a/${AUTHORITATIVE}`)!
  const metadata = { ...(record.metadata as object), finalizers: ['kuadrant.io/dns-record'] }
  world.cluster.put({ ...record, metadata })
  world.cluster.markDeleted(`a/${AUTHORITATIVE}`)
  t.strictSame(await world.settle(), [`unhold ${AUTHORITATIVE}`])
  t.strictSame([...world.cluster.records.keys()], [])
})
