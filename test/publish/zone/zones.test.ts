import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import { EndpointHistory } from '../../../src/base/telemetry/endpoint-history.ts'
import { EventLog } from '../../../src/base/telemetry/event-log.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { systemTimers, type Timers } from '../../../src/base/timers.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { FlatClassTrie } from '../../../src/geo/class-trie.ts'
import { buildClasses } from '../../../src/geo/classes/build-classes.ts'
import { scanGeoCode } from '../../../src/geo/code.ts'
import { UNKNOWN_LOCATION } from '../../../src/geo/location.ts'
import type { Locator } from '../../../src/geo/locator.ts'
import { type Net, scanNet } from '../../../src/geo/net.ts'
import type { HealthView } from '../../../src/health/health-table.ts'
import { AnswerEvents } from '../../../src/publish/build/answer-events.ts'
import { EndpointStates, historyKey } from '../../../src/publish/build/endpoint-states.ts'
import { NO_PEERING, type PublishOptions } from '../../../src/publish/options.ts'
import { OfferedVersions } from '../../../src/publish/zone/offered-versions.ts'
import { SerialIndex } from '../../../src/publish/zone/serials/serial-index.ts'
import { PublishedZones } from '../../../src/publish/zone/zones.ts'
import { packRecord } from '../../../src/records/pack.ts'
import type { RecordChange, StoredRecord } from '../../../src/records/record-source.ts'
import { lowerNameKey } from '../../../src/records/validate/names.ts'
import { ZoneOwnership } from '../../../src/sources/zone-ownership.ts'
import { SteeringTable } from '../../../src/steering/table.ts'
import { ZoneVersions } from '../../../src/xfr/zone-versions.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { FakeTimers } from '../../support/setup.ts'
import { TestHealth } from '../../support/test-health.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { linesOf } from '../../support/zone-lines.ts'
import { wire } from '../../support/zone-names.ts'

const NETS = [scanNet('127.0.0.0/8', 'US') as Net, scanNet('127.0.0.0/16', 'NET-HOME') as Net]
const POSITION = { file: 'Corefile', line: 1, column: 1 }

/** Clients of `code` get 192.0.2.`last` with that TTL, all others 192.0.2.1. */
function record(code: string, last: number, ttlSeconds = 60): StoredRecord {
  const shared = { owner: wire('a.z.example.'), type: RRType.A, ttlSeconds: 60, weight: undefined }
  const endpoint = (n: number, codes: readonly string[]) => ({
    ...shared,
    setIdentifier: `${n}`,
    codes: codes.map((text) => scanGeoCode(text)!),
    isDefault: codes.length === 0,
    rdata: [Uint8Array.of(192, 0, 2, n)],
  })
  const packed = packRecord({
    namespace: 'default',
    name: 'a',
    zoneLabel: '',
    rootHost: wire('a.z.example.'),
    isAggregate: false,
    isWildcardHost: false,
    createdSeconds: 0,
    endpoints: [endpoint(1, []), { ...endpoint(last, [code]), ttlSeconds }],
  })
  return { key: 'default/a', packed }
}

const COUNT = 2000
const aliasName = (i: number): string => `c${i}.z.example.`

/** One record with many CNAMEs to a.z.example. */
function aliases(count = COUNT): StoredRecord {
  const shared = { type: RRType.CNAME, ttlSeconds: 60, setIdentifier: '', weight: undefined }
  const packed = packRecord({
    namespace: 'default',
    name: 'b',
    zoneLabel: '',
    rootHost: wire('z.example.'),
    isAggregate: false,
    isWildcardHost: false,
    createdSeconds: 0,
    endpoints: Array.from({ length: count }, (_, i) => {
      const steering = { codes: [], isDefault: false, rdata: [wire('a.z.example.')] }
      return { ...shared, ...steering, owner: wire(aliasName(i)) }
    }),
  })
  return { key: 'default/b', packed }
}

