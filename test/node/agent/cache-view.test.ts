import t from 'tap'
import { cacheEntries, selectorUses } from '../../../src/node/agent/cache-view.ts'
import { answerTo, clientOf } from '../../support/egress-client.ts'
import { EgressStage } from '../../support/egress-stage.ts'

t.test('what clients learned, as the API shows it', async (t) => {
  const stage = new EgressStage()
  const { agent, clock, connections } = stage
  const rules = [{ names: '*.example.com', lasts: 'connections' }, { names: 'x.example' }] as const
  const [a, b] = [clientOf('a', '10.1.0.1', rules), clientOf('b', '10.1.0.2', [rules[0]])]
  await agent.setClients([a, b])
  const startMs = clock.now()
  agent.learn(a, answerTo('old.example.com.', '192.0.2.1', 10))
  agent.learn(a, answerTo('www.example.com.', '192.0.2.2 192.0.2.3', 600))
  agent.learn(a, answerTo('www.example.org.', '192.0.2.2', 600))
  agent.learn(b, answerTo('www.example.com.', '192.0.2.4', 600))
  connections.open.add('10.1.0.1 192.0.2.1')
  await stage.pass(125_000)
  const list = (filter: Parameters<typeof cacheEntries>[2] = {}) =>
    [...cacheEntries(agent.states(), clock, filter)].map((entry) => {
      const { client, name, addresses, source } = entry
      return `${client.id} ${name} ${addresses.join()} ${source}`
    })
  t.strictSame(list(), [
    'a www.example.com. 192.0.2.2,192.0.2.3 lookup',
    'a www.example.org. 192.0.2.2 lookup',
    'a old.example.com. 192.0.2.1 connection',
    'b www.example.com. 192.0.2.4 lookup',
  ])
  t.equal(list({ clientId: 'b' }).length, 1)
  t.strictSame(list({ source: 'connection' }), ['a old.example.com. 192.0.2.1 connection'])
  t.equal(list({ matchesName: (name) => name.endsWith('.com.') }).length, 3)
  t.strictSame(list({ matchesAddress: (address) => address === '192.0.2.3' }), [
    'a www.example.com. 192.0.2.3 lookup',
  ])
  const entries = [...cacheEntries(agent.states(), clock)]
  t.match(entries[0], {
    lookupTimeMs: startMs,
    ttlSeconds: 600,
    expirationTimeMs: startMs + 600_000,
  })
  t.match(entries[2], { lookupTimeMs: startMs + 120_000, ttlSeconds: 0 })
  t.strictSame(selectorUses(agent.states()), [
    {
      selector: '*.example.com',
      clients: 2,
      names: ['www.example.com.'],
      addresses: ['192.0.2.2', '192.0.2.3', '192.0.2.4'],
    },
    { selector: 'x.example', clients: 1, names: [], addresses: [] },
  ])

  t.equal(stage.plane.inForce().length, 4)
  t.equal(
    agent.forget((name) => name === 'www.example.com.'),
    3,
  )
  t.strictSame(stage.plane.inForce(), ['10.1.0.1 192.0.2.1 any'])
  t.equal(
    agent.forget(() => true),
    2,
  )
  t.strictSame([stage.plane.size, list()], [0, []])
})
