import t from 'tap'
import type { Observation } from '../../../src/client/resolver/observation.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { nameKey, printName, scanName } from '../../../src/dns/name/name.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import type { Client } from '../../../src/egress/agent/client.ts'
import { answerTo, clientOf, portsOf, rulesOf, selectorsOf } from '../../support/egress-client.ts'
import { EgressStage, flowOf } from '../../support/egress-stage.ts'

const WEB = [{ names: '*.example.com', ports: 'tcp 443' }]
const CILIUM = [{ names: '*.example.com', lasts: 'connections' }] as const
const pod = (id: string, rules: Parameters<typeof clientOf>[2], addresses = '10.1.0.1') =>
  clientOf(id, addresses, rules)

function nameOf(text: string): NameBuffer {
  const wire = scanName(text)!
  const name = new NameBuffer()
  name.set(wire, 0, wire.length)
  return name
}

function clientAt({ agent }: EgressStage, text: string): Client | undefined {
  const { bytes, family } = scanAddress(text)!
  return agent.clientAt(bytes, 0, family)
}

t.test('an answer allows the addresses of names that the rules select', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const client = pod('a', WEB)
  t.equal(await agent.setClients([client]), '')
  t.equal(clientAt(stage, '10.1.0.1'), client)
  t.equal(clientAt(stage, '10.1.0.2'), undefined)
  agent.learn(client, answerTo('www.example.com.', '192.0.2.1 192.0.2.2'))
  agent.learn(client, answerTo('www.example.org.', '192.0.2.9'))
  agent.learn(client, {
    ...answerTo('www.example.com.', '192.0.2.8'),
    kind: 'nodata',
  } as Observation)
  t.strictSame(enforcer.inForce(), [
    '10.1.0.1 192.0.2.1 tcp 443-443',
    '10.1.0.1 192.0.2.2 tcp 443-443',
  ])
  const decisions = stage.decisions.map((one) => ({ ...one, name: printName(one.name) }))
  t.match(decisions, [
    {
      name: 'www.example.com.',
      addresses: ['192.0.2.1', '192.0.2.2'],
      allowed: ['192.0.2.1', '192.0.2.2'],
      selectors: ['*.example.com'],
      result: 'acknowledged',
      waitMs: 0,
    },
    { name: 'www.example.org.', addresses: ['192.0.2.9'], allowed: [], selectors: [] },
  ])
  t.equal(agent.learn(pod('other', WEB), answerTo('b.example.com.', '192.0.2.3')), undefined)
  t.equal(enforcer.size, 2, 'a client that is gone')
})

t.test('one client that learns thousands of addresses does not delay others', async (t) => {
  const limits = { newAddresses: 5, newAddressesPerSecond: 2 }
  const stage = new EgressStage({ limits })
  const { agent } = stage
  const [client, other] = [pod('a', WEB), pod('b', WEB, '10.1.0.2')]
  await agent.setClients([client, other])
  const ask = (who: Client, name: string, list: string) => {
    return agent.learn(who, answerTo(`${name}.example.com.`, list, 600))
  }
  t.equal(await ask(client, 'a', '192.0.2.1 192.0.2.2 192.0.2.3'), undefined)
  t.equal(await ask(client, 'b', '192.0.2.4 192.0.2.5 192.0.2.6'), 'failed')
  t.equal(await ask(client, 'a', '192.0.2.1 192.0.2.2 192.0.2.3'), undefined, 'none is new')
  t.equal(await ask(client, 'c', '192.0.2.4 192.0.2.5'), undefined, 'the last ones')
  t.equal(await ask(client, 'd', '192.0.2.6'), 'failed')
  t.equal(await ask(other, 'd', '192.0.2.6'), undefined, 'each has a budget of its own')
  stage.clock.pass(1000)
  t.equal(await ask(client, 'd', '192.0.2.6 192.0.2.7'), undefined)
  t.equal(await ask(client, 'e', '192.0.2.8'), 'failed')
  stage.clock.pass(3_600_000)
  t.equal(await ask(client, 'e', '192.0.2.8 192.0.2.9 192.0.2.10 192.0.2.11 192.0.2.12'), undefined)
  t.equal(await ask(client, 'f', '192.0.2.8'), 'failed')
})

