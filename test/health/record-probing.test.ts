import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { UNKNOWN_HEALTH } from '../../src/health/address-health.ts'
import type { Probe, ProbeOutcome } from '../../src/health/probes/probe.ts'
import { findLeaves, type Leaf } from '../../src/health/record-probes.ts'
import { RecordProbing, type RecordProbingOptions } from '../../src/health/record-probing.ts'
import type { ProbeAt } from '../../src/records/health-check.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { probeOf, recordOf, TestSource } from './stage.ts'

const CHECK = { interval: '10s', failureThreshold: 1, protocol: 'HTTP', port: 8080 }
const TWO = ['192.0.2.1', '192.0.2.2']

function stage(source = new TestSource(), options: Partial<RecordProbingOptions> = {}) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const lines: string[] = []
  const note = (text: string) => lines.push(text)
  const log = { debug: note, info: note, warning: note, error: note }
  /** Addresses that don't answer. */
  const dead = new Set<string>()
  const asked: Probe[] = []
  const probing = new RecordProbing({
    records: source,
    source,
    health: source.health,
    clock,
    timers,
    log,
    file: '',
    random: new Random(3),
    onResult: () => {},
    known: [],
    probe: async (probe): Promise<ProbeOutcome> => {
      asked.push(probe)
      if (!dead.has(probe.address)) return { kind: 'healthy', httpStatus: 200 }
      return { kind: 'unhealthy', httpStatus: 0, reason: 'connection refused' }
    },
    ...options,
  })
  const batches: ReadonlySet<string>[] = []
  source.health.subscribe((keys) => batches.push(keys))
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds * 10; i++) {
      clock.nowMs += 100
      clock.monotonicMs += 100
      await timers.advance(100)
    }
  }
  const downOf = (name: string) => source.health.healthOf(`default/${name}`).down
  return { source, probing, dead, asked, batches, pass, downOf, lines, timers, clock }
}

t.test('why an address is down: the failed checks, and where they were made', async (t) => {
  const { source, dead, pass } = stage()
  const check = { protocol: 'HTTP', port: 8080, interval: '10s', failureThreshold: 1 }
  source.put(recordOf('a', TWO))
  source.putProbes(
    probeOf('one', 'a', { address: '192.0.2.1', ...check }),
    probeOf('two', 'a', { address: '192.0.2.2', testAddress: '10.0.0.1', ...check }),
  )
  for (const address of TWO) dead.add(address)
  await pass(5)
  t.equal(source.health.reasonOf('default/a', '192.0.2.1'), '', 'one failure is not enough')
  await pass(10)
  const reasonOf = (address: string): string => source.health.reasonOf('default/a', address)
  t.match(reasonOf('192.0.2.1'), /^\d checks in a row failed, last: connection refused$/)
  t.match(
    reasonOf('192.0.2.2'),
    /^\d checks of 10\.0\.0\.1 in a row failed, last: connection refused$/,
  )
  t.equal(reasonOf('192.0.2.3'), '')
})

t.test("a record's own check is of each of its addresses", async (t) => {
  const { source, dead, asked, pass, downOf, batches, lines } = stage()
  source.put(recordOf('a', TWO, { healthCheck: CHECK }), recordOf('b', TWO))
  await pass(5)
  t.strictSame(asked.map(({ id }) => id).sort(), ['default/a-192.0.2.1', 'default/a-192.0.2.2'])
  t.match(asked[0], { hostname: 'a.k.test', namespace: 'default', check: { port: 8080 } })
  dead.add('192.0.2.1')
  await pass(25)
  t.strictSame(downOf('a'), ['192.0.2.1'])
  t.strictSame(downOf('b'), [])
  t.strictSame(source.health.healthOf('default/a').up, ['192.0.2.2'])
  t.ok(batches.length <= 3, 'the results')
  t.match(lines, ['192.0.2.1 of default/a is down after 2 failures: connection refused'])
  dead.clear()
  await pass(15)
  t.strictSame(downOf('a'), [])
  t.match(lines.at(-1), '192.0.2.1 of default/a is up')
})

