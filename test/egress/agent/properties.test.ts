import { join } from 'node:path'
import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import type { Client } from '../../../src/egress/agent/client.ts'
import { answerTo, clientOf, rulesOf } from '../../support/egress-client.ts'
import { EgressStage, flowOf } from '../../support/egress-stage.ts'
import { decisionOf } from '../decide-connection.ts'
import { nameOf } from '../egress-rules.ts'

// Long: thousands of random sequences.

const MIN_TTL_MS = 5000
const RULE_SETS = [
  [],
  [{ names: '*.example.com', ports: 'tcp 443' }],
  [{ names: 'a.example.com', lasts: 'connections' }],
  [
    { names: '*.example.com', lasts: 'connections' },
    { names: '*.example.org', ports: 'tcp 443' },
  ],
  [
    { names: 'b.example.org' },
    { names: '*.example.com', ports: 'tcp 443', networks: '192.0.2.3/32' },
  ],
] as const
const NAMES = ['a.example.com.', 'b.example.com.', 'a.example.org.', 'b.example.org.', 'c.example.']

/** One address of one name that a client got. */
interface Got {
  readonly id: string
  readonly name: string
  readonly address: string
  readonly endMs: number
}

/** What is true of the world, without the agent. */
class Model {
  got: Got[] = []

  /**
   * True if the rules of the client, and names that it got, explain a connection to tcp 443. `sinceMs`:
   * names whose TTL ended before do not count.
   */
  isExplained(client: Client, address: string, nowMs: number, sinceMs = 0): boolean {
    const names = this.got
      .filter((one) => one.id === client.id && one.address === address && one.endMs >= sinceMs)
      .map(({ name, endMs }) => ({ name: nameOf(name), endMs, isZombie: endMs < nowMs }))
    const connection = { address: scanAddress(address)!, protocol: 'tcp', port: 443 } as const
    return decisionOf(client.rules.lists, connection, names) === 'accept'
  }
}

function isAllowed({ enforcer }: EgressStage, client: Client, address: string): boolean {
  const [own = ''] = client.addresses
  return enforcer.isAllowed(own, address) || enforcer.isAllowed(own, address, 'tcp 443-443')
}

/** What the enforcer allows and nothing explains; and what is not allowed although an answer says so. */
function faultsOf(stage: EgressStage, model: Model, clients: readonly Client[]): readonly string[] {
  const nowMs = stage.clock.monotonic()
  const faults: string[] = []
  for (const text of stage.enforcer.inForce()) {
    const [own, address = ''] = text.split(' ')
    const client = clients.find(({ addresses }) => addresses[0] === own)
    if (client === undefined) faults.push(`${text}: not a client`)
    else if (!model.isExplained(client, address, nowMs)) faults.push(`${text}: no witness`)
    const grants = [...stage.agent.states()].find((state) => state.client.id === client?.id)
    const isKnown = grants !== undefined && [...grants.cache.namesAt(address)].length > 0
    if (!isKnown) faults.push(`${text}: the agent does not know it`)
  }
  for (const { id, address, endMs } of model.got) {
    const client = clients.find((one) => one.id === id)
    if (client === undefined || endMs < nowMs) continue
    const isStatic = address === '192.0.2.3' && client.rules.lists[0]![0]!.rules.length === 2
    if (isStatic || !model.isExplained(client, address, nowMs, nowMs)) continue
    if (!isAllowed(stage, client, address)) faults.push(`${id} ${address}: was lost`)
  }
  return faults
}

