import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { AGENT_LIMITS_DEFAULT } from '../../../src/egress/agent/agent-limits.ts'
import { Conntrack } from '../../../src/egress/agent/conntrack/conntrack.ts'
import { EgressAgent } from '../../../src/egress/agent/egress-agent.ts'
import { AddressRules } from '../../../src/egress/learned/address-rules.ts'
import { answerTo, clientOf } from '../../support/egress-client.ts'
import { EgressStage } from '../../support/egress-stage.ts'
import { needs, needsRoot } from '../../support/peer.ts'
import { until } from '../../support/until.ts'
import { POD, routedPod, WORLD } from '../sinks/nft/routed-pod.ts'

// Long: it waits for timeouts of the kernel.

const pod = (rules: Parameters<typeof clientOf>[2], id = 'a', address = '10.1.0.1') =>
  clientOf(id, address, rules)
const NAME = [{ names: '*.example.com' }]
const OTHER_RULE = [...NAME, { names: 'other.example.org' }]

async function stageWith(...open: readonly string[]) {
  const stage = new EgressStage({ cutsConnections: true })
  for (const text of open) stage.connections.open.add(text)
  await stage.agent.setClients([])
  return stage
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
}

t.test('a Pod that a policy begins to select', async (t) => {
  const kept = [
    '10.1.0.1 10.96.0.1 6 443 192.0.2.2 8443',
    '10.1.0.1 192.0.2.3 6 443 10.96.7.7 8443',
    '10.1.0.1 192.0.2.4 17 53 192.0.2.99 5353',
    '10.1.0.1 198.51.100.1',
    '10.1.0.1 192.0.2.5 6 80 198.51.100.2 443',
    '10.1.0.2 192.0.2.1',
    '192.0.2.1 10.1.0.1',
  ]
  const cut = [
    '10.1.0.1 192.0.2.1',
    '10.1.0.1 192.0.2.1 1 0',
    '10.1.0.1 192.0.2.4 17 53',
    '10.1.0.1 198.51.100.1 6 80',
    '10.1.0.1 198.51.100.3 6 443 192.0.2.3 443',
  ]
  const { agent, connections, lines } = await stageWith(...kept, ...cut)
  const client = pod([{ networks: '198.51.100.0/24', ports: 'tcp 443' }])
  await agent.setClients([client])
  await settled()
  t.strictSame([...connections.open], kept)
  t.strictSame(connections.cuts, cut)
  t.strictSame(lines, ['[INFO] connections ended that are no longer allowed: 5'])
  await agent.setClients([client])
  await settled()
  t.equal(connections.dumps, 1, 'nothing has changed')
})

t.test('a change of the rules', async (t) => {
  const { agent, connections } = await stageWith()
  const client = pod(NAME)
  await agent.setClients([client])
  agent.learn(client, answerTo('www.example.com.', '192.0.2.1'))
  agent.learn(client, answerTo('api.example.com.', '192.0.2.2'))
  const all = ['192.0.2.1', '192.0.2.2 6 443', '192.0.2.2 6 80'].map((one) => `10.1.0.1 ${one}`)
  for (const text of all) connections.open.add(text)
  await agent.setClients([pod(OTHER_RULE)])
  await settled()
  t.equal(connections.open.size, 3, 'all are allowed')
  await agent.setClients([pod([{ names: '*.example.com', ports: 'tcp 443' }])])
  await settled()
  t.strictSame([...connections.open], all.slice(0, 2), 'a port')
  await agent.setClients([pod([{ names: 'www.example.com' }])])
  await settled()
  t.strictSame([...connections.open], all.slice(0, 1), 'a name')
  await agent.setClients([pod([{ networks: '192.0.2.0/24' }])])
  await settled()
  t.equal(connections.open.size, 1, 'a network')
  await agent.setClients([])
  await agent.setClients([pod([])])
  await settled()
  t.equal(connections.open.size, 0)
})

t.test('a name counts for as long as connections to its address are open', async (t) => {
  const stage = await stageWith('10.1.0.1 192.0.2.1')
  const { agent, connections, enforcer } = stage
  const client = pod(NAME)
  connections.open.clear()
  await agent.setClients([client])
  agent.learn(client, answerTo('www.example.com.', '192.0.2.1', 10))
  connections.open.add('10.1.0.1 192.0.2.1')
  await stage.pass(600_000)
  t.equal(enforcer.inForce().length, 0, 'its TTL has ended')
  await agent.setClients([pod(OTHER_RULE)])
  await settled()
  t.equal(connections.open.size, 1, 'another rule has changed')
  await agent.setClients([pod([{ names: 'other.example.org' }])])
  await settled()
  t.equal(connections.open.size, 0)
  await stage.pass(240_000)
  for (const { cache } of agent.states()) t.equal(cache.zombieCount, 0)
})

t.test('the names of a first start are not known', async (t) => {
  const statePath = `${t.testdir({})}/state`
  const parts = { cutsConnections: true, statePath }
  const first = new EgressStage(parts)
  first.connections.open.add('10.1.0.1 192.0.2.1')
  await first.agent.restore()
  await first.agent.setClients([pod(NAME)])
  await settled()
  t.equal(first.connections.dumps, 0)
  first.agent.close()
  const second = new EgressStage(parts, first)
  second.connections.open.add('10.1.0.1 192.0.2.1').add('10.1.0.2 192.0.2.1')
  await second.agent.restore()
  await second.agent.setClients([pod(NAME), pod(NAME, 'b', '10.1.0.2')])
  await settled()
  t.strictSame([...second.connections.open], ['10.1.0.1 192.0.2.1'], 'a new client')
})

