import t from 'tap'
import { SLICE_MS } from '../../src/base/slices.ts'
import { SlowStart } from '../../src/health/slow-start.ts'
import { SETTLE_MS } from '../../src/health/slow-start-bounds.ts'
import type { PeerEndpoint } from '../../src/peering/peer-endpoint.ts'
import { unpackRecord, unpackSettings } from '../../src/records/pack.ts'
import { endpoint, type PeerText } from '../support/peer-text.ts'
import { runs } from '../support/runs.ts'
import { SLOW_START_STEPS } from '../support/slow-start-share.ts'
import { APP, EXPIRY_MS, setUp, THEIRS } from './merged-source-stage.ts'

/** An endpoint that no peer may report. */
function nameserver(host: string): PeerEndpoint {
  return endpoint({ rootHost: host, dnsName: host, recordType: 'NS', targets: ['x.example'] })
}

t.test('without a peer that has the host our own records stay as they are', async (t) => {
  const { own, source, serves, changes, peer } = await setUp(t)
  t.equal([...source.records()][0], own.find('a/own'))
  t.strictSame([...peer.wanted], [APP])
  own.put('a/own', APP, '192.0.2.2')
  t.strictSame(serves(), ['a/own 192.0.2.2'])
  t.equal(changes.length, 1)
  t.equal(changes[0]!.after, own.find('a/own'))
  t.equal(peer.lost, 0, 'a change of a record does not have its host forgotten')
  own.remove('a/own')
  t.strictSame(serves(), [])
  t.equal(peer.wanted.size, 0)
})

t.test('a record that moves to another host is one change', async (t) => {
  const { own, changes } = await setUp(t)
  const other = 'other.k.example.com'
  own.put('a/own', APP, '192.0.2.2')
  own.put('a/rival', other, '192.0.2.3')
  const [one, rival] = [own.find('a/own'), own.find('a/rival')]
  changes.length = 0
  own.put('a/own', other, '192.0.2.2')
  t.strictSame(changes, [{ before: one, after: own.find('a/own') }])
  changes.length = 0
  own.put('a/rival', APP, '192.0.2.3')
  t.strictSame(changes, [{ before: rival, after: own.find('a/rival') }])
})

t.test(
  'a host that waits for its turn is read, also if a record that does not count moves to it',
  async (t) => {
    const { own, peer, source, serves, clock } = await setUp(t)
    const other = 'other.k.example.com'
    own.put('a/other', other, '192.0.2.2')
    for (const host of [APP, other]) {
      peer.endpointsOf.set(host, [
        endpoint({ rootHost: host, dnsName: host, targets: ['198.51.100.1'] }),
      ])
    }
    const read = peer.siteStatesOf.bind(peer)
    peer.siteStatesOf = (host) => {
      clock.pass(SLICE_MS)
      return read(host)
    }
    peer.again(APP, other)
    own.put('b/hidden', other, '192.0.2.66')
    await source.ready()
    t.equal(serves().length, 4, serves().join())
  },
)

t.test('the records of a peer are served beside ours, and only they change', async (t) => {
  const { own, peer, source, serves, changes } = await setUp(t)
  own.put('a/more', 'more.k.example.com', '192.0.2.9')
  changes.length = 0
  peer.say(APP, '198.51.100.1')
  t.strictSame(serves(), ['a/more 192.0.2.9', 'a/own 192.0.2.1', `${THEIRS} 198.51.100.1`])
  t.equal(source.find('a/own'), own.find('a/own'), 'our own record is unchanged')
  t.strictSame(
    changes.map(({ before, after }) => `${before?.key} ${after?.key}`),
    [`undefined ${THEIRS}`],
  )
  t.strictSame(source.find(THEIRS)?.origin, { site: 'east', id: '' })
  changes.length = 0
  peer.say(APP, '198.51.100.1')
  t.strictSame(changes, [], 'the same again is no change')
  peer.say(APP)
  t.strictSame(serves(), ['a/more 192.0.2.9', 'a/own 192.0.2.1'])
})

t.test('each record of another site is one here, with its age and settings', async (t) => {
  const { peer, source, serves } = await setUp(t)
  const of = (targets: readonly string[], more: Partial<PeerText>): PeerEndpoint => {
    return endpoint({ rootHost: APP, dnsName: APP, targets, ...more })
  }
  const old = { createdSeconds: 5, recordId: 'aaaa', settings: { allDown: 'closed' } } as const
  const young = { createdSeconds: 9, recordId: 'bbbb' }
  peer.endpointsOf.set(APP, [
    of(['198.51.100.9'], young),
    of(['198.51.100.1'], old),
    of(['198.51.100.2'], { ...old, recordType: 'A', setIdentifier: 'two', weight: 1 }),
  ])
  peer.again(APP)
  const second = `${THEIRS}~2`
  t.strictSame(serves().slice(1), [`${THEIRS} 198.51.100.1,198.51.100.2`, `${second} 198.51.100.9`])
  const found = [THEIRS, second].map((key) => {
    const { origin, packed } = source.find(key)!
    return [origin?.id, unpackRecord(packed).createdSeconds, unpackSettings(packed)]
  })
  t.strictSame(found, [
    ['aaaa', 5, { allDown: 'closed' }],
    ['bbbb', 9, undefined],
  ])
})

