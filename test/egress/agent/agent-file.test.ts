import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { printKey } from '../../../src/dns/name/name.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { printRules, scanRules } from '../../../src/egress/agent/rules-text.ts'
import { AddressRules } from '../../../src/egress/learned/address-rules.ts'
import type { ClientRules } from '../../../src/egress/rules/rule.ts'
import {
  acceptRule,
  answerTo,
  clientOf,
  portsOf,
  selectorsOf,
} from '../../support/egress-client.ts'
import { EgressStage } from '../../support/egress-stage.ts'
import { until } from '../../support/until.ts'

const HOUR_MS = 3_600_000
const RULES: ClientRules = {
  lists: [
    [
      {
        rules: [
          acceptRule({ names: '*.a.example b.example', ports: 'tcp 443, udp 1-9' }),
          acceptRule({ names: '*.c.example', dialect: 'openshift', networks: '192.0.2.0/24' }),
          acceptRule({ names: 'a*.d.example *.d.example', dialect: 'cilium-1.16' }),
          acceptRule({ names: '**.e.example **.x*.e.example *', dialect: 'cilium-1.19' }),
          acceptRule({ names: '**.f.example', dialect: 'cilium-1.16', lasts: 'connections' }),
          {
            ...acceptRule({}),
            action: 'deny',
            networks: [
              { network: scanCidr('2001:db8::/32')!, except: [scanCidr('2001:db8:1::/48')!] },
            ],
          },
        ],
        otherwise: 'pass',
      },
      { rules: [], otherwise: 'deny' },
    ],
    [],
  ],
  dns: [
    { ports: portsOf('udp 53'), names: selectorsOf('*.example') },
    { ports: undefined, names: [] },
  ],
}
const CLIENT = clientOf('ns/pod/1', '10.1.0.1 2001:db8::1', [
  { names: '*.example.com', ports: 'tcp 443' },
  { names: '*.example.net', lasts: 'connections' },
])

t.test('rules as text', async (t) => {
  for (const rules of [RULES, { lists: [], dns: undefined }, { lists: [[]], dns: [] }]) {
    const text = printRules(rules)
    const again = scanRules(text)
    t.equal(printRules(again!), text)
    t.strictSame(again?.dns === undefined, rules.dns === undefined)
  }
  const all = (rules: ClientRules) => rules.lists.flat().flatMap((tier) => tier.rules)
  const names = (rules: ClientRules) => all(rules).flatMap((rule) => rule.names)
  const forms = (rules: ClientRules) => names(rules).map(({ text: _, ...form }) => form)
  t.strictSame(
    forms(scanRules(printRules(RULES))!),
    forms(RULES),
    'selectors have the same meaning',
  )
  t.strictSame(scanRules(printRules(RULES))!.lists[0]![0]!.rules[5], all(RULES)[5])
  const bad = [
    '',
    '[]',
    '{}',
    '[[[1]],null]',
    '[[],[[null,["a b"]]]]',
    '[[],[[[["tcp",1,70000]],[]]]]',
  ]
  for (const text of bad) t.equal(scanRules(text), undefined, text)
})

/** A first process, which learned something, and wrote its file. */
async function wrote(t: Test): Promise<{ path: string; stage: EgressStage }> {
  const path = join(t.testdir({}), 'egress')
  const stage = new EgressStage({ statePath: path })
  await stage.agent.restore()
  await stage.agent.setClients([CLIENT, clientOf('ns/pod/2', '10.1.0.2', CLIENT.rules)])
  stage.agent.learn(CLIENT, answerTo('a.example.com.', '192.0.2.1', 600))
  stage.agent.learn(CLIENT, answerTo('b.example.net.', '192.0.2.2', 10))
  stage.agent.learn(CLIENT, answerTo('c.example.net.', '192.0.2.3', 200))
  stage.agent.learn(CLIENT, answerTo('v6.example.net.', '2001:db8:1::3', 300))
  stage.agent.learn(CLIENT, answerTo('other.example.org.', '192.0.2.9', 600))
  stage.connections.open.add('10.1.0.1 192.0.2.2')
  await stage.pass(65_000)
  stage.agent.close()
  return { path, stage }
}

/** A second process, some time later, with another monotonic clock. */
function later(path: string, from: EgressStage, wallMs: number): EgressStage {
  const stage = new EgressStage({ statePath: path })
  stage.clock.nowMs = from.clock.nowMs + wallMs
  stage.clock.monotonicMs = 777
  return stage
}