t.test('faults', async (t) => {
  const stage = await stageWith('10.1.0.1 192.0.2.1')
  const { agent, connections, enforcer, lines } = stage
  enforcer.fault = 'broken'
  await agent.setClients([pod(NAME)])
  await settled()
  await stage.pass(60_000)
  t.equal(connections.dumps, 0, 'the rules are not in force')
  enforcer.fault = ''
  connections.fault = 'conntrack ended'
  connections.open.clear()
  await stage.pass(120_000)
  t.equal(connections.dumps, 2)
  const error = '[ERROR] connections that are no longer allowed may continue: conntrack ended'
  t.strictSame(lines, [error])
  connections.fault = ''
  connections.open.add('10.1.0.1 192.0.2.1')
  await stage.pass(60_000)
  t.equal(connections.open.size, 0)
  await stage.pass(60_000)
  t.equal(connections.dumps, 3)
})

t.test('a client with many connections does not hold up others', async (t) => {
  const many = Array.from({ length: 700 }, (_, i) => `10.1.0.1 192.0.2.1 6 ${1000 + i}`)
  const stage = await stageWith(...many, '10.1.0.2 192.0.2.1')
  const { agent, connections } = stage
  await agent.setClients([pod(NAME), pod(NAME, 'b', '10.1.0.2')])
  await until(() => connections.cuts.length === 301, 'the first pass')
  t.equal(connections.cuts[1], '10.1.0.2 192.0.2.1')
  await stage.pass(60_000)
  await until(() => connections.cuts.length === 601, 'the second pass')
  await stage.pass(60_000)
  await until(() => connections.open.size === 0, 'the third pass')
})

const isPossible = { ...needsRoot(), ...needs('nft', 'conntrack') }

for (const cutsConnections of [true, false]) {
  const what = cutsConnections ? 'are cut' : 'continue'
  t.test(`in the kernel, connections ${what}`, isPossible, async (t) => {
    const { enforcer, pod: program, node, world, inNode } = await routedPod(t, { cutsConnections })
    const log = createLogger(
      '',
      () => {},
      () => true,
    )
    const command = [...inNode, 'conntrack']
    const random = new Random(1)
    const connections = new Conntrack({ command, timers: systemTimers, random, log })
    const agent = new EgressAgent({
      enforcer,
      rules: new AddressRules([], []),
      connections,
      limits: AGENT_LIMITS_DEFAULT,
      maxDelayMs: 1000,
      cutsConnections,
      statePath: '',
      clock: systemClock,
      timers: systemTimers,
      log,
    })
    t.teardown(() => agent.close())
    await agent.setClients([clientOf('x', '10.1.0.99', [])])
    const flows = async () => {
      const found: string[] = []
      const fault = await connections.dump(({ source, destination, port, protocol }) => {
        found.push(`${source} ${destination} ${protocol} ${port}`)
      })
      t.equal(fault, '')
      return found
    }
    const has = async (text: string) => (await flows()).some((one) => one.startsWith(text))
    const [first = '', second = ''] = WORLD
    const six = WORLD[3]!
    t.equal(await program.open('allowed', { address: first, port: 443 }), 'open')
    t.equal(await program.open('port', { address: first, port: 80 }), 'open')
    t.equal(await program.open('tcp', { address: second, port: 443 }), 'open')
    t.equal(await program.open('udp', { address: second, port: 5000, protocol: 'udp' }), 'open')
    t.equal(await program.open('six', { address: six, port: 443 }), 'open')
    const refused = [
      `${POD[0]} ${first} 6 80`,
      `${POD[0]} ${second} 6 443`,
      `${POD[0]} ${second} 17 5000`,
      `${POD[1]} ${six} 6 443`,
    ]
    for (const text of refused) t.ok(await has(text), text)

    // The server sends all the time, so it may be the first after the cut.
    const stream = `require('node:net').createServer((s) => {
      s.on('error', () => {}); setInterval(() => s.write('x'), 10) }).listen(81, () => console.log('ready'))`
    const server = world.start([process.execPath, '-e', stream])
    await until(() => server.output().includes('ready'), 'the server')
    void program.open('stream', { address: second, port: 81 })
    await until(() => has(`${POD[0]} ${second} 6 81`), 'the stream')

    const rules = [{ networks: `${first}/32`, ports: 'tcp 443' }]
    t.equal(await agent.setClients([clientOf('x', POD.join(' '), rules)]), '')
    if (cutsConnections) {
      const own = (text: string) => text.includes(second) || text.includes(six)
      await until(async () => !(await flows()).some(own), 'the cuts')
      const isRefused = async () => {
        const chain = await node.run('nft', 'list', 'chain', 'inet', 'egress', 'forward')
        return /clients4 .* counter packets [1-9]/.test(chain)
      }
      await until(isRefused, 'late segments of the server')
      t.notOk((await flows()).some(own), 'it does not begin again')
    }
    const want = cutsConnections ? 'dropped' : 'open'
    const limitMs = cutsConnections ? 400 : 60_000
    for (const name of ['port', 'tcp', 'udp', 'six']) {
      t.equal(await program.echo(name, limitMs), want, name)
    }
    t.equal(await program.echo('allowed'), 'open')
  })
}