t.test('of each record only the chosen addresses are probed, up to a limit', async (t) => {
  const { source, asked, pass, lines, batches, downOf, dead } = stage(undefined, {
    leavesOf: ({ key }, { endpoints }) => {
      return findLeaves(endpoints).slice(0, key === 'default/a' ? 1 : 3)
    },
    probesMax: 3,
  })
  const three = [...TWO, '192.0.2.3']
  source.put(...['a', 'b'].map((name) => recordOf(name, three, { healthCheck: CHECK })))
  await pass(5)
  const ids = (): string[] => [...new Set(asked.splice(0).map(({ id }) => id))].sort()
  t.strictSame(ids(), ['default/a-192.0.2.1', 'default/b-192.0.2.1', 'default/b-192.0.2.2'])
  t.match(lines, ['probe: more than 3 addresses; the rest is not probed'])
  source.remove('default/a')
  source.put(recordOf('c', TWO, { healthCheck: CHECK }))
  await pass(15)
  t.strictSame(ids(), ['default/b-192.0.2.1', 'default/b-192.0.2.2', 'default/c-192.0.2.1'])
  dead.add('192.0.2.2')
  await pass(25)
  t.strictSame(downOf('b'), ['192.0.2.2'])
  batches.length = 0
  source.put(recordOf('b', ['192.0.2.1'], { healthCheck: CHECK }))
  await pass(1)
  t.strictSame(downOf('b'), [])
  t.ok(batches.length > 0, 'readers hear that the finding is gone')
})

t.test('many addresses that go down at once are one change', async (t) => {
  const { source, dead, pass, batches } = stage()
  const names = Array.from({ length: 40 }, (_, i) => `r${i}`)
  const check = { ...CHECK, interval: '1s' }
  source.put(...names.map((name) => recordOf(name, ['192.0.2.1'], { healthCheck: check })))
  dead.add('192.0.2.1')
  await pass(10)
  t.equal(batches.flatMap((keys) => [...keys]).length, 40)
  t.ok(batches.length <= 20, `${batches.length} changes`)
})

t.test('probes of their own, judged or not', async (t) => {
  const { source, asked, pass, downOf, dead } = stage()
  dead.add('192.0.2.1').add('192.0.2.2').add('192.0.2.3')
  source.put(recordOf('a', [...TWO, '192.0.2.3'], { healthCheck: CHECK }))
  const spec = (address: string) => ({ address, ...CHECK, port: 9090 })
  source.putProbes(
    probeOf('own', 'a', spec('192.0.2.1')),
    probeOf('judged', 'a', spec('192.0.2.2'), { healthy: true }),
    probeOf('stray', 'nobody', spec('192.0.2.9')),
  )
  await pass(30)
  const ports = new Map(asked.map(({ address, check }) => [address, check.port]))
  t.strictSame([...ports].sort(), [
    ['192.0.2.1', 9090],
    ['192.0.2.3', 8080],
  ])
  t.strictSame(downOf('a'), ['192.0.2.1', '192.0.2.3'])
  source.putProbes()
  await pass(30)
  t.strictSame(downOf('a'), ['192.0.2.1', '192.0.2.2', '192.0.2.3'], 'its own check again')
})

t.test('a record that changes, and one that goes', async (t) => {
  const { source, asked, pass, probing, timers } = stage()
  source.put(recordOf('a', TWO, { healthCheck: CHECK }))
  await pass(5)
  source.put(recordOf('a', ['192.0.2.2', '192.0.2.3'], { healthCheck: CHECK }))
  t.strictSame([...probing.states()].map(([id]) => id).sort(), [
    'default/a-192.0.2.2',
    'default/a-192.0.2.3',
  ])
  source.put(recordOf('a', TWO))
  t.equal(probing.runner.count, 0)
  source.put(recordOf('a', TWO, { healthCheck: CHECK }))
  source.remove('default/a')
  t.equal(probing.runner.count, 0)
  const before = asked.length
  await pass(30)
  t.equal(asked.length, before)
  probing.close()
  t.equal(source.listenerCount, 0)
  t.equal(timers.count, 0)
})

t.test('probe results survive a restart', async (t) => {
  const file = join(t.testdir({}), 'probes')
  const source = new TestSource()
  source.put(recordOf('a', TWO, { healthCheck: CHECK }))
  const first = stage(source, { file })
  first.dead.add('192.0.2.1')
  await first.pass(30)
  t.strictSame(first.downOf('a'), ['192.0.2.1'])
  t.match(
    readFileSync(file, 'utf8'),
    /^sextant probes 1\ndefault\/a-192\.0\.2\.1 down 2 0 \d+ 0 "connection refused"\n/,
  )
  const next = new TestSource()
  next.put(recordOf('a', TWO, { healthCheck: CHECK }))
  const crashed = stage(next, { file })
  t.strictSame(crashed.downOf('a'), ['192.0.2.1'], 'before anything was probed')
  await crashed.pass(3)
  t.strictSame(crashed.downOf('a'), [], 'it answers by now')
  crashed.probing.close()
  t.notMatch(readFileSync(file, 'utf8'), / down /)
  first.probing.close()
})