const addresses = (stage: EgressStage) => [
  ...new Set(stage.enforcer.inForce().map((text) => text.split(' ')[1])),
]

t.test('a new process continues', async (t) => {
  const { path, stage: before } = await wrote(t)
  t.strictSame(addresses(before), ['192.0.2.1', '192.0.2.2', '192.0.2.3', '2001:db8:1::3'])
  const stage = later(path, before, 5000)
  t.equal(await stage.agent.restore(), '')
  t.strictSame(stage.enforcer.inForce(), before.enforcer.inForce(), 'a zombie too')
  t.equal(stage.enforcer.clients.length, 2)
  t.equal(stage.agent.clientAt(new Uint8Array([10, 1, 0, 1]), 0, 1)?.id, 'ns/pod/1')
  t.equal(stage.agent.profileCount, 1)
  await stage.pass(120_000)
  t.equal(stage.agent.counts.dumps, 0, 'nothing is collected before the sources are synced')
  t.equal(addresses(stage).length, 4)
  const renewed = { ...CLIENT, rules: clientOf('', '', [{ names: '*.example.net' }]).rules }
  t.equal(await stage.agent.setClients([renewed]), '')
  t.strictSame(addresses(stage), ['192.0.2.3', '2001:db8:1::3'], 'the rules changed meanwhile')
  stage.agent.close()
})

t.test('queries are answered before the file is read', async (t) => {
  const { path, stage: before } = await wrote(t)
  const text = readFileSync(path, 'utf8')
  const stage = later(path, before, 5000)
  const { agent } = stage
  const other = clientOf('ns/pod/3', '10.1.0.3', CLIENT.rules)
  t.equal(await agent.setClients([CLIENT, other]), '')
  // The same address as of a.example.com, for a shorter time.
  t.equal(agent.learn(CLIENT, answerTo('new.example.com.', '192.0.2.1', 5)), undefined)
  agent.learn(CLIENT, answerTo('c.example.net.', '192.0.2.3', 300))
  await stage.pass(65_000)
  t.equal(agent.counts.dumps, 0, 'nothing is collected')
  t.equal(readFileSync(path, 'utf8'), text, 'nor written')
  const restored = agent.restore()
  t.equal(agent.restore(), restored)
  agent.learn(CLIENT, answerTo('during.example.com.', '192.0.2.8', 600))
  t.equal(await restored, '')
  const all = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.8', '2001:db8:1::3']
  t.strictSame(addresses(stage), all)
  await stage.pass(2000)
  t.strictSame(addresses(stage), all, 'the answer that ends last counts')
  await until(async () => {
    await stage.pass(1000)
    return readFileSync(path, 'utf8').includes('during.example.com.')
  }, 'the file')
  t.match(readFileSync(path, 'utf8'), 'a.example.com.')
  await agent.setClients([CLIENT, other, clientOf('ns/pod/2', '10.1.0.2', CLIENT.rules)])
  t.equal(agent.clientCount, 3)
  agent.close()
})

t.test('the end of a process that has not read its file', async (t) => {
  const { path, stage: before } = await wrote(t)
  const text = readFileSync(path, 'utf8')
  for (const isReading of [false, true]) {
    const stage = later(path, before, 5000)
    await stage.agent.setClients([CLIENT])
    stage.agent.learn(CLIENT, answerTo('new.example.com.', '192.0.2.7'))
    const restored = isReading ? stage.agent.restore() : ''
    stage.agent.close()
    t.equal(await restored, '')
    t.equal(readFileSync(path, 'utf8'), text)
  }
})

t.test('addresses that may not be allowed any more', async (t) => {
  const { path, stage: before } = await wrote(t)
  const rules = new AddressRules(
    ['192.0.2.1/32', '192.0.2.2/32'].map((text) => scanCidr(text)!),
    [],
  )
  const stage = new EgressStage({ statePath: path, rules }, before)
  t.equal(addresses(stage).length, 4, 'the enforcer has them')
  t.equal(await stage.agent.restore(), '')
  t.strictSame(addresses(stage), ['192.0.2.3', '2001:db8:1::3'], 'a zombie neither')
  t.equal(await stage.agent.setClients([CLIENT]), '')
  // A process beside this one may have the options of before.
  const other = new EgressStage({ statePath: path }, stage)
  await other.agent.restore()
  await other.agent.setClients([CLIENT])
  other.agent.learn(CLIENT, answerTo('z.example.com.', '192.0.2.2 192.0.2.4', 600))
  other.agent.close()
  stage.agent.learn(CLIENT, answerTo('y.example.com.', '192.0.2.5', 600))
  stage.agent.close()
  const known = [...stage.agent.states()].flatMap(({ cache }) => [...cache.addresses()])
  t.ok(known.includes('192.0.2.4'), 'what the other one learned')
  t.notOk(known.includes('192.0.2.2'))
})