t.test('what is in force has a witness, and no answer is lost', async (t) => {
  for (let round = 0; round < 12; round++) {
    const random = new Random(round)
    const statePath = join(t.testdir({}), `egress-${round}`)
    const model = new Model()
    let stage = new EgressStage({ statePath })
    let version = 0
    const ids = ['a', 'b', 'c']
    let clients: readonly Client[] = []
    const setClients = async (): Promise<void> => {
      clients = ids.map((id, i) => {
        const rules = rulesOf(RULE_SETS[random.below(RULE_SETS.length)]!)
        return clientOf(id, `10.1.0.${i + 1}`, rules)
      })
      const done = stage.agent.setClients(clients)
      await stage.pass(100)
      t.equal(await done, '')
    }
    const learn = async (): Promise<void> => {
      const client = clients[random.below(clients.length)]!
      const name = NAMES[random.below(NAMES.length)]!
      const addresses = [1, 2, 3, 4].filter(() => random.below(2) > 0).map((i) => `192.0.2.${i}`)
      if (addresses.length === 0) return
      const ttlSeconds = random.below(90)
      // Ends are whole seconds.
      const lookupMs = Math.ceil(stage.clock.monotonic() / 1000) * 1000
      const endMs = lookupMs + Math.max(MIN_TTL_MS, ttlSeconds * 1000)
      for (const address of addresses) model.got.push({ id: client.id, name, address, endMs })
      stage.enforcer.delayMs = random.below(2) * 50
      const wait = stage.agent.learn(client, answerTo(name, addresses.join(' '), ttlSeconds))
      const released = (result: string): void => {
        if (result === 'timed out') return
        for (const address of addresses) {
          const nowMs = stage.clock.monotonic()
          const isStatic = address === '192.0.2.3'
          if (isStatic || !model.isExplained(client, address, nowMs, nowMs)) continue
          if (!isAllowed(stage, client, address)) t.fail(`${name} ${address} was released`)
        }
      }
      if (wait === undefined) released('')
      else void wait.then(released)
      await stage.pass(100)
    }
    const replaceClient = async (): Promise<void> => {
      ids[random.below(ids.length)] = `new ${version++}`
      await setClients()
    }
    const restart = async (): Promise<void> => {
      stage.agent.close()
      stage.clock.pass([0, 0, 30_000, 400_000][random.below(4)]!)
      stage = new EgressStage({ statePath }, stage)
      const isLate = random.below(2) > 0
      const set = async (): Promise<void> => {
        if (random.below(2) > 0) await setClients()
        else t.equal(await stage.agent.setClients(clients), '')
      }
      if (isLate) {
        await set()
        for (let i = random.below(4); i > 0; i--) await learn()
        stage.enforcer.delayMs = 0
      }
      t.equal(await stage.agent.restore(), '')
      // Milliseconds are rounded in the file.
      stage.clock.pass(2)
      t.strictSame(faultsOf(stage, model, clients), [], 'after a restart')
      if (!isLate) await set()
    }
    const connect = async (): Promise<void> => {
      const pair = `10.1.0.${1 + random.below(3)} 192.0.2.${1 + random.below(4)}`
      const { open } = stage.connections
      if (random.below(2) > 0) open.add(pair)
      else open.clear()
    }
    const steps = [learn, learn, learn, learn, connect, setClients, replaceClient, restart]
    await stage.agent.restore()
    await setClients()
    for (let step = 0; step < 150; step++) {
      await steps[random.below(random.below(4) === 0 ? steps.length : 5)]!()
      stage.enforcer.delayMs = 0
      await stage.pass(random.below(3) * 1000 * random.below(40))
      const faults = faultsOf(stage, model, clients)
      if (faults.length > 0) t.strictSame(faults, [], `round ${round}, step ${step}`)
      if (faults.length > 0) break
    }
    stage.agent.close()
  }
  t.pass('all rounds ended')
})

t.test('no reply leaves before its addresses are in force, whatever is collected', async (t) => {
  const stage = new EgressStage()
  const { agent, enforcer } = stage
  const client = clientOf('a', '10.1.0.1', [{ names: '*.example.com', lasts: 'connections' }])
  await agent.setClients([client])
  enforcer.delayMs = 50
  let released = 0
  let early = 0
  for (let ms = 0; ms < 300; ms++) {
    for (let i = 0; i < 5; i++) {
      const address = `192.0.2.${Math.floor(ms / 100)}`
      const check = (): void => {
        released++
        if (!enforcer.isAllowed('10.1.0.1', address)) early++
      }
      const wait = agent.learn(client, answerTo('new.example.com.', address, 1))
      if (wait === undefined) check()
      else void wait.then(check)
    }
    await agent.collect()
    await stage.pass(1)
  }
  await stage.pass(100)
  t.strictSame([released, early, agent.gate.results['timed out']], [1500, 0, 0])
})

