import t from 'tap'
import { address, DelegationFixture, HOST } from '../../support/delegation-fixture.ts'

t.test('addresses that are down are left out while something else is left', async (t) => {
  const table = [
    { name: 'none is down', down: [], want: [`${HOST} A 192.0.2.1,192.0.2.2`] },
    { name: 'one is', down: ['192.0.2.1'], want: [`${HOST} A 192.0.2.2`] },
    {
      name: 'all are',
      down: ['192.0.2.1', '192.0.2.2'],
      want: [`${HOST} A 192.0.2.1,192.0.2.2`],
    },
  ]
  for (const { name, down, want } of table) {
    const fixture = new DelegationFixture()
    const probes = down.map((one) => ({ address: one, health: 'down' as const }))
    fixture.cluster.health.set('a/app', { down, up: [], probes })
    fixture.delegate('app', [address(HOST, '192.0.2.1', '192.0.2.2')])
    await fixture.settle()
    t.strictSame(fixture.served(), want, name)
    const healthy = fixture.condition('app', 'Healthy')
    if (down.length === 0) t.equal(healthy, '', name)
    else t.match(healthy, /^False HealthChecksFailed: Not healthy addresses/, name)
  }
})

t.test('a name that has other endpoints loses those of which nothing is left', async (t) => {
  const fixture = new DelegationFixture()
  const sited = (site: string, target: string) => ({
    ...address(HOST, target),
    setIdentifier: site,
    providerSpecific: [{ name: 'weight', value: '1' }],
  })
  fixture.cluster.health.set('a/app', { down: ['192.0.2.1'], up: ['192.0.2.2'], probes: [] })
  fixture.delegate('app', [sited('east', '192.0.2.1'), sited('west', '192.0.2.2')])
  await fixture.settle()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.2`])
})