t.test('an invalid file', async (t) => {
  const directory = t.testdir({ torn: 'sextant probes 1\ndefault/a-1', foreign: 'zones\n' })
  const source = new TestSource()
  source.put(recordOf('a', TWO, { healthCheck: CHECK }))
  for (const [name, isReplaced] of [
    ['torn', true],
    ['foreign', false],
  ] as const) {
    const file = join(directory, name)
    const run = stage(source, { file })
    t.match(run.lines, [/^probe states: .* is not used: /])
    t.strictSame(run.downOf('a'), [])
    await run.pass(5)
    run.probing.close()
    t.equal(readFileSync(file, 'utf8').startsWith('sextant probes 1\n'), isReplaced, name)
  }
  const nowhere = join(directory, 'missing', 'file')
  const run = stage(source, { file: nowhere })
  await run.pass(25)
  t.match(run.lines, [/^probe states in .* cannot be written: /], 'logged once')
  run.probing.close()
  t.notOk(existsSync(nowhere))
})

t.test('two records whose probes would have one name', async (t) => {
  const { source, probing, pass, dead, downOf } = stage()
  source.put(
    recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }),
    recordOf('a-192.0.2.1', ['192.0.2.1'], { healthCheck: CHECK }),
  )
  source.putProbes(probeOf('a-192.0.2.1', 'a-192.0.2.1', { address: '192.0.2.7', ...CHECK }))
  t.equal(new Set([...probing.states()].map(([id]) => id)).size, probing.runner.count)
  t.equal(probing.recordOf('default/a-192.0.2.1'), 'default/a')
  dead.add('192.0.2.7')
  dead.add('192.0.2.1')
  await pass(30)
  t.strictSame(downOf('a'), ['192.0.2.1'])
  t.strictSame(downOf('a-192.0.2.1'), ['192.0.2.1', '192.0.2.7'], 'the second is probed as well')
})

t.test('every change of the file is whole', async (t) => {
  const file = join(t.testdir({}), 'probes')
  writeFileSync(file, '')
  const source = new TestSource()
  source.put(recordOf('a', TWO, { healthCheck: { ...CHECK, interval: '1s' } }))
  const run = stage(source, { file })
  for (let i = 0; i < 20; i++) {
    if (i % 2 === 0) run.dead.add('192.0.2.1')
    else run.dead.clear()
    await run.pass(3)
    t.match(readFileSync(file, 'utf8'), /^sextant probes 1\n(?:.*\n)*sha256 [0-9a-f]{64}\n$/)
  }
  run.probing.close()
})

t.test('an address that probes found up is reported, and changes nothing else', async (t) => {
  const { source, pass, dead, downOf } = stage()
  const upOf = (key: string) => source.health.healthOf(`default/${key}`).up
  source.put(recordOf('a', TWO, { healthCheck: CHECK }), recordOf('b', TWO))
  t.strictSame(upOf('a'), [], 'no probe has run yet')
  dead.add('192.0.2.1')
  await pass(4)
  t.strictSame([upOf('a'), downOf('a')], [['192.0.2.2'], []], 'a failure is not yet down')
  await pass(30)
  t.strictSame([upOf('a'), downOf('a')], [['192.0.2.2'], ['192.0.2.1']])
  t.equal(source.health.healthOf('default/b'), UNKNOWN_HEALTH, 'what is not probed')
  dead.clear()
  await pass(30)
  t.strictSame([upOf('a'), downOf('a')], [['192.0.2.1', '192.0.2.2'], []])
})