t.test('what ended meanwhile', async (t) => {
  const { path, stage: before } = await wrote(t)
  const cases = [
    { wallMs: 200_000, want: ['192.0.2.1', '192.0.2.2', '192.0.2.3', '2001:db8:1::3'] },
    { wallMs: 500_000, want: ['192.0.2.1', '2001:db8:1::3'] },
    { wallMs: 12 * HOUR_MS, want: [] },
    { wallMs: 100_000 * HOUR_MS, want: [] },
    { wallMs: -HOUR_MS, want: ['192.0.2.1', '192.0.2.2', '192.0.2.3', '2001:db8:1::3'] },
  ]
  const text = readFileSync(path, 'utf8')
  for (const { wallMs, want } of cases) {
    // A later process writes its own.
    const copy = join(t.testdir({}), 'egress')
    writeFileSync(copy, text)
    const stage = later(copy, before, wallMs)
    await stage.agent.restore()
    t.strictSame(addresses(stage), want, `after ${wallMs} ms`)
    await stage.agent.setClients([CLIENT])
    stage.connections.fault = 'no dumps'
    await stage.pass(535_000)
    const left = addresses(stage)
    const isZombieOnly = left.every((address) => address !== '192.0.2.1')
    t.ok(wallMs > 0 || left.includes('192.0.2.1'), 'a clock that was set back: the rest of the TTL')
    await stage.pass(1000)
    t.notOk(addresses(stage).includes('192.0.2.1'), 'but not longer')
    t.ok(wallMs <= 0 || isZombieOnly)
    stage.agent.close()
  }
})

t.test('a change that the kernel did not get before the end of the process', async (t) => {
  const statePath = join(t.testdir({}), 'egress')
  const first = new EgressStage({ statePath })
  await first.agent.restore()
  await first.agent.setClients([CLIENT])
  first.agent.learn(CLIENT, answerTo('a.example.com.', '192.0.2.1', 600))
  const { allow } = first.enforcer
  first.enforcer.allow = () => undefined
  await first.agent.setClients([
    { ...CLIENT, rules: { lists: [[{ rules: [], otherwise: 'deny' }]], dns: [] } },
  ])
  first.agent.close()
  first.enforcer.allow = allow
  const next = new EgressStage({ statePath }, first)
  t.ok(next.enforcer.isAllowed('10.1.0.1', '192.0.2.1', 'tcp 443-443'))
  await next.agent.restore()
  t.notOk(next.enforcer.isAllowed('10.1.0.1', '192.0.2.1', 'tcp 443-443'))
})

t.test('a file that cannot be used', async (t) => {
  const { path, stage: before } = await wrote(t)
  const good = readFileSync(path, 'utf8')
  const cases = [
    good.slice(0, -100),
    good.replace('192.0.2.1', '192.0.2.7'),
    'sextant egress 2\n',
    'something else',
    '',
  ]
  for (const text of cases) {
    writeFileSync(path, text)
    const stage = later(path, before, 5000)
    stage.enforcer.clients = [CLIENT]
    void stage.enforcer.allow({ client: '10.1.0.1', address: '192.0.2.5' }, [
      { ports: undefined, endMs: 100_000 },
    ])
    t.equal(await stage.agent.restore(), '')
    t.strictSame(addresses(stage), ['192.0.2.5'], 'the kernel keeps what it has')
    t.match(stage.lines, [/addresses that clients learned: .* is not used/])
    t.equal(await stage.agent.setClients([CLIENT]), '')
    stage.agent.learn(CLIENT, answerTo('a.example.com.', '192.0.2.1'))
    t.equal(addresses(stage).length, 2, 'without it')
    stage.agent.close()
  }
})

