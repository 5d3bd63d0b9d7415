import { join } from 'node:path'
import t from 'tap'
import { answerTo, clientOf } from '../../support/egress-client.ts'
import { EgressStage } from '../../support/egress-stage.ts'

/*
 * Clocks that are set, and a process that does not run for a time. What is allowed depends on time that has passed, and
 * nothing is allowed that no answer allows.
 */

const HOUR_MS = 3_600_000
const CLIENT = clientOf('a', '10.1.0.1', [
  { names: '*.example.com', ports: 'tcp 443' },
  { names: '*.example.net', ports: 'tcp 443', lasts: 'connections' },
])

/** Has learned an address that ends in 10 minutes, one with an open connection that ended, and one that ends in 100 s. */
async function learned(statePath = ''): Promise<EgressStage> {
  const stage = new EgressStage({ statePath })
  await stage.agent.restore()
  await stage.agent.setClients([CLIENT])
  stage.connections.open.add('10.1.0.1 192.0.2.2')
  stage.agent.learn(CLIENT, answerTo('open.example.net.', '192.0.2.2', 10))
  await stage.pass(120_000)
  stage.agent.learn(CLIENT, answerTo('long.example.com.', '192.0.2.1', 600))
  stage.agent.learn(CLIENT, answerTo('short.example.com.', '192.0.2.3', 100))
  await stage.pass(1000)
  return stage
}

const addresses = (stage: EgressStage) => stage.enforcer.inForce().map((text) => text.split(' ')[1])

t.test('the wall clock is set while the process runs', async (t) => {
  for (const stepMs of [-24 * HOUR_MS, -10_000, 10_000, 24 * HOUR_MS]) {
    const stage = await learned()
    stage.clock.nowMs += stepMs
    await stage.agent.collect()
    t.strictSame(addresses(stage), ['192.0.2.1', '192.0.2.2', '192.0.2.3'], `${stepMs} ms`)
    await stage.pass(98_000)
    t.strictSame(addresses(stage), ['192.0.2.1', '192.0.2.2', '192.0.2.3'], 'until the TTL ends')
    await stage.pass(62_000)
    t.strictSame(addresses(stage), ['192.0.2.1', '192.0.2.2'])
    await stage.pass(500_000)
    t.strictSame(addresses(stage), ['192.0.2.2'], 'an open connection')
    stage.agent.close()
  }
})

t.test('the wall clock is set, and then the process ends', async (t) => {
  for (const stepMs of [-24 * HOUR_MS, -10_000, 10_000, 24 * HOUR_MS]) {
    const path = join(t.testdir({}), 'state')
    const before = await learned(path)
    before.clock.nowMs += stepMs
    await before.pass(1000)
    // The file gets its new time.
    before.agent.learn(CLIENT, answerTo('last.example.com.', '192.0.2.4', 600))
    await before.pass(1000)
    before.agent.close()
    const had = addresses(before)
    const stage = new EgressStage({ statePath: path }, before)
    stage.clock.pass(5000)
    t.equal(await stage.agent.restore(), '')
    t.strictSame(addresses(stage), had, `${stepMs} ms: nothing is lost, nothing is added`)
    await stage.agent.setClients([CLIENT])
    stage.connections.fault = 'no dumps'
    await stage.pass(93_000)
    t.notOk(addresses(stage).includes('192.0.2.3'), 'and nothing lasts longer')
    stage.agent.close()
  }
})

t.test(
  'the wall clock is set between two processes: nothing lasts longer than its TTL',
  async (t) => {
    for (const stepMs of [-24 * HOUR_MS, -10_000, 10_000, 24 * HOUR_MS]) {
      const path = join(t.testdir({}), 'state')
      const before = await learned(path)
      before.agent.close()
      const had = addresses(before)
      before.clock.nowMs += stepMs
      const stage = new EgressStage({ statePath: path }, before)
      t.equal(await stage.agent.restore(), '')
      for (const address of addresses(stage))
        t.ok(had.includes(address), `${address} was allowed before`)
      if (stepMs < HOUR_MS) t.strictSame(addresses(stage), had, `${stepMs} ms`)
      await stage.agent.setClients([CLIENT])
      stage.connections.open.clear()
      await stage.pass(600_000)
      t.strictSame(addresses(stage), [])
      stage.agent.close()
    }
  },
)

t.test('a pause of 12 hours, in which connections stay open', async (t) => {
  for (const isKilled of [false, true]) {
    const path = join(t.testdir({}), 'state')
    let stage = await learned(path)
    if (isKilled) stage.agent.close()
    stage.clock.pass(12 * HOUR_MS)
    t.strictSame(addresses(stage), [], 'the timeouts in the kernel end by themselves')
    if (isKilled) {
      stage = new EgressStage({ statePath: path }, stage)
      stage.connections.open.add('10.1.0.1 192.0.2.2')
      t.equal(await stage.agent.restore(), '')
      t.equal(await stage.agent.setClients([CLIENT]), '')
    }
    t.strictSame(addresses(stage), [])
    for (let minute = 0; minute < 10; minute++) {
      await stage.pass(60_000)
      t.strictSame(addresses(stage), [], `minute ${minute}: a collection allows nothing`)
    }
    t.equal(stage.enforcer.size, 0)
    stage.agent.learn(CLIENT, answerTo('long.example.com.', '192.0.2.1', 600))
    t.strictSame(addresses(stage), ['192.0.2.1'], 'a new answer does')
    stage.agent.close()
  }
})
