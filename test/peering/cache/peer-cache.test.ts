import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../../src/dns/tsig/key.ts'
import { PeerCache } from '../../../src/peering/cache/peer-cache.ts'
import { PeerFollower } from '../../../src/peering/peer.ts'
import type { PeerFollowerOptions } from '../../../src/peering/peer-options.ts'
import { QuorumMemory } from '../../../src/peering/quorum/quorum-memory.ts'
import { ExportedZone, peerRecord, record } from '../../support/exported-zone.ts'
import { endpoint, targetsOf } from '../../support/peer-text.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const HOST = 'app.k.example.com'
const HOUR_MS = 3_600_000

interface CacheFixture {
  readonly server: ScriptedServer
  readonly path: string
  readonly clock: FakeClock
}

async function peerOf(t: Test, zone: ExportedZone): Promise<CacheFixture> {
  const server = await ScriptedServer.open(t, zone.script)
  return { server, path: join(t.testdir({}), 'peers'), clock: new FakeClock() }
}

/** A process: it follows the peer and stores the data of the peer. */
function start(
  t: Test,
  { server, path, clock }: CacheFixture,
  more: Partial<PeerFollowerOptions> = {},
) {
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  // Monotonic clocks begin anew.
  const own = new FakeClock()
  own.nowMs = clock.nowMs
  const parts = { clock: own, timers, log }
  const memory = new PeerCache({ path, site: 'west', ...parts })
  const peer = { host: '127.0.0.1', port: server.port }
  const follower = new PeerFollower({ peer, ...parts, random: () => 0, ...more })
  const changed: string[] = []
  follower.subscribe((hosts) => changed.push(...hosts))
  const pass = async (ms: number): Promise<void> => {
    own.pass(ms)
    clock.nowMs = own.nowMs
    await timers.advance(ms)
    await follower.settled()
  }
  const targets = (): string[] => {
    return follower.siteStatesOf(HOST).flatMap((s) => targetsOf(s.endpoints))
  }
  const ageMs = (): number => own.monotonic() - follower.lastSeenMs
  memory.recall(follower)
  const release = memory.keep(follower, 24 * HOUR_MS)
  follower.start()
  let isOver = false
  /** As at an orderly stop; a crash leaves the file as it is. */
  const end = (isCrash = false): void => {
    if (isOver) return
    isOver = true
    const text = isCrash ? readFileSync(path, 'utf8') : ''
    release()
    follower.close()
    memory.close()
    if (isCrash) writeFileSync(path, text)
  }
  t.teardown(() => end())
  return { memory, follower, pass, targets, changed, lines, ageMs, end, clock: own }
}

/** Until that is in the file. */
async function written(path: string, pattern: RegExp): Promise<void> {
  const read = (): string => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  await until(() => pattern.test(read()), `${pattern} in the file`)
}

t.test(
  'a process that starts while its peer is dead has the data of that peer, with its age',
  async (t) => {
    const fixture = await peerOf(t, new ExportedZone(7, [peerRecord(endpoint())]))
    const first = start(t, fixture)
    await first.pass(0)
    t.strictSame(first.targets(), ['192.0.2.1'])
    first.end()
    await fixture.server.stop()
    fixture.clock.nowMs += HOUR_MS
    const second = start(t, fixture)
    t.strictSame(second.targets(), ['192.0.2.1'], 'before anything was asked')
    t.equal(second.ageMs(), HOUR_MS)
    t.match(second.follower.status, { site: 'east', serial: 7, generation: 'v2', isUp: false })
    await second.pass(0)
    t.match(second.follower.status, { error: 'connection refused', isUp: false, endpoints: 1 })
    await second.pass(HOUR_MS)
    second.end()
    const third = start(t, fixture)
    t.equal(third.ageMs(), 2 * HOUR_MS, 'a restart makes nothing younger')
  },
)