t.test('addresses of a name that change all the time', async (t) => {
  for (const lasts of ['ttl', 'connections'] as const) {
    const stage = new EgressStage()
    const { agent, enforcer, connections } = stage
    const random = new Random(5)
    const client = clientOf('a', '10.1.0.1', [{ names: 's3.example.com', lasts, ports: 'tcp 443' }])
    await agent.setClients([client])
    const next = (): readonly string[] =>
      Array.from({ length: 8 }, () => {
        const n = random.below(5000)
        return `198.18.${n >> 8}.${n & 255}`
      })
    let most = 0
    let dropped = 0
    let long = ''
    for (let second = 0; second < 2 * 3600; second++) {
      const addresses = [...new Set(next())]
      agent.learn(client, answerTo('s3.example.com.', addresses.join(' '), 5))
      const chosen = addresses[random.below(addresses.length)]!
      if (!enforcer.isAllowed('10.1.0.1', chosen, 'tcp 443-443')) dropped++
      if (long === '') {
        long = chosen
        connections.open.add(`10.1.0.1 ${long}`)
      }
      if (lasts === 'connections' && !enforcer.isAllowed('10.1.0.1', long, 'tcp 443-443')) dropped++
      connections.onNew(flowOf(`10.1.0.1 ${chosen}`))
      await stage.pass(1000)
      most = Math.max(most, enforcer.size)
    }
    t.equal(dropped, 0, lasts)
    t.ok(most < (lasts === 'ttl' ? 600 : 2000), `at most ${most} elements, ${lasts}`)
    connections.open.clear()
    await stage.pass(400_000)
    t.equal(enforcer.size, 0)
  }
})

t.test('limits', async (t) => {
  const limits = { addressesPerName: 10, addressesPerClient: 50, addresses: 120 }
  const stage = new EgressStage({ limits })
  const { agent, enforcer } = stage
  const clients = [1, 2, 3].map((i) =>
    clientOf(`${i}`, `10.1.0.${i}`, [{ names: '*.example.com' }]),
  )
  await agent.setClients(clients)
  const count = () => [...agent.states()].map(({ cache }) => cache.size)
  for (let i = 0; i < 100; i++) {
    for (const client of clients) {
      agent.learn(client, answerTo(`n${i}.example.com.`, `192.0.2.${i}`, 60 + i))
      t.ok(enforcer.isAllowed(client.addresses[0]!, `192.0.2.${i}`), 'what came last is allowed')
    }
  }
  const sizes = count()
  t.equal(
    sizes.reduce((sum, size) => sum + size),
    120,
  )
  t.ok(sizes.every((size) => size <= 50 && size >= 30))
  t.equal(enforcer.inForce().length, 120)
  t.equal(agent.counts.evictions, 180)
  const many = Array.from({ length: 30 }, (_, i) => `198.51.100.${i}`).join(' ')
  agent.learn(clients[0]!, answerTo('many.example.com.', many, 600))
  t.equal(enforcer.inForce().filter((text) => text.includes('198.51.100')).length, 30)
  await stage.pass(60_000)
  t.equal(enforcer.inForce().filter((text) => text.includes('198.51.100')).length, 10)
  t.match(stage.lines, [/addresses removed at a limit: \d+ in a minute/])

  const churned = new EgressStage({ limits: { addresses: 120, most: 1000 } })
  const lasting = clients.map(({ id, addresses }) => {
    return clientOf(id, addresses[0]!, [{ names: '*.example.com', lasts: 'connections' }])
  })
  await churned.agent.setClients(lasting)
  for (let i = 0; i < 600; i++) {
    for (const one of lasting) {
      const address = `198.18.${i >> 8}.${i & 255}`
      churned.agent.learn(one, answerTo(`n${i}.example.com.`, address, 5))
      churned.agent.learn(one, answerTo(`n${i}.example.net.`, address, 500))
      t.ok(churned.enforcer.isAllowed(one.addresses[0]!, address), 'what came last is allowed')
    }
    if (i % 100 === 0) await churned.pass(20_000)
    const all = [...churned.agent.states()].map(({ size }) => size)
    t.ok(Math.max(...all) <= 60)
    t.ok(all.reduce((sum, size) => sum + size) <= 120, 'also zombies and names without a rule')
  }
  t.ok(churned.enforcer.size <= 120)

  const shared = new EgressStage()
  const [client] = clients
  await shared.agent.setClients([client!])
  for (let i = 0; i < 1000; i++) {
    shared.agent.learn(client!, answerTo(`n${i}.example.com.`, '192.0.2.1', 60))
  }
  t.equal([...shared.agent.states()][0]!.cache.size, 256, 'names of one address')
  t.strictSame(shared.enforcer.inForce(), ['10.1.0.1 192.0.2.1 any'])
})