t.test('lines that are not ours', async (t) => {
  const { scan } = (await import('../../../src/egress/agent/agent-file.ts')).agentState(
    new EgressStage().clock,
  )
  const rules = JSON.stringify(['rules', printRules(CLIENT.rules)])
  const client = '["client","a",["10.1.0.1"],0]'
  const good = ['["written",1]', rules, client]
  t.match(scan(good), [{ client: { id: 'a' } }])
  const bad = [
    'x',
    '{}',
    '["other"]',
    '["written",2]',
    '["rules",5]',
    '["client","a",["10.1.0"],0]',
    '["client","a",["10.1.0.1"],1]',
    '["client",5,["10.1.0.1"],0]',
    '["answer","a",-1,1,1,["192.0.2.1"]]',
    '["answer","a.",null,1,1,["192.0.2.1"]]',
    '["answer","a.",-1,1,1,"192.0.2.1"]',
    '["zombie","x",["a."],0,0,0]',
    '["zombie","192.0.2.1",[],0,0,0]',
    '["zombie","192.0.2.1",["a."],0,"0",0]',
  ]
  for (const line of bad) t.equal(scan([...good, line]), undefined, line)
  t.equal(scan([client]), undefined)
  t.equal(scan(['["written",1]', '["answer","a.",-1,1,1,["192.0.2.1"]]']), undefined)
})

t.test('it is written at most once a second', async (t) => {
  const path = join(t.testdir({}), 'egress')
  const stage = new EgressStage({ statePath: path })
  await stage.agent.restore()
  await stage.agent.setClients([CLIENT])
  const stamps = new Set<string>()
  for (let i = 0; i < 40; i++) {
    stage.agent.learn(CLIENT, answerTo(`n${i}.example.com.`, '192.0.2.1'))
    stage.clock.pass(100)
    await stage.timers.advance(100)
    await new Promise((resolve) => setTimeout(resolve, 5))
    try {
      stamps.add(readFileSync(path, 'utf8'))
    } catch {
      stamps.add('none')
    }
  }
  t.ok(stamps.size <= 5, `${stamps.size} versions`)
  stage.agent.close()
  t.match(readFileSync(path, 'utf8'), /n39\.example\.com/)
})

t.test('two processes beside each other: the file has what both learned', async (t) => {
  for (const last of ['old', 'new'] as const) {
    const path = join(t.testdir({}), 'egress')
    const old = new EgressStage({ statePath: path })
    await old.agent.restore()
    await old.agent.setClients([CLIENT])
    const learn = ({ agent }: EgressStage, name: string, address: string) =>
      agent.learn(CLIENT, answerTo(name, address, 86_400))
    const isWritten = async (text: string) => {
      await until(async () => {
        await old.pass(1000)
        return existsSync(path) && readFileSync(path, 'utf8').includes(text)
      }, `${text} in the file`)
    }
    learn(old, 'first.example.com.', '192.0.2.1')
    await isWritten('first')
    const next = new EgressStage({ statePath: path }, old)
    await next.agent.restore()
    await next.agent.setClients([CLIENT])
    learn(old, 'old.example.com.', '192.0.2.2')
    await isWritten('old')
    learn(next, 'new.example.com.', '192.0.2.4')
    await isWritten('new')
    t.match(readFileSync(path, 'utf8'), 'old.example.com.', 'the new process keeps it')
    const namesOf = ({ agent }: EgressStage) =>
      [...agent.states()].flatMap(({ cache }) => [...cache.names()].map(printKey)).sort()
    const both = ['first', 'new', 'old'].map((name) => `${name}.example.com.`)
    t.strictSame(namesOf(next), both)
    await until(() => next.enforcer.isAllowed('10.1.0.1', '192.0.2.2', 'tcp 443-443'), 'its grant')
    t.equal(
      next.agent.learn(CLIENT, answerTo('old.example.com.', '192.0.2.2')),
      undefined,
      'it is in force',
    )
    learn(old, 'late.example.com.', '192.0.2.5')
    learn(next, 'later.example.com.', '192.0.2.6')
    for (const stage of last === 'old' ? [next, old] : [old, next]) stage.agent.close()
    const third = new EgressStage({ statePath: path }, next)
    await third.agent.restore()
    const all = [...both, 'late.example.com.', 'later.example.com.'].sort()
    t.strictSame(namesOf(third), all, `the ${last} one ends last`)
  }
})

t.test('a folder that is missing is a problem from the start', async (t) => {
  for (const [folder, want] of [
    ['', 0],
    ['missing', 1],
  ] as const) {
    const statePath = join(t.testdir({}), folder, 'state')
    const stage = new EgressStage({ statePath })
    await stage.agent.restore()
    const problems = stage.agent.file?.problems ?? []
    t.strictSame(
      problems.map(({ kind, of }) => [kind, of]),
      want === 0 ? [] : [['state-file', statePath]],
    )
    stage.agent.close()
  }
})