t.test('a test address is probed in place of the targets of its endpoint', async (t) => {
  const { source, dead, asked, pass, downOf } = stage()
  const dnsName = 'a.k.test'
  const properties = [
    { name: 'health-address', value: '192.0.2.99' },
    { name: 'health-port', value: '8081' },
  ]
  const endpoints = [
    { dnsName, recordType: 'A', targets: TWO, providerSpecific: properties },
    { dnsName: 'b.a.k.test', recordType: 'A', targets: ['192.0.2.2', '192.0.2.3'] },
  ]
  source.put(recordOf('a', [], { healthCheck: CHECK, endpoints }))
  await pass(5)
  const found = asked.map(({ address, testAddress = '', check }) => {
    return `${address} ${testAddress} ${check.port}`
  })
  t.strictSame(found.sort(), [
    '192.0.2.1 192.0.2.99 8081',
    '192.0.2.2 192.0.2.99 8081',
    '192.0.2.3  8080',
  ])
  dead.add('192.0.2.1')
  dead.add('192.0.2.2')
  await pass(25)
  t.strictSame(downOf('a'), TWO, 'the result counts for the targets')
  endpoints[0]!.providerSpecific = []
  source.put(recordOf('a', [], { healthCheck: CHECK, endpoints }))
  t.strictSame(downOf('a'), TWO, 'without it, the state is kept until a new result')
  dead.clear()
  await pass(5)
  t.strictSame(downOf('a'), [])
  t.match(asked.at(-1), { testAddress: undefined, check: { port: 8080 } })
})

t.test(
  'addresses of peers are probed with the check of a record, and change nothing of it',
  async (t) => {
    const { source, probing, dead, asked, pass, lines } = stage()
    source.put(recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }), recordOf('b', TWO))
    const observer = probing.openObserver()
    const other = probing.openObserver()
    observer.watch('default/a', leaves('192.0.2.1', '192.0.2.9'))
    other.watch('default/a', leaves('192.0.2.9'))
    observer.watch('default/b', leaves('192.0.2.9'))
    dead.add('192.0.2.9')
    await pass(25)
    t.strictSame([...new Set(asked.map(({ id }) => id))].sort(), [
      'default/a-192.0.2.1',
      'default/a-192.0.2.9',
    ])
    const { down, up, observed } = source.health.healthOf('default/a')
    t.strictSame([down, up], [[], ['192.0.2.1']])
    t.match(observed, [{ address: '192.0.2.9', health: 'down' }])
    t.match(lines, ['192.0.2.9 of a peer, for default/a is down after 2 failures'])
    t.strictSame(probing.reasons(3), { downCount: 0, texts: [] })

    dead.clear()
    await pass(15)
    t.match(source.health.healthOf('default/a').observed, [{ health: 'up' }])
    observer.close()
    await pass(1)
    t.equal(source.health.healthOf('default/a').observed?.length, 1, 'the other user')
    other.watch('default/a', [])
    await pass(1)
    t.equal(source.health.healthOf('default/a').observed, undefined)
  },
)

t.test('after the clock is set back, a failure at a peer counts from then on', async (t) => {
  const { source, probing, dead, pass, clock, lines } = stage()
  clock.nowMs = 10_000_000
  source.put(recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }))
  probing.openObserver().watch('default/a', leaves('192.0.2.9'))
  dead.add('192.0.2.9')
  await pass(35)
  const sinceSeconds = () => source.health.healthOf('default/a').observed?.[0]?.sinceSeconds
  t.ok(sinceSeconds()! >= 10_000)
  clock.nowMs = 1_000_000
  await pass(15)
  t.ok(sinceSeconds()! < 1016, 'not in the future, where other sites would not count it')
  t.equal(lines.length, 1, 'the health is the same')
})

t.test('an address of a peer that becomes ours counts as ours', async (t) => {
  const { source, probing, dead, pass, downOf } = stage()
  source.put(recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }))
  probing.openObserver().watch('default/a', leaves('192.0.2.2'))
  dead.add('192.0.2.2')
  await pass(25)
  t.strictSame(downOf('a'), [])
  source.put(recordOf('a', TWO, { healthCheck: CHECK }))
  t.strictSame(downOf('a'), ['192.0.2.2'])
  t.equal(source.health.healthOf('default/a').observed, undefined)
  source.put(recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }))
  t.strictSame(downOf('a'), [])
  t.match(source.health.healthOf('default/a').observed, [{ address: '192.0.2.2', health: 'down' }])
})