t.test('decisions that addresses are down survive, and expire', async (t) => {
  const fixture = await peerOf(t, new ExportedZone(7, [peerRecord(endpoint())]))
  const first = start(t, fixture)
  await first.pass(0)
  const decided = new QuorumMemory(first.clock)
  const release = first.memory.keepDecisions(decided)
  decided.note(HOST, new Set(['192.0.2.1', '192.0.2.2']))
  decided.note('other.example', new Set(['192.0.2.3']))
  decided.note('other.example', new Set())
  await first.pass(10_000)
  await written(fixture.path, /down .* 192\.0\.2\.2/)
  release()
  first.end()
  const second = start(t, fixture)
  const down = new Map([[HOST, new Set(['192.0.2.1', '192.0.2.2'])]])
  t.strictSame(second.memory.earlierDown(), down)
  const recalled = new QuorumMemory(second.clock, second.memory.earlierDown())
  t.equal(recalled.downOf(HOST).size, 2)
  const releaseAgain = second.memory.keepDecisions(recalled)
  recalled.forget(HOST)
  t.equal(recalled.downOf(HOST).size, 2, 'its peers may still answer')
  recalled.note(HOST, new Set(['192.0.2.1']))
  t.equal(recalled.earlierOf(HOST).size, 2)
  releaseAgain()
  second.end()
  fixture.clock.nowMs += 23 * HOUR_MS
  const third = start(t, fixture)
  t.strictSame(third.memory.earlierDown(), new Map([[HOST, new Set(['192.0.2.1'])]]))
  third.end()
  fixture.clock.nowMs += 2 * HOUR_MS
  t.strictSame(start(t, fixture).memory.earlierDown(), new Map(), 'too old')
})

t.test('a reload keeps the decisions, and those after it', async (t) => {
  const fixture = await peerOf(t, new ExportedZone(7, [peerRecord(endpoint())]))
  const first = start(t, fixture)
  await first.pass(0)
  const shared = new QuorumMemory(first.clock)
  const releaseOld = first.memory.keepDecisions(shared)
  const releaseNew = first.memory.keepDecisions(shared)
  shared.note(HOST, new Set(['192.0.2.1']))
  releaseOld()
  shared.note('other.example', new Set(['192.0.2.3']))
  shared.note(HOST, new Set(['192.0.2.2']))
  await first.pass(10_000)
  await written(fixture.path, /down other\.example .* 192\.0\.2\.3/)
  releaseNew()
  first.end()
  const want = [
    ['other.example', new Set(['192.0.2.3'])],
    [HOST, new Set(['192.0.2.2'])],
  ]
  const down = start(t, fixture).memory.earlierDown()
  t.strictSame(new Map(down), new Map(want as [string, Set<string>][]))
})

t.test('a live peer confirms the cached data: nothing changes', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const fixture = await peerOf(t, zone)
  const first = start(t, fixture)
  await first.pass(0)
  first.end()
  const second = start(t, fixture)
  await second.pass(0)
  t.strictSame(second.changed, [])
  t.match(second.follower.status, { isUp: true, endpoints: 1 })
  t.equal(second.ageMs(), 0)
  second.end()
  zone.put(2, [peerRecord(endpoint({ targets: ['192.0.2.2'] }))])
  const third = start(t, fixture)
  t.strictSame(third.targets(), ['192.0.2.1'])
  await third.pass(0)
  t.strictSame(third.changed, [HOST])
  t.strictSame(third.targets(), ['192.0.2.2'])
})

// The site of the nameserver was lost: the state that a relay reports of the site counted again.
t.test('a peer that has nothing any more is still one of its site after a restart', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const fixture = await peerOf(t, zone)
  const first = start(t, fixture)
  await first.pass(0)
  zone.put(2, [])
  await first.pass(1000)
  const nothing = [{ site: 'east', isOwn: true, rootHost: HOST, endpoints: [] }]
  t.match(first.follower.siteStatesOf(HOST), nothing)
  first.end()
  const second = start(t, fixture)
  t.match(second.follower.siteStatesOf(HOST), nothing, 'before anything was asked')
  await second.pass(0)
  t.match(second.follower.siteStatesOf(HOST), nothing, 'and after')
  t.match(second.follower.status, { site: 'east', isUp: true, endpoints: 0 })
})