t.test('a reply waits until its addresses are in force', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const client = pod('a', WEB)
  await agent.setClients([client])
  enforcer.delayMs = 50
  const results: string[] = []
  for (let i = 0; i < 5; i++) {
    const wait = agent.learn(client, answerTo('www.example.com.', '192.0.2.1'))
    void wait?.then((result) => {
      results.push(`${result} ${enforcer.isAllowed('10.1.0.1', '192.0.2.1', 'tcp 443-443')}`)
    })
    await stage.pass(10)
  }
  t.strictSame(results, ['acknowledged true'], 'the first after 50 ms')
  await stage.pass(60)
  t.strictSame(results, Array(5).fill('acknowledged true'))
  t.equal(agent.learn(client, answerTo('www.example.com.', '192.0.2.1')), undefined)
  t.equal(agent.learn(client, answerTo('www.example.org.', '192.0.2.1')), undefined, 'unselected')
  t.match(stage.decisions[0], { waitMs: 50, result: 'acknowledged' })
  t.match(agent.gate, { held: 5, results: { 'timed out': 0, failed: 0 } })
})

t.test('a reply waits no longer than the delay', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const client = pod('a', WEB)
  await agent.setClients([client])
  enforcer.delayMs = 101
  const wait = agent.learn(client, answerTo('www.example.com.', '192.0.2.1'))
  await stage.pass(100)
  t.equal(await wait, 'timed out')
  await stage.pass(1)
  t.equal(agent.learn(client, answerTo('www.example.com.', '192.0.2.1')), undefined)
  enforcer.fault = 'set any4 is full'
  t.equal(await agent.learn(client, answerTo('b.example.com.', '192.0.2.2')), 'failed')
  enforcer.fault = ''
  enforcer.allow = () => Promise.reject(new Error('broken'))
  t.equal(await agent.learn(client, answerTo('c.example.com.', '192.0.2.3')), 'failed')
  t.match(agent.gate, { held: 3, results: { 'timed out': 1, failed: 2 } })
  await stage.pass(200)
  t.equal(stage.timers.count, 1, 'only the timer of the collection is left')
})

t.test('what is never allowed', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const client = pod('a', [{ names: '*.example.com' }], '10.1.0.1 2001:db8::1')
  await agent.setClients([client])
  const bad = '169.254.169.254 127.0.0.1 10.96.0.1 0.0.0.0 224.0.0.1'
  t.equal(agent.learn(client, answerTo('a.example.com.', bad)), undefined)
  agent.learn(client, answerTo('a.example.com.', '::1 fe80::1 ff02::1 64:ff9b::7f00:1'))
  t.equal(enforcer.size, 0)
  agent.learn(client, answerTo('a.example.com.', '10.96.0.2 192.0.2.1'))
  t.strictSame(enforcer.inForce(), ['10.1.0.1 192.0.2.1 any'])
  t.equal(agent.counts.denied, 10)
  t.strictSame(stage.decisions[2]?.denied, ['10.96.0.2'])
  const later = pod('a', [{ names: '*.example.com' }, { names: '**', dialect: 'cilium-1.19' }])
  await agent.setClients([later])
  t.equal(enforcer.size, 1, 'and is not learned')
})

t.test('each family has the address of the client of this family', async (t) => {
  const { agent, enforcer } = new EgressStage()
  const dual = pod('a', WEB, '10.1.0.1 2001:db8::1')
  const single = pod('b', WEB, '10.1.0.2')
  await agent.setClients([dual, single])
  for (const client of [dual, single]) {
    agent.learn(client, answerTo('www.example.com.', '192.0.2.1'))
    agent.learn(client, answerTo('www.example.com.', '2001:db8:1::1'))
  }
  t.strictSame(enforcer.inForce(), [
    '10.1.0.1 192.0.2.1 tcp 443-443',
    '10.1.0.2 192.0.2.1 tcp 443-443',
    '2001:db8::1 2001:db8:1::1 tcp 443-443',
  ])
})