t.test('a host that a peer alone has is served, and goes with it', async (t) => {
  const { peer, serves } = await setUp(t)
  peer.say('other.k.example.com', '198.51.100.1')
  t.strictSame(serves(), ['a/own 192.0.2.1', 'peers/other.k.example.com@east 198.51.100.1'])
  peer.say('other.k.example.com')
  t.strictSame(serves(), ['a/own 192.0.2.1'])
})

t.test('health is that of each record', async (t) => {
  const { own, peer, serves, table } = await setUp(t)
  const seen: string[][] = []
  table.subscribe((keys) => seen.push([...keys]))
  const say = (health: PeerEndpoint['health']): void => {
    const common = { rootHost: APP, dnsName: APP, targets: ['198.51.100.1'] }
    peer.endpointsOf.set(APP, [endpoint({ ...common, health })])
    peer.again(APP)
  }
  say('up')
  t.strictSame(serves(), ['a/own 192.0.2.1', `${THEIRS} 198.51.100.1`])
  own.put('a/own', APP, '192.0.2.1', ['192.0.2.1'])
  t.strictSame(serves(), ['a/own -192.0.2.1', `${THEIRS} 198.51.100.1`])
  say('down')
  t.strictSame(serves(), ['a/own -192.0.2.1', `${THEIRS} -198.51.100.1`])
  t.equal(table.reasonOf(THEIRS, '198.51.100.1'), 'its site east reports it')
  say('up')
  t.strictSame(serves(), ['a/own -192.0.2.1', `${THEIRS} 198.51.100.1`])
  t.strictSame(seen, [['a/own'], [THEIRS], [THEIRS]])
  peer.say(APP)
  t.strictSame([...table.recordKeys()], ['a/own'])
})

t.test('an endpoint of v1 whose target we have too is left out', async (t) => {
  const { peer, serves } = await setUp(t)
  peer.generation_ = 'v1'
  peer.say(APP, '192.0.2.1', '198.51.100.1')
  t.strictSame(serves(), ['a/own 192.0.2.1', `${THEIRS} 198.51.100.1`])
})

t.test(
  'the addresses of a silent site are down after a time, unless a check finds them up',
  async (t) => {
    const { peer, serves, pass, clock, lines, table } = await setUp(t)
    peer.say(APP, '198.51.100.1')
    peer.say('other.k.example.com', '198.51.100.2')
    const other = 'peers/other.k.example.com@east'
    await pass(EXPIRY_MS - 2000)
    t.equal(serves()[1], `${THEIRS} 198.51.100.1`)
    await pass(3000)
    t.strictSame(serves().slice(1), [`${THEIRS} -198.51.100.1`, `${other} -198.51.100.2`])
    t.match(table.reasonOf(other, '198.51.100.2'), 'its site east is silent for longer than')
    t.match(lines.join('\n'), /silent for longer than silent-site allows/)
    peer.seenMs = clock.monotonicMs
    await pass(1000)
    t.strictSame(serves().slice(1), [`${THEIRS} 198.51.100.1`, `${other} 198.51.100.2`])
  },
)

t.test('the records of a silent site are marked until it is heard', async (t) => {
  const { peer, source, pass, clock, changes } = await setUp(t)
  peer.say(APP, '198.51.100.1')
  const isSilent = (): boolean => source.find(THEIRS)?.origin?.isSilent === true
  for (let seconds = 0; seconds < 120; seconds++) {
    peer.seenMs = clock.monotonicMs + 1000
    await pass(1000)
  }
  t.notOk(isSilent())
  changes.length = 0
  await pass(29_000)
  t.notOk(isSilent(), 'half of the time of silent-site has not passed')
  await pass(2000)
  t.ok(isSilent())
  t.equal(changes.length, 1)
  t.equal(changes[0]!.after!.packed, changes[0]!.before!.packed)
  peer.seenMs = clock.monotonicMs
  await pass(1000)
  t.notOk(isSilent())
  t.equal(changes.length, 2)
})

