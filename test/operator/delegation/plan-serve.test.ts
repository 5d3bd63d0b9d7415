import t from 'tap'
import {
  AUTHORITATIVE,
  address,
  DelegationFixture,
  HOST,
} from '../../support/delegation-fixture.ts'

const APP = `app.${HOST}`
const OF_APP = 'authoritative-record-2zmbcr91'
const ZONE_LABEL = 'kuadrant.io/coredns-zone-name'

t.test('an authoritative record says how it is served', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('app', [address(HOST, '192.0.2.1')])
  await fixture.settle()
  t.equal(fixture.condition(AUTHORITATIVE), 'True ProviderSuccess: Provider ensured the dns record')
  t.match(fixture.field(AUTHORITATIVE, 'status'), {
    zoneID: HOST,
    zoneDomainName: HOST,
    providerRef: { name: 'coredns' },
    endpoints: fixture.field(AUTHORITATIVE, 'spec', 'endpoints'),
  })
})

t.test(
  'the record follows the zones of the Secret, and keeps its zone if none matches',
  async (t) => {
    const fixture = new DelegationFixture()
    fixture.delegate('app', [address(APP, '192.0.2.1')], APP)
    await fixture.settle()
    const zone = () => fixture.field(OF_APP, 'metadata', 'labels', ZONE_LABEL)
    t.equal(zone(), HOST)
    fixture.putSecret('example.com')
    t.ok((await fixture.settle()).includes(`put ${OF_APP}`))
    t.equal(zone(), 'example.com')
    t.strictSame(fixture.served(OF_APP), [`${APP} A 192.0.2.1`])
    fixture.putSecret('other.example')
    await fixture.settle()
    t.match(fixture.condition(OF_APP), /^False DNSProviderError: /)
    t.equal(zone(), 'example.com')
  },
)

t.test("a record with another operator's finalizer is released", async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('app', [address(HOST, '192.0.2.1')])
  await fixture.settle()
  fixture.cluster.records.delete('a/app')
  const record = fixture.cluster.stored(`a/${AUTHORITATIVE}`)!
  const metadata = { ...(record.metadata as object), finalizers: ['kuadrant.io/dns-record'] }
  fixture.cluster.put({ ...record, metadata })
  fixture.cluster.markDeleted(`a/${AUTHORITATIVE}`)
  t.strictSame(await fixture.settle(), [`unhold ${AUTHORITATIVE}`])
  t.strictSame([...fixture.cluster.records.keys()], [])
})

t.test('a host in upper case settles: its labels come from the host as written', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('app', [address('App.K.example.com', '192.0.2.1')], 'App.K.example.com')
  await fixture.settle()
  t.match(fixture.condition('app'), /^True ProviderSuccess/)
})