t.test('a change of the rules applies to what is known', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  await agent.setClients([pod('a', [])])
  const learn = (name: string, address: string) =>
    agent.learn(pod('a', []), answerTo(name, address))
  learn('www.example.com.', '192.0.2.1')
  learn('api.example.com.', '192.0.2.2')
  t.equal(enforcer.size, 0)
  enforcer.delayMs = 20
  const added = agent.setClients([pod('a', WEB)])
  t.equal(enforcer.inForce().length, 0)
  await stage.pass(20)
  t.equal(await added, '')
  t.equal(enforcer.inForce().length, 2, 'a policy that came after the lookup')
  enforcer.delayMs = 0
  const narrow = [{ names: 'www.example.com', ports: 'tcp 443, tcp 80' }]
  t.equal(await agent.setClients([pod('a', narrow)]), '')
  t.strictSame(enforcer.inForce(), [
    '10.1.0.1 192.0.2.1 tcp 443-443',
    '10.1.0.1 192.0.2.1 tcp 80-80',
  ])
  await agent.setClients([pod('a', [])])
  t.equal(enforcer.size, 0)
  t.equal(agent.profileCount, 1)
})

t.test('names that no rule selects take no room of those that one selects', async (t) => {
  const stage = new EgressStage({ limits: { unselectedAddresses: 100 } })
  const { agent, enforcer } = stage
  const client = pod('a', WEB)
  await agent.setClients([client])
  agent.learn(client, answerTo('www.example.com.', '192.0.2.1', 60))
  for (let i = 0; i < 3000; i++) {
    agent.learn(client, answerTo(`n${i}.example.org.`, '192.0.2.1', 3600))
    agent.learn(client, answerTo(`n${i}.example.net.`, `198.18.${i >> 8}.${i & 255}`, 3600))
  }
  t.strictSame(enforcer.inForce(), ['10.1.0.1 192.0.2.1 tcp 443-443'])
  t.equal(agent.counts.evictions, 0)
  await agent.setClients([pod('a', [{ names: '*.example.net' }])])
  t.ok(enforcer.isAllowed('10.1.0.1', '198.18.11.183'), 'the last ones are kept')
  t.notOk(enforcer.isAllowed('10.1.0.1', '192.0.2.1', 'tcp 443-443'))
  await agent.setClients([client])
  t.strictSame(enforcer.inForce(), ['10.1.0.1 192.0.2.1 tcp 443-443'], 'not forgotten')
})

t.test('a client begins without what another had at its address', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const before = pod('a', WEB)
  await agent.setClients([before])
  agent.learn(before, answerTo('www.example.com.', '192.0.2.1'))
  t.equal(enforcer.size, 1)
  const after = pod('b', WEB)
  await agent.setClients([after])
  t.equal(enforcer.size, 0)
  t.equal(clientAt(stage, '10.1.0.1'), after)
  agent.learn(before, answerTo('www.example.com.', '192.0.2.1'))
  t.equal(enforcer.size, 0, 'a late answer of the other')
  await agent.setClients([after, pod('c', WEB)])
  t.equal(clientAt(stage, '10.1.0.1')?.id, 'c', 'two with one address: the later one')
  t.strictSame(
    enforcer.clients.map(({ addresses }) => addresses),
    [[], ['10.1.0.1']],
  )
  agent.learn(after, answerTo('www.example.com.', '192.0.2.1'))
  t.equal(enforcer.size, 0)
})

t.test('a client gets another address', async (t) => {
  const { agent, enforcer } = new EgressStage()
  await agent.setClients([pod('a', WEB)])
  agent.learn(pod('a', WEB), answerTo('www.example.com.', '192.0.2.1'))
  await agent.setClients([pod('a', WEB, '10.1.0.7')])
  t.strictSame(enforcer.inForce(), ['10.1.0.7 192.0.2.1 tcp 443-443'])
})

t.test('which names may be asked for', async (t) => {
  const { agent } = new EgressStage()
  const dns = [
    { ports: portsOf('udp 53'), names: selectorsOf('*.example.com') },
    { ports: portsOf('tcp 50-60, udp 5353'), names: selectorsOf('tcp.example.com') },
    { ports: undefined, names: selectorsOf('any.example.net') },
  ]
  const clients = {
    all: pod('all', rulesOf([]), '10.1.0.1'),
    none: pod('none', rulesOf([], []), '10.1.0.2'),
    some: pod('some', rulesOf([], dns), '10.1.0.3'),
    same: pod('same', rulesOf([], dns), '10.1.0.4'),
  }
  await agent.setClients(Object.values(clients))
  t.equal(agent.profileCount, 3)
  const may = (client: Client, text: string): string => {
    const name = nameOf(text)
    return `${agent.mayAsk(client, 'udp', name)} ${agent.mayAsk(client, 'tcp', name)}`
  }
  t.equal(may(clients.all, 'a.example.com.'), 'true true')
  t.equal(may(clients.none, 'a.example.com.'), 'false false')
  for (const client of [clients.some, clients.same]) {
    t.equal(may(client, 'a.example.com.'), 'true false')
    t.equal(may(client, 'tcp.example.com.'), 'true true')
    t.equal(may(client, 'any.example.net.'), 'true true')
    t.equal(may(client, 'example.com.'), 'false false')
  }
  await agent.setClients([clients.all])
  t.equal(may(clients.some, 'a.example.com.'), 'false false', 'it is gone')
})