t.test('a crash costs nothing but what came in the last moment', async (t) => {
  const fixture = await peerOf(t, new ExportedZone(1, [peerRecord(endpoint())]))
  const first = start(t, fixture)
  await first.pass(0)
  await first.pass(1000)
  await written(fixture.path, /^told /m)
  for (let i = 0; i < 30; i++) await first.pass(60_000)
  t.ok((first.memory.status.ageMs ?? 0) > 15 * 60_000, 'the disk is spared')
  // In small steps: on a slow disk, the content would be old once it is written.
  await until(async () => {
    await first.pass(10_000)
    return (first.memory.status.ageMs ?? HOUR_MS) < 5 * 60_000
  }, 'it to be written again')
  first.end(true)
  const second = start(t, fixture)
  t.strictSame(second.targets(), ['192.0.2.1'])
  t.ok(second.ageMs() < 10 * 60_000, 'though nothing changed, it is known when it was heard')
})

t.test('when it was heard last is written as soon as it falls silent', async (t) => {
  const fixture = await peerOf(t, new ExportedZone(1, [peerRecord(endpoint())]))
  const first = start(t, fixture)
  await first.pass(0)
  await first.pass(1000)
  await written(fixture.path, /^told /m)
  const { size } = first.follower.hosts()
  t.equal(size, 1)
  for (let i = 0; i < 60; i++) await first.pass(1000)
  const seenMs = first.clock.nowMs
  await fixture.server.stop()
  const line = new RegExp(`^peer \\S+ - v2 ${seenMs} ${seenMs} 1$`, 'm')
  // A slow disk lets more time pass.
  await until(async () => {
    await first.pass(1000)
    return line.test(readFileSync(fixture.path, 'utf8'))
  }, 'it to be written')
  first.end(true)
  const second = start(t, fixture)
  t.equal(second.ageMs(), second.clock.nowMs - seenMs)
})

t.test('clocks that are set between two processes', async (t) => {
  const table = [
    { name: 'backward: a time that is yet to come counts as now', stepMs: -HOUR_MS * 24, want: 0 },
    { name: 'forward: an age is what the clock says, once', stepMs: HOUR_MS, want: HOUR_MS },
  ]
  for (const { name, stepMs, want } of table) {
    const fixture = await peerOf(t, new ExportedZone(1, [peerRecord(endpoint())]))
    const first = start(t, fixture)
    await first.pass(0)
    first.end()
    await fixture.server.stop()
    fixture.clock.nowMs += stepMs
    const second = start(t, fixture)
    t.equal(second.ageMs(), want, name)
    second.clock.nowMs += 100 * HOUR_MS
    t.equal(second.ageMs(), want, `${name}, later steps count for nothing`)
    second.end()
  }
})

const OLD = [record(`${HOST}.kdrnt.`, 'A', '192.0.2.7'), record('x.kdrnt.', 'A', '192.0.2.8')]

t.test('the answers of a peer for hosts are cached too', async (t) => {
  const fixture = await peerOf(t, new ExportedZone(1, OLD))
  const first = start(t, fixture)
  first.follower.want(HOST)
  await first.pass(0)
  await first.pass(1000)
  await until(() => first.targets().length > 0, 'the host')
  first.end()
  await fixture.server.stop()
  const second = start(t, fixture)
  t.equal(second.follower.status.generation, 'v1')
  t.strictSame(second.targets(), [], 'no reader wants the host')
  await second.pass(20_000)
  second.end()
  const third = start(t, fixture)
  third.follower.want(HOST)
  t.strictSame(third.targets(), ['192.0.2.7'], 'not even then it was forgotten')
  t.match(third.follower.siteStatesOf(HOST), [{ site: `127.0.0.1:${fixture.server.port}` }])
})

t.test('unsigned data is ignored once the peer has a key', async (t) => {
  const fixture = await peerOf(t, new ExportedZone(1, [peerRecord(endpoint())]))
  const first = start(t, fixture)
  await first.pass(0)
  first.end()
  const key = createTsigKey(scanName('key.example.')!, HMAC_SHA256, new Uint8Array(32))
  const second = start(t, fixture, { key })
  t.strictSame(second.targets(), [])
  second.end()
  t.strictSame(start(t, fixture).targets(), ['192.0.2.1'], 'without it, it does')
})

