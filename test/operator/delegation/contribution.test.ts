import t from 'tap'
import { address, DelegatingWorld, HOST } from '../../support/delegating.ts'

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
    const world = new DelegatingWorld()
    const probes = down.map((one) => ({ address: one, health: 'down' as const }))
    world.cluster.health.set('a/app', { down, up: [], probes })
    world.delegate('app', [address(HOST, '192.0.2.1', '192.0.2.2')])
    await world.settle()
    t.strictSame(world.served(), want, name)
    const healthy = world.condition('app', 'Healthy')
    if (down.length === 0) t.equal(healthy, '', name)
    else t.match(healthy, /^False HealthChecksFailed: Not healthy addresses/, name)
  }
})

t.test('a name that has other endpoints loses those of which nothing is left', async (t) => {
  const world = new DelegatingWorld()
  const sited = (site: string, target: string) => ({
    ...address(HOST, target),
    setIdentifier: site,
    providerSpecific: [{ name: 'weight', value: '1' }],
  })
  world.cluster.health.set('a/app', { down: ['192.0.2.1'], up: ['192.0.2.2'], probes: [] })
  world.delegate('app', [sited('east', '192.0.2.1'), sited('west', '192.0.2.2')])
  await world.settle()
  t.strictSame(world.served(), [`${HOST} A 192.0.2.2`])
})