t.test('only states that a live peer does not confirm expire', async (t) => {
  const { peer, serves, pass, clock } = await setUp(t)
  peer.confirmedMs.set(APP, clock.monotonicMs)
  await pass(1000)
  peer.seenMs = clock.monotonicMs
  peer.say(APP, '198.51.100.1')
  for (let passed = 1000; passed < EXPIRY_MS; passed += 1000) {
    t.equal(serves()[1], `${THEIRS} 198.51.100.1`)
    peer.seenMs = clock.monotonicMs + 1000
    await pass(1000)
  }
  t.strictSame(serves()[1], `${THEIRS} -198.51.100.1`)
})

t.test('a refusal that is over and comes back is logged again', async (t) => {
  const { peer, lines } = await setUp(t)
  const count = (): number => lines.filter((line) => line.includes(' NS: ')).length
  const refuse = (): void => {
    peer.endpointsOf.set(APP, [nameserver(APP)])
    peer.again(APP)
  }
  refuse()
  refuse()
  t.equal(count(), 1)
  peer.say(APP)
  refuse()
  t.equal(count(), 2)
})

t.test('a peer all of whose endpoints are refused does not fill the log', async (t) => {
  const { own, peer, lines, pass } = await setUp(t)
  const hosts = Array.from({ length: 100 }, (_, i) => `h${i}.k.example.com`)
  for (const host of hosts) {
    own.put(`a/${host}`, host, '192.0.2.1')
    peer.endpointsOf.set(host, [nameserver(host)])
    peer.again(host)
  }
  await pass(1000)
  t.equal(lines.filter((line) => line.includes(' NS: ')).length, 20)
  t.match(lines.join('\n'), /and 80 more problems with endpoints of other sites/)
})

t.test('a clock that is set neither ends the data of a peer nor keeps it', async (t) => {
  for (const stepMs of [30 * 24 * 3_600_000, -30 * 24 * 3_600_000]) {
    const { peer, serves, pass, clock } = await setUp(t)
    peer.say(APP, '198.51.100.1')
    clock.nowMs += stepMs
    await pass(EXPIRY_MS - 2000)
    t.strictSame(serves()[1], `${THEIRS} 198.51.100.1`)
    await pass(3000)
    t.strictSame(serves()[1], `${THEIRS} -198.51.100.1`)
  }
})

t.test('records are found by their keys as they are given', async (t) => {
  const { source, own, peer } = await setUp(t)
  t.equal(source.find('a/own'), own.find('a/own'))
  t.equal(source.find('b/hidden'), undefined)
  t.equal(source.find(THEIRS), undefined)
  peer.say(APP, '198.51.100.1')
  t.equal(source.find('a/own'), own.find('a/own'))
  t.equal(source.find(THEIRS), [...source.records()][1])
  for (const key of ['peers/no host', 'peers/no host@east', `peers/${APP}@west`, 'peers/@']) {
    t.equal(source.find(key), undefined, key)
  }
})

t.test(
  'records of ours that come and go decide on hosts of peers above and below them',
  async (t) => {
    const { own, peer, serves, pass, lines, source } = await setUp(t)
    const above = 'deep.k.example.com'
    const below = 'klb.app.k.example.com'
    peer.say(above, '198.51.100.1')
    peer.say(below, '198.51.100.2')
    const ours = `a/own 192.0.2.1`
    const theirs = [`peers/${above}@east 198.51.100.1`, `peers/${below}@east 198.51.100.2`]
    t.strictSame(serves(), [ours, ...theirs])
    own.put('a/in', `in.${above}`, '192.0.2.9')
    t.strictSame(serves(), ['a/in 192.0.2.9', ours, theirs[1]])
    t.match(lines.join('\n'), /refused: "deep\.k\.example\.com" A: our hosts are below that name/)
    t.strictSame([...source.troubles.disputes.refused], [['east', 1]])
    own.put('a/own', APP, '192.0.2.1', [], below)
    await pass(1000)
    t.strictSame(serves(), ['a/in 192.0.2.9', ours])
    t.match(
      lines.join('\n'),
      /refused: "klb\..* A: our record of app\.k\.example\.com has that name/,
    )
    own.remove('a/in')
    own.put('a/own', APP, '192.0.2.1')
    await pass(1000)
    t.strictSame(serves(), [ours, ...theirs])
    t.strictSame([...source.troubles.disputes.refused], [])
  },
)