t.test(
  'a peer without followers is removed from the cache when it would have expired',
  async (t) => {
    const fixture = await peerOf(t, new ExportedZone(1, [peerRecord(endpoint())]))
    const first = start(t, fixture)
    await first.pass(0)
    first.end()
    const zone = new ExportedZone(1, [peerRecord(endpoint({ site: 'north' }))])
    const server = await ScriptedServer.open(t, zone.script)
    const without = { ...fixture, server }
    const second = start(t, without)
    await second.pass(0)
    second.end()
    t.equal(readFileSync(fixture.path, 'utf8').match(/^peer /gm)?.length, 2, 'it may come back')
    fixture.clock.nowMs += 23 * HOUR_MS
    const third = start(t, without)
    await third.pass(2 * HOUR_MS)
    third.end()
    t.equal(readFileSync(fixture.path, 'utf8').match(/^peer /gm)?.length, 1)
  },
)

t.test('a new follower of a peer goes on from the one before', async (t) => {
  const fixture = await peerOf(t, new ExportedZone(1, [peerRecord(endpoint())]))
  const { memory, pass, follower, clock } = start(t, fixture)
  await pass(0)
  await fixture.server.stop()
  const timers = new FakeTimers()
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const peer = { host: '127.0.0.1', port: fixture.server.port }
  const next = new PeerFollower({ peer, clock, timers, log, random: () => 0 })
  memory.recall(next)
  const release = memory.keep(next, HOUR_MS)
  follower.close()
  t.equal(next.siteStatesOf(HOST)[0]?.endpoints.length, 1)
  t.equal(next.lastSeenMs, follower.lastSeenMs)
  release()
  next.close()
})

t.test('an unusable file is logged, and so is a failed write', async (t) => {
  const fixture = await peerOf(t, new ExportedZone(1, [peerRecord(endpoint())]))
  writeFileSync(fixture.path, 'sextant peers 1\nsite west\npeer ')
  const torn = start(t, fixture)
  t.match(torn.lines, [
    /peer cache: .* incomplete.*the endpoints of a peer are unknown until it answers/,
  ])
  t.strictSame(torn.memory.problems, [])
  await torn.pass(0)
  t.strictSame(torn.targets(), ['192.0.2.1'], 'all goes on')
  torn.end()
  const nowhere = { ...fixture, path: join(t.testdir({}), 'missing', 'peers') }
  const lost = start(t, nowhere)
  for (let i = 0; i < 30; i++) await lost.pass(1000)
  t.match([...lost.memory.problems[0]!.problems][0], {
    place: nowhere.path,
    reason: /^peer cache in .* cannot be written: ENOENT.*after a restart, the endpoints of a peer/,
  })
  t.match(lost.memory.status, { octets: 0, ageMs: undefined, fault: /ENOENT/ })
  t.equal(lost.lines.filter((line) => /cannot be written/.test(line)).length, 1, 'logged once')
  t.strictSame(lost.targets(), ['192.0.2.1'])
})

t.test('a follower that ends keeps the cached data of another follower of its peer', async (t) => {
  const zone = new ExportedZone(1, [peerRecord(endpoint())])
  const fixture = await peerOf(t, zone)
  const { memory, pass, clock, end } = start(t, fixture)
  await pass(0)
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const peer = { host: '127.0.0.1', port: fixture.server.port }
  const parts = { peer, clock, timers: new FakeTimers(), log, random: () => 0 }
  const others = [new PeerFollower(parts), new PeerFollower(parts)]
  const releases = others.map((other) => memory.keep(other, HOUR_MS))
  for (const [i, other] of others.entries()) {
    releases[i]?.()
    other.close()
  }
  zone.put(2, [peerRecord(endpoint({ targets: ['192.0.2.2'] }))])
  await pass(1000)
  end()
  t.strictSame(start(t, fixture).targets(), ['192.0.2.2'])
})