/** Zones over a source and over classes that wait for the test. */
async function stage(
  health: HealthView = new TestHealth(),
  timers: Timers = systemTimers,
  settings?: PublishOptions['settings'],
  image = new ZoneImage(),
) {
  const pending: (() => void)[] = []
  const lines: string[] = []
  const locator: Locator = {
    locate: () => UNKNOWN_LOCATION,
    field: () => '',
    classify: async (codes) => {
      await new Promise<void>((resolve) => pending.push(resolve))
      return new FlatClassTrie(buildClasses({ databases: [], nets: NETS, codes }))
    },
    onChange: () => () => {},
  }
  const table = new SteeringTable({ locator, random: new Random(1), onError: t.fail })
  const answerer = new ZoneAnswerer(image.reader(), table.steerer())
  const options = {
    zones: [wire('z.example.')],
    source: { kind: 'manifests', directory: '' } as const,
    position: POSITION,
    snapshot: undefined,
    serials: '',
    rname: '',
    nameservers: [],
    allowedNamespaces: undefined,
    site: '',
    peering: NO_PEERING,
    settings,
  }
  const log = new EventLog(systemClock)
  const history = new EndpointHistory(systemClock)
  const find = () => history
  const states = new EndpointStates({ place: 'here', downReasons: () => '', find })
  const offered = new ZoneVersions()
  const zones = new PublishedZones(options, {
    image,
    table,
    health,
    serials: new SerialIndex(),
    versions: new OfferedVersions(image, offered, offered.source()),
    events: new AnswerEvents({ source: '', others: undefined, find: () => log, states }),
    serialFile: undefined,
    place: 'here',
    clock: systemClock,
    log: createLogger(
      '',
      (line) => lines.push(line),
      () => false,
    ),
    timers,
    onCommit: () => {},
  })
  const claims = new ZoneOwnership()
  claims.claim(options.zones)
  let notify: (changes: readonly RecordChange[]) => void = () => {}
  const current = new Map<string, StoredRecord>()
  await zones.follow(
    {
      records: () => current.values(),
      find: (key) => current.get(key),
      recordCount: 1,
      problems: () => [],
      unreadyReason: () => '',
      subscribe: (listener) => {
        notify = listener
        return () => {}
      },
    },
    claims,
  )
  const put = (after: StoredRecord | undefined): void => {
    const key = after?.key ?? 'default/a'
    const before = current.get(key)
    if (after === undefined) current.delete(key)
    else current.set(key, after)
    notify([{ before, after }])
  }
  const ask = (name = 'a.z.example.'): string => {
    const tx = transaction({ name })
    answerer.answer(tx.query, tx.response)
    return linesOf(tx.response, Section.Answer).at(-1)?.split(' ').at(-1) ?? 'none'
  }
  /** Lets the classes that are being built be done; resolves once that has had its effect. */
  const build = async (): Promise<void> => {
    await until(() => pending.length > 0, 'a build')
    for (const resolve of pending.splice(0)) resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
  /** The states that were noted of the endpoint with that set identifier. */
  const statesOf = (id: string): readonly string[] => {
    const owner = historyKey('here', 'z.example.', lowerNameKey(wire('a.z.example.')))
    const { transitions = [] } = history.find(owner, `${RRType.A} default/a ${id}`) ?? {}
    return transitions.map(({ state }) => state)
  }
  return { put, ask, build, claims, pending, lines, statesOf, zones, log, offered }
}

t.test('a change that comes while classes are built waits for its own classes', async (t) => {
  const { put, ask, build } = await stage()
  put(record('US', 2))
  t.equal(ask(), 'none')
  put(record('NET-HOME', 3))
  await build()
  t.equal(ask(), '192.0.2.2', 'the first, whole; not the default of the second')
  await build()
  t.equal(ask(), '192.0.2.3')
  put(record('US', 4))
  t.equal(ask(), '192.0.2.4', 'with codes that are known there is no wait')
})

t.test('of many changes meanwhile only the last one is applied', async (t) => {
  const { put, ask, build, pending, lines } = await stage()
  put(record('US', 2))
  for (let n = 3; n < 10; n++) put(n % 2 === 0 ? undefined : record('US', n))
  put(record('US', 99))
  await build()
  t.equal(ask(), '192.0.2.99')
  t.strictSame(
    lines.filter((line) => !line.startsWith('[INFO]')),
    [],
    'and none disagrees with another',
  )
  t.equal(pending.length, 0)
})

t.test('a zone that another block takes meanwhile takes its records along', async (t) => {
  const { put, ask, build, claims } = await stage()
  put(record('US', 2))
  const release = claims.claim([wire('a.z.example.')])
  await build()
  t.equal(ask(), 'none')
  release()
  t.equal(ask(), '192.0.2.2')
})

t.test('queries get their turn while many names die, and all die at once', async (t) => {
  const health = new TestHealth()
  const { put, ask, build } = await stage(health, systemTimers, {
    allDown: 'closed',
    sticky: undefined,
  })
  put(record('US', 2))
  await build()
  put(aliases())
  const [first, last] = [aliasName(0), aliasName(COUNT - 1)]
  const targets = ['192.0.2.1', '192.0.2.2']
  await until(() => targets.includes(ask(last)), 'the CNAMEs')
  for (const address of targets) {
    health.add({ recordKey: 'default/a', address, health: 'down' })
  }
  health.publish()
  t.not(ask(first), 'none', 'this takes more than one turn')
  // This waits for the others.
  put(record('US', 3))
  for (; ask(first) !== 'none'; await new Promise((resolve) => setImmediate(resolve))) {
    t.not(ask(last), 'none')
  }
  t.equal(ask(last), 'none')
  await until(() => ask(first) === '192.0.2.3', 'the last change')
  t.equal(ask(last), '192.0.2.3')
})

/** A health table whose change arrives in parts. */
class PartialHealth extends TestHealth {
  isChanging = false
}

t.test('a change of health that arrives in parts is published as one', async (t) => {
  const health = new PartialHealth()
  const { put, ask, build } = await stage(health)
  put(record('US', 2))
  await build()
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  health.isChanging = true
  for (const target of ['192.0.2.1', '192.0.2.2']) {
    health.add({ recordKey: 'default/a', address: target, health: 'down' })
    health.publish()
    for (let n = 0; n < 3; n++) await turn()
    t.equal(ask(), '192.0.2.2')
    health.remove({ recordKey: 'default/a', address: target, health: 'down' })
  }
  health.add({ recordKey: 'default/a', address: '192.0.2.2', health: 'down' })
  health.isChanging = false
  health.publish()
  await until(() => ask() === '192.0.2.1', 'the whole change')
})

t.test('a slow start without weights is noted, although no answer changes', async (t) => {
  const health = new TestHealth()
  const { put, build, statesOf, zones, log } = await stage(health)
  put(record('US', 2))
  await build()
  const published = () => [zones.zones[0]!.serial, log.lastId]
  const before = published()
  health.slowStarts.set('default/a', [{ address: '192.0.2.2', units: 5 }])
  health.put('default/a', [], ['192.0.2.2'])
  health.publish()
  t.strictSame(statesOf('2'), ['slow start'])
  health.slowStarts.clear()
  health.put('default/a')
  health.publish()
  t.strictSame(statesOf('2'), ['slow start', 'up'])
  t.strictSame(statesOf('1'), [], 'always up')
  t.strictSame(published(), before, 'nothing was published')
})

t.test('of the conflicts of one batch the first are logged, however long it lasts', async (t) => {
  const health = new PartialHealth()
  const timers = new FakeTimers()
  const { put, build, lines } = await stage(health, timers)
  put(record('US', 2))
  await build()
  health.isChanging = true
  for (let ttlSeconds = 100; ttlSeconds < 150; ttlSeconds++) {
    put(record('US', 2, ttlSeconds))
    if (ttlSeconds % 10 === 0) await timers.advance(1000)
  }
  const conflicts = lines.filter((line) => line.includes(' A: TTL '))
  t.equal(conflicts.length, 20)
  t.equal(lines.filter((line) => line.includes('and more conflicts')).length, 1)
  health.isChanging = false
})

t.test('a compaction ends although nothing changes any more', async (t) => {
  const timers = new FakeTimers()
  const image = new ZoneImage({ compactOctets: 16_384, compactStepOctets: 4096 })
  const { put, offered } = await stage(undefined, timers, undefined, image)
  const zone = wire('z.example.')
  const { buffer } = image.handle
  put(aliases())
  await until(() => image.isPublished && image.stats.names > COUNT, 'the names')
  // The removal leaves garbage.
  put(aliases(1))
  await until(() => image.isPublished && image.stats.names < COUNT, 'the removal')
  t.equal(image.handle.buffer, buffer, 'it has begun')
  for (let i = 0; i < 400 && image.handle.buffer === buffer; i++) await timers.advance(1000)
  t.not(image.handle.buffer, buffer)
  t.equal(offered.find(zone)?.buffer, image.handle.buffer, 'nothing keeps the arena before')
})