t.test('the end of the TTL', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const client = pod('a', [...WEB, { names: 'c.example.com', lasts: 'connections' }])
  await agent.setClients([client])
  agent.learn(client, answerTo('a.example.com.', '192.0.2.1', 0))
  agent.learn(client, answerTo('b.example.com.', '192.0.2.2', 30))
  await stage.pass(5000)
  t.equal(enforcer.inForce().length, 2, 'the minimum TTL')
  await stage.pass(1)
  t.equal(enforcer.inForce().length, 1)
  await stage.pass(24_999)
  t.equal(enforcer.inForce().length, 1)
  agent.learn(client, answerTo('b.example.com.', '192.0.2.2', 30))
  await stage.pass(30_000)
  t.equal(enforcer.size, 1, 'extended, and the first collection has removed the other')
  await stage.pass(60_000)
  t.equal(enforcer.size, 0)
  t.equal(agent.counts.removals, 2)
})

t.test('each address of an answer has its own TTL', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const client = pod('a', WEB)
  await agent.setClients([client])
  agent.learn(client, answerTo('a.example.com.', '192.0.2.1/20 192.0.2.2/300 192.0.2.1/10', 5))
  await stage.pass(20_000)
  t.equal(enforcer.inForce().length, 2, 'also if a CNAME has a lower one')
  await stage.pass(1)
  t.strictSame(enforcer.inForce(), ['10.1.0.1 192.0.2.2 tcp 443-443'])
  await stage.pass(280_000)
  t.equal(enforcer.size, 0)
})

t.test('a policy that is deleted and made again finds what the client knows', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer, connections } = stage
  const client = pod('a', CILIUM)
  await agent.setClients([client])
  agent.learn(client, answerTo('a.example.com.', '192.0.2.1', 60))
  agent.learn(client, answerTo('b.example.com.', '192.0.2.2', 600))
  agent.learn(client, answerTo('b.example.net.', '192.0.2.3', 600))
  connections.open.add('10.1.0.1 192.0.2.1')
  await stage.pass(120_000)
  await agent.setClients([pod('b', CILIUM)])
  t.equal(enforcer.size, 0)
  await stage.pass(60_000)
  await agent.setClients([pod('a', CILIUM, '10.1.0.9')])
  t.strictSame(enforcer.inForce(), ['10.1.0.9 192.0.2.1 any', '10.1.0.9 192.0.2.2 any'])
  await agent.setClients([pod('a', [{ names: 'b.example.net' }])])
  t.strictSame(enforcer.inForce(), ['10.1.0.1 192.0.2.3 any'], 'or another policy')
  await agent.setClients([])
  await stage.pass(500_000)
  await agent.setClients([client])
  t.equal(enforcer.size, 0, 'after the end of the TTL')
})

t.test('an address of two names, and a name of two selectors', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const both = [{ names: 'a.example.com' }, { names: '*.example.com' }, { names: 'b.example.org' }]
  const client = pod('a', both)
  await agent.setClients([client])
  agent.learn(client, answerTo('a.example.com.', '192.0.2.1', 20))
  agent.learn(client, answerTo('b.example.org.', '192.0.2.1', 200))
  await agent.setClients([pod('a', [{ names: '*.example.com' }])])
  t.ok(enforcer.isAllowed('10.1.0.1', '192.0.2.1'), 'another selector of the name is left')
  await agent.setClients([client])
  await stage.pass(120_000)
  t.ok(enforcer.isAllowed('10.1.0.1', '192.0.2.1'), 'another name of the address is left')
  await stage.pass(120_000)
  t.equal(enforcer.size, 0)
})