t.test('an endpoint of a peer that was down gets a slow start', async (t) => {
  const { source, table, peer, pass, clock, timers, log } = await setUp(t)
  const durationMs = 100_000
  const ramp = new SlowStart({ source, table, durationMs, clock, timers, log })
  t.teardown(() => ramp.close())
  const say = (health: PeerEndpoint['health']): void => {
    const common = { rootHost: APP, dnsName: `x.${APP}`, weight: 10, sinceSeconds: 1 }
    peer.endpointsOf.set(APP, [
      endpoint({ ...common, setIdentifier: 'one', targets: ['198.51.100.1'], health }),
      endpoint({ ...common, setIdentifier: 'two', targets: ['198.51.100.2'] }),
    ])
    peer.again(APP)
  }
  const passHeard = async (milliseconds: number): Promise<void> => {
    peer.seenMs = clock.monotonicMs + milliseconds
    await pass(milliseconds)
  }
  const slowStart = () => ramp.slowStartOf(source.find(THEIRS)!)
  say('up')
  await passHeard(SETTLE_MS)
  t.strictSame(slowStart(), [], 'as it is first seen')
  say('down')
  t.strictSame(slowStart(), [])
  say('up')
  t.strictSame(slowStart(), [{ address: '198.51.100.1', units: 1 }])
  await passHeard(durationMs / SLOW_START_STEPS)
  t.strictSame(slowStart(), [{ address: '198.51.100.1', units: 3 }])
  for (let passed = 0; passed < durationMs; passed += 20_000) await passHeard(20_000)
  t.strictSame(slowStart(), [])
})

t.test(
  'a slow start of ours continues when a host gets its first peer or loses its last',
  async (t) => {
    const { source, table, own, peer, pass, clock, timers, log } = await setUp(t)
    const durationMs = 100_000
    const ramp = new SlowStart({ source, table, durationMs, clock, timers, log })
    t.teardown(() => ramp.close())
    const rising = () => ramp.slowStartOf(source.find('a/own')!)
    const at = (units: number) => [{ address: '192.0.2.1', units }]
    own.put('a/own', APP, '192.0.2.1', ['192.0.2.1'])
    own.put('a/own', APP, '192.0.2.1')
    await pass((2 * durationMs) / SLOW_START_STEPS)
    t.strictSame(rising(), at(5))
    peer.seenMs = clock.monotonicMs
    peer.say(APP, '198.51.100.1')
    t.strictSame(rising(), at(5))
    await pass(durationMs / SLOW_START_STEPS)
    t.strictSame(rising(), at(7))
    peer.say(APP)
    t.strictSame(rising(), at(7))
  },
)

t.test('endpoints of another site that are not served are counted and logged', async (t) => {
  const reported = Array.from({ length: 8000 }, (_, i) => {
    return endpoint({ rootHost: APP, dnsName: `n${i}.${APP}`, targets: ['198.51.100.1'] })
  })
  const { source, peer, lines } = await setUp(t)
  peer.endpointsOf.set(APP, reported)
  peer.again(APP)
  const { endpoints } = unpackRecord(source.find(THEIRS)!.packed)
  t.equal(endpoints.length, 7999)
  t.equal(source.troubles.disputes.unserved, 1)
  t.match(lines, [
    /^\[WARNING\] .*not served: app\.k\.example\.com of east: no room for some endpoints of the host; divide them among several hosts/,
  ])
  peer.say(APP)
  t.equal(source.troubles.disputes.unserved, 0)
})

/** So many that anything quadratic takes minutes; all else takes seconds. */
const MANY = runs(40_000)

t.test('very many records of one host are read and changed in time', async (t) => {
  t.setTimeout(200_000)
  const { own, source, peer, serves, changes, lines } = await setUp(t)
  const many = Array.from({ length: MANY }, (_, i) => `n${i}.${APP}`)
  own.load(many.map((name) => [`a/${name}`, APP, '192.0.2.2', name]))
  await source.ready()
  t.equal(serves().length, MANY + 1)
  changes.length = 0
  for (const name of many.slice(0, 100)) own.put(`a/${name}`, APP, '192.0.2.3', [], name)
  await source.ready()
  t.equal(changes.length, 100)
  t.equal(source.find(`a/${many[MANY - 1]}`), own.find(`a/${many[MANY - 1]}`))
  changes.length = 0
  peer.say(APP, '198.51.100.1')
  await source.ready()
  t.same(changes, [], 'there is no room for endpoints of a peer')
  t.match(
    lines.join('\n'),
    /not served: app\.k\.example\.com: this site has more than 8000 records of the host; divide the endpoints/,
  )
  for (let i = 0; i < 200; i++) peer.say(`s${i}.${APP}`, '198.51.100.1')
  await source.ready()
  t.equal(changes.length, 200, 'hosts of a peer below it')
  peer.say(`n1.${APP}`, '198.51.100.1')
  await source.ready()
  t.equal(changes.length, 200, 'a name of one of these records is ours')
})
