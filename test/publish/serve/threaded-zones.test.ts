import t from 'tap'
import { SharedValues } from '../../../src/base/shared-values.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { FlatClassTrie } from '../../../src/geo/class-trie.ts'
import { buildClasses } from '../../../src/geo/classes/build-classes.ts'
import { type GeoCode, scanGeoCode } from '../../../src/geo/code.ts'
import { UNKNOWN_LOCATION } from '../../../src/geo/location.ts'
import type { Locator } from '../../../src/geo/locator.ts'
import { scanNet } from '../../../src/geo/net.ts'
import { ThreadedZones } from '../../../src/publish/serve/threaded-zones.ts'
import { ControlChannel, DataChannel } from '../../../src/server/thread-channel.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { AnswerStatus } from '../../../src/zone/lookup/answer.ts'
import { NO_HOOKS } from '../../support/setup.ts'
import { transaction } from '../../support/transaction.ts'
import { linesOf } from '../../support/zone-lines.ts'
import { wire } from '../../support/zone-names.ts'

const NETS = ['A', 'B', 'C'].map((name, i) => {
  const net = scanNet(`10.0.${i}.0/24`, `NET-${name}`)
  if (typeof net === 'string') throw new Error(net)
  return net
})

function classify(codes: readonly GeoCode[]): FlatClassTrie {
  return new FlatClassTrie(buildClasses({ databases: [], nets: NETS, codes }))
}

const locator: Locator = {
  locate: () => UNKNOWN_LOCATION,
  field: () => '',
  classify: async (codes) => classify(codes),
  onChange: () => () => {},
}

/** The same zones in a control thread and a data thread; what is posted waits for `deliver`. */
function pair() {
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const shared = new SharedValues()
  const control = new ControlChannel()
  const here = new ThreadedZones({ log, shared, broadcast: (follow) => control.broadcast(follow) })
  const posted: [number, unknown][] = []
  const deliver = (): void => {
    for (const [index, value] of posted.splice(0)) data.follow(index, structuredClone(value))
  }
  let caughtUp = 0
  const start = () => {
    const data = new DataChannel({
      ...NO_HOOKS,
      catchUp: () => {
        caughtUp++
        deliver()
      },
    })
    return {
      data,
      zones: new ThreadedZones({ log, shared, broadcast: (follow) => data.broadcast(follow) }),
    }
  }
  const { data, zones: there } = start()
  control.onPublish = (index, value) => posted.push([index, value])
  const late = (): ThreadedZones => {
    const { data, zones } = start()
    for (const [index, value] of control.values()) data.follow(index, structuredClone(value))
    return zones
  }
  return { here, there, posted, deliver, late, caughtUp: () => caughtUp }
}

/** The addresses that `zones` answer with. */
function ask(zones: ThreadedZones, name: string, from = '192.0.2.1'): string {
  const tx = transaction({ name, from })
  const status = zones.answerer!.answer(tx.query, tx.response)
  if (status !== AnswerStatus.Answered) return `status ${status}`
  return linesOf(tx.response, Section.Answer)
    .map((line) => line.split(' ').at(-1))
    .join()
}

const address = (...octets: number[]) => ({
  type: RRType.A,
  ttlSeconds: 60,
  rdata: [Uint8Array.from(octets)],
})

/** Image and table, with an empty zone that is published. */
function open(zones: ThreadedZones, image = new ZoneImage()) {
  const { table } = zones.open(locator, undefined, image)
  zones.serve({ image, table })
  const zone = image.addZone(wire('z.example.'))
  image.publish()
  return { image, table, zone }
}

t.test('a thread has no zones before they are published', async (t) => {
  const { here, there, deliver } = pair()
  t.strictSame([here.answerer, there.answerer], [undefined, undefined])
  open(here)
  t.equal(there.answerer, undefined, 'until it hears of them')
  deliver()
  t.equal(ask(there, 'a.z.example.'), '')
})