t.test('an address of a peer is probed where its site probes it', async (t) => {
  const { source, probing, asked, pass } = stage()
  source.put(recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }))
  const observer = probing.openObserver()
  const watch = (probeAt: ProbeAt | undefined): void =>
    observer.watch('default/a', [{ address: '192.0.2.9', probeAt }])
  const last = () => asked.findLast(({ address }) => address === '192.0.2.9')
  watch({ address: '198.51.100.7', port: 8081 })
  await pass(15)
  t.match(last(), { testAddress: '198.51.100.7', check: { port: 8081 } })
  watch({ address: '', port: 8082 })
  await pass(15)
  t.match(last(), { testAddress: undefined, check: { port: 8082 } })
  watch(undefined)
  await pass(15)
  t.match(last(), { testAddress: undefined, check: { port: CHECK.port } })
})

t.test('peers get the place where a DNSHealthCheckProbe probes', async (t) => {
  const { source, pass, batches } = stage()
  const placesOf = (name: string) => source.health.healthOf(`default/${name}`).probedAt
  source.put(recordOf('a', TWO, { healthCheck: CHECK }), recordOf('b', TWO))
  const [one, two] = TWO as [string, string]
  // The name of the probe that the record's own check has.
  const put = (check: object): void =>
    source.putProbes(probeOf('a-192.0.2.1', 'a', { address: one, ...CHECK, ...check }))
  const table: [object, ProbeAt | undefined][] = [
    [{ port: 9090 }, { address: '', port: 9090 }],
    [{ port: 9091 }, { address: '', port: 9091 }],
    [
      { port: 9091, testAddress: '10.0.0.1' },
      { address: '10.0.0.1', port: 9091 },
    ],
    // `health-port` can't be this port: a peer would refuse the endpoint.
    [
      { port: 81, testAddress: '10.0.0.1' },
      { address: '10.0.0.1', port: 0 },
    ],
    [{ port: 81 }, undefined],
    // Peers probe with the protocol of the record.
    [{ port: 9090, protocol: 'TCP' }, undefined],
    [{ port: 8080 }, { address: '', port: 8080 }],
  ]
  for (const [check, probeAt] of table) {
    put(check)
    await pass(15)
    const want = probeAt === undefined ? undefined : [{ address: one, probeAt }]
    t.strictSame(placesOf('a'), want, JSON.stringify(check))
  }
  source.putProbes()
  await pass(15)
  t.equal(placesOf('a'), undefined, 'its own check has the place of the endpoint')
  source.putProbes(probeOf('b', 'b', { address: two, ...CHECK, protocol: 'TCP', port: 9090 }))
  await pass(15)
  t.strictSame(placesOf('b'), [{ address: two, probeAt: { address: '', port: 9090 } }])
  const before = batches.length
  put({ port: 9090 })
  t.ok(batches.length > before, 'a change is published')
})

t.test('at most 1000 addresses of peers are probed for one record', async (t) => {
  const { source, probing, asked, pass } = stage()
  source.put(recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }))
  const addresses = Array.from({ length: 1100 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
  probing.openObserver().watch('default/a', leaves(...addresses))
  await pass(30)
  t.equal(new Set(asked.map(({ id }) => id)).size, 1001)
})

function leaves(...addresses: readonly string[]): Leaf[] {
  return addresses.map((address) => ({ address, probeAt: undefined }))
}

t.test('an address that is never probed is logged once', async (t) => {
  let reason = '10.0.0.1 is in a private network'
  const { source, pass, lines } = stage(undefined, {
    probe: async () => ({ kind: 'skipped', reason }),
  })
  source.put(recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }))
  await pass(60)
  const line = '192.0.2.1 of default/a is served, its health is unknown: '
  t.strictSame(lines, [`${line}${reason}`])
  reason = 'another'
  await pass(60)
  t.equal(lines.length, 1, 'an address that stays unknown is no news')
})

t.test('an address that cannot be probed any more becomes unknown', async (t) => {
  let outcome: ProbeOutcome = { kind: 'unhealthy', httpStatus: 0, reason: 'connection refused' }
  const { source, pass, downOf, lines } = stage(new TestSource(), { probe: async () => outcome })
  source.put(recordOf('a', ['192.0.2.1'], { healthCheck: CHECK }))
  await pass(30)
  t.strictSame(downOf('a'), ['192.0.2.1'])
  outcome = { kind: 'skipped', reason: 'its host name cannot be resolved: ESERVFAIL' }
  await pass(30)
  t.strictSame(downOf('a'), [])
  t.match(lines, [
    /^192.0.2.1 of default\/a is down after 2 failures: connection refused$/,
    '192.0.2.1 of default/a is served, its health is unknown: its host name cannot be resolved: ESERVFAIL',
  ])
})