t.test('equal answers of one second change nothing', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const client = pod('a', WEB)
  await agent.setClients([client])
  stage.clock.pass(1)
  const ends = new Set<number>()
  const name = nameKey(scanName('a.example.com.')!)
  for (let ms = 0; ms < 2000; ms += 10) {
    agent.learn(client, answerTo('a.example.com.', '192.0.2.1', 20))
    for (const { cache } of agent.states()) ends.add(cache.endOf(name, '192.0.2.1')!)
    stage.clock.pass(10)
  }
  t.strictSame([...ends], [22_000, 23_000])
  t.equal(enforcer.size, 1)
})

t.test('an address with connections is allowed after its TTL', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer, connections } = stage
  const client = pod('a', CILIUM)
  await agent.setClients([client])
  agent.learn(client, answerTo('a.example.com.', '192.0.2.1 192.0.2.2', 10))
  agent.learn(client, answerTo('b.example.com.', '192.0.2.3', 10))
  agent.learn(client, answerTo('b.example.org.', '192.0.2.4', 10))
  connections.open.add('10.1.0.1 192.0.2.1')
  await stage.pass(60_000)
  t.equal(enforcer.inForce().length, 3, 'one dump since it became a zombie')
  const allowed = () => enforcer.inForce().map((text) => text.split(' ')[1])
  for (let minute = 0; minute < 180; minute++) {
    await stage.pass(60_000)
    t.strictSame(allowed(), ['192.0.2.1', '192.0.2.2'], 'and its siblings')
  }
  connections.open.clear()
  connections.fault = 'conntrack ended'
  for (let minute = 0; minute < 4; minute++) await stage.pass(60_000)
  t.equal(enforcer.size, 2, 'an incomplete dump does not count')
  for (let minute = 0; minute < 10; minute++) await stage.pass(60_000)
  t.equal(enforcer.size, 0, 'without dumps, addresses end')
})

t.test('above the limit, addresses without connections go first', async (t) => {
  const stage = new EgressStage({ limits: { most: 10 } })
  const { agent, enforcer, connections } = stage
  const client = pod('a', CILIUM)
  await agent.setClients([client])
  connections.open.add('10.1.0.1 192.0.2.0')
  for (let second = 0; second < 600; second++) {
    const address = second === 0 ? '192.0.2.0' : `198.18.${second >> 8}.${second & 255}`
    agent.learn(client, answerTo('a.example.com.', address, 5))
    await stage.pass(1000)
    if (!enforcer.isAllowed('10.1.0.1', '192.0.2.0')) t.fail(`after ${second} s`)
  }
  t.ok(agent.counts.zombieEvictions > 400)
})

t.test('connections that have ended do not take the place of open ones', async (t) => {
  const stage = new EgressStage({ limits: { perName: 100 } })
  const { agent, enforcer, connections } = stage
  const client = pod('a', CILIUM)
  await agent.setClients([client])
  const open = Array.from({ length: 10 }, (_, i) => `192.0.2.${i}`)
  agent.learn(client, answerTo('a.example.com.', open.join(' '), 5))
  for (const address of open) connections.open.add(`10.1.0.1 ${address}`)
  const short: string[] = []
  for (let second = 0; second < 600; second++) {
    const address = `198.18.${second >> 8}.${second & 255}`
    agent.learn(client, answerTo('a.example.com.', address, 5))
    connections.onNew(flowOf(`10.1.0.1 ${address}`))
    // For two minutes, the kernel remembers it.
    short.push(`10.1.0.1 ${address}`)
    connections.ended.add(short.at(-1)!)
    if (short.length > 120) connections.ended.delete(short.shift()!)
    await stage.pass(1000)
  }
  const allowed = open.filter((address) => enforcer.isAllowed('10.1.0.1', address))
  t.strictSame(allowed, open)
})

t.test(
  'without a look at connections, no address outlasts its TTL by more than a minute',
  async (t) => {
    const stage = new EgressStage({ connections: undefined })
    const { agent, enforcer } = stage
    await agent.setClients([pod('a', CILIUM)])
    agent.learn(pod('a', CILIUM), answerTo('a.example.com.', '192.0.2.1', 10))
    await stage.pass(60_000)
    t.equal(enforcer.size, 0)
  },
)