t.test('while the zones may be old, replies of all threads say so', async (t) => {
  const { here, there, deliver, late } = pair()
  const { image, zone } = open(here)
  image.putRRset(zone, wire('a.z.example.'), address(192, 0, 2, 1))
  image.publish()
  deliver()
  const codeOf = (zones: ThreadedZones, name: string): number => {
    const tx = transaction({ name })
    zones.answerer!.answer(tx.query, tx.response)
    return tx.response.edeCode
  }
  const names = ['a.z.example.', 'b.z.example.', 'a.other.example.']
  for (const isStale of [true, false]) {
    const before = here.answerer
    here.setStale(isStale)
    deliver()
    t.not(here.answerer, before, 'what was found before is not used any more')
    for (const zones of [here, there, late()]) {
      const want = isStale ? [3, 19, -1] : [-1, -1, -1]
      t.strictSame(
        names.map((name) => codeOf(zones, name)),
        want,
      )
      t.equal(zones.answerer!.direct === undefined, isStale)
      t.equal(ask(zones, 'a.z.example.'), '192.0.2.1')
    }
  }
})

t.test('a publish is seen at once, without a message', async (t) => {
  const { here, there, posted, deliver } = pair()
  const { image, zone } = open(here)
  deliver()
  for (let i = 1; i <= 3; i++) {
    image.putRRset(zone, wire('a.z.example.'), address(192, 0, 2, i))
    t.not(ask(there, 'a.z.example.'), `192.0.2.${i}`, 'not before')
    image.publish()
    for (const zones of [here, there]) t.equal(ask(zones, 'a.z.example.'), `192.0.2.${i}`)
  }
  t.strictSame(posted, [])
})

t.test('after a compaction the old memory answers until the new one is heard of', async (t) => {
  const { here, there, posted, deliver, late } = pair()
  const { image, zone } = open(here)
  const put = (n: number): void => {
    image.putRRset(zone, wire('a.z.example.'), address(192, 0, 2, n))
    image.publish()
  }
  deliver()
  put(1)
  image.compact()
  put(2)
  image.compact()
  put(3)
  t.equal(posted.length, 2)
  t.equal(ask(here, 'a.z.example.'), '192.0.2.3')
  t.equal(ask(there, 'a.z.example.'), '192.0.2.1')
  t.equal(ask(late(), 'a.z.example.'), '192.0.2.3', 'a thread that comes late has the newest')
  deliver()
  t.equal(ask(there, 'a.z.example.'), '192.0.2.3')
})

const candidate = (n: number, codes: readonly string[]) => ({
  code: codes.length === 0 ? undefined : scanGeoCode(codes[0]!)!,
  isDefault: codes.length === 0,
  weight: 100,
  ttlSeconds: 60,
  rdataIndexes: [n],
})

t.test('a set that names a new choice finds it, also in the middle of a query', async (t) => {
  const { here, there, deliver, caughtUp } = pair()
  const { image, table, zone } = open(here)
  deliver()
  const put = async (name: string, code: string): Promise<void> => {
    const steering = table.compose([candidate(0, [code]), candidate(1, [])], RRType.A)
    const rdata = [Uint8Array.of(192, 0, 2, 1), Uint8Array.of(192, 0, 2, 2)]
    const set = { type: RRType.A, ttlSeconds: 60, rdata, steering }
    image.putRRset(zone, wire(name), set)
    const built = table.built()
    // Nothing that it hears meanwhile makes it take the old classes for the new ones.
    deliver()
    await built
    image.publish()
  }
  await put('a.z.example.', 'NET-A')
  // The snapshot is on its way, the zone is there already.
  t.equal(ask(there, 'a.z.example.', '10.0.0.9'), '192.0.2.1')
  t.equal(caughtUp(), 1)
  t.equal(ask(there, 'a.z.example.', '10.0.1.9'), '192.0.2.2')
  await put('b.z.example.', 'NET-B')
  t.equal(ask(there, 'b.z.example.', '10.0.1.9'), '192.0.2.1')
  t.equal(ask(there, 'b.z.example.', '10.0.0.9'), '192.0.2.2')
  t.equal(caughtUp(), 2)
  for (const from of ['10.0.0.9', '10.0.1.9', '10.0.2.9']) {
    for (const name of ['a.z.example.', 'b.z.example.']) {
      t.equal(ask(there, name, from), ask(here, name, from), `${name} from ${from}`)
    }
  }
  t.equal(caughtUp(), 2, 'and no more is needed')
  table.close()
})
