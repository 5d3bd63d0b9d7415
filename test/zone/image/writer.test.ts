import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { listRRsets, listZones, readRRset } from '../../support/zone-contents.ts'
import { text, wire } from '../../support/zone-names.ts'

const APEX = wire('example.org.')
const WWW = wire('www.example.org.')

function a(octet: number) {
  return { type: 1, ttlSeconds: 60, rdata: [new Uint8Array([192, 0, 2, octet])] }
}

function small(): { image: ZoneImage; zone: number } {
  const image = new ZoneImage()
  const zone = image.addZone(APEX)
  image.putRRset(zone, WWW, a(1))
  image.publish()
  return { image, zone }
}

t.test(
  'a reader made before the arena and its index grew finds everything after refresh',
  async (t) => {
    const { image, zone } = small()
    const reader = image.reader()
    const arenaOctets = image.stats.arenaOctets
    for (let i = 0; i < 20000; i++) image.putRRset(zone, wire(`n${i}.example.org.`), a(i & 255))
    t.equal(readRRset(reader, wire('n7.example.org.'), 1), undefined, 'not published')
    image.publish()
    t.ok(readRRset(reader, WWW, 1), 'the old version is whole, with old views and the old index')
    t.equal(readRRset(reader, wire('n7.example.org.'), 1), undefined, 'not refreshed')
    reader.refresh()
    let missing = 0
    for (let i = 0; i < 20000; i++) {
      if (readRRset(reader, wire(`n${i}.example.org.`), 1)?.rdata[0]?.[3] !== (i & 255)) missing++
    }
    t.equal(missing, 0)
    t.ok(image.stats.arenaOctets > arenaOctets)
  },
)

t.test('garbage is compacted by itself, and readers follow', async (t) => {
  const image = new ZoneImage({ compactOctets: 65536 })
  const zone = image.addZone(APEX)
  const swapped: SharedArrayBuffer[] = []
  const stop = image.onSwap((buffer) => swapped.push(buffer))
  const reader = image.reader()
  for (let i = 0; i < 10000; i++) {
    image.putRRset(zone, WWW, a(i & 255))
    image.publish()
    reader.refresh()
    if (readRRset(reader, WWW, 1)?.rdata[0]?.[3] !== (i & 255)) t.fail(`edit ${i} is not seen`)
  }
  t.ok(swapped.length > 1, `${swapped.length} swaps`)
  t.equal(swapped.at(-1), image.handle.buffer)
  t.ok(image.stats.usedOctets < 4 * 65536, 'the arena stays small')
  stop()
  image.compact()
  t.not(swapped.at(-1), image.handle.buffer, 'listeners can leave')
})

t.test(
  'an elsewhere reader goes on with the old arena until it is handed the new one',
  async (t) => {
    const { image, zone } = small()
    const handle = { buffer: image.handle.buffer }
    const reader = new ZoneReader(handle)
    image.compact()
    image.putRRset(zone, WWW, a(2))
    image.publish()
    reader.refresh()
    t.equal(readRRset(reader, WWW, 1)?.rdata[0]?.[3], 1)
    handle.buffer = image.handle.buffer
    reader.refresh()
    t.equal(readRRset(reader, WWW, 1)?.rdata[0]?.[3], 2)
  },
)

t.test('a zone is replaced at one stroke', async (t) => {
  const { image, zone } = small()
  const reader = image.reader()
  image.removeZone(zone)
  const next = image.addZone(APEX)
  image.putRRset(next, wire('new.example.org.'), a(3))
  t.not(next, zone)
  reader.refresh()
  t.ok(readRRset(reader, WWW, 1), 'the old one is there until the publish')
  image.publish()
  reader.refresh()
  t.equal(readRRset(reader, WWW, 1), undefined)
  t.same(
    [...listRRsets(reader, next)].map((set) => text(set.owner)),
    ['new.example.org.'],
  )
  t.same([...listRRsets(reader, zone)], [])
  t.equal([...listZones(reader)].length, 1)
})

t.test('ids of removed zones come back only after a compaction', async (t) => {
  const image = new ZoneImage({ initialOctets: 16 * 1024 * 1024 })
  for (let i = 0; i < 65534; i++) {
    image.removeZone(image.addZone(APEX))
  }
  const kept = image.addZone(APEX)
  t.equal(kept, 65535)
  t.throws(() => image.addZone(wire('example.com.')), InputError, 'all ids are in use or retired')
  image.publish()
  const reused = image.addZone(wire('example.com.'))
  t.ok(reused < 65535, 'a compaction made room')
  image.publish()
  const reader = image.reader()
  t.same([...listZones(reader)].map(({ id }) => id).sort(), [kept, reused].sort())
})

t.test('putting what is there, and removing what is not, changes nothing', async (t) => {
  const { image, zone } = small()
  const version = image.publish()
  t.equal(image.putRRset(zone, WWW, a(1)), false)
  t.equal(image.removeRRset(zone, WWW, 28), false)
  t.equal(image.removeRRset(zone, wire('x.example.org.'), 1), false)
  t.equal(image.publish(), version)
  t.equal(image.putRRset(zone, WWW, { ...a(1), ttlSeconds: 61 }), true)
  t.equal(
    image.putRRset(zone, WWW, { ...a(1), ttlSeconds: 61, steering: new Uint32Array(2) }),
    true,
  )
  t.equal(image.publish(), version + 1)
})

t.test('owners and apexes are taken without regard to case', async (t) => {
  const image = new ZoneImage()
  const zone = image.addZone(wire('Example.ORG.'))
  t.equal(image.findZone(APEX), zone)
  image.putRRset(zone, wire('WWW.example.org.'), a(1))
  image.publish()
  t.ok(readRRset(image.reader(), WWW, 1))
})

t.test('a full arena is one clear error, and what was there stays', async (t) => {
  const image = new ZoneImage({ maxOctets: 128 * 1024 })
  const zone = image.addZone(APEX)
  const fill = () => {
    for (let i = 0; i < 100000; i++) {
      image.putRRset(zone, wire(`n${i}.example.org.`), a(1))
      image.publish()
    }
  }
  t.throws(fill, /^zone data needs more than the \d+ octets reserved for it/)
  const reader = image.reader()
  t.ok(readRRset(reader, wire('n0.example.org.'), 1))
  image.compact()
  t.equal(image.removeRRset(zone, wire('n0.example.org.'), 1), true, 'compacting makes room')
})

const BUGS: { name: string; given: (image: ZoneImage, zone: number) => void }[] = [
  { name: 'an owner outside the zone', given: (i, z) => i.putRRset(z, wire('example.com.'), a(1)) },
  {
    name: 'an owner that only ends alike',
    given: (i, z) => i.putRRset(z, wire('xexample.org.'), a(1)),
  },
  { name: 'no rdata', given: (i, z) => i.putRRset(z, WWW, { ...a(1), rdata: [] }) },
  {
    name: 'a TTL of 32 bits',
    given: (i, z) => i.putRRset(z, WWW, { ...a(1), ttlSeconds: 2 ** 31 }),
  },
  {
    name: 'a TTL of half a second',
    given: (i, z) => i.putRRset(z, WWW, { ...a(1), ttlSeconds: 0.5 }),
  },
  { name: 'type 0', given: (i, z) => i.putRRset(z, WWW, { ...a(1), type: 0 }) },
  { name: 'a zone twice', given: (i) => i.addZone(APEX) },
  { name: 'a zone that does not exist', given: (i) => i.removeZone(77) },
  {
    name: 'something behind the owner',
    given: (i, z) => i.removeRRset(z, new Uint8Array([0, 0]), 1),
  },
  {
    name: 'an owner without an end',
    given: (i, z) => i.removeRRset(z, new Uint8Array([3, 65]), 1),
  },
  {
    name: 'compacting unpublished changes',
    given: (i, z) => {
      i.putRRset(z, WWW, a(9))
      i.compact()
    },
  },
]

t.test('bugs of callers are assertions', async (t) => {
  for (const { name, given } of BUGS) {
    const { image, zone } = small()
    t.throws(() => given(image, zone), /^assertion failed: /, name)
  }
})

t.test('a buffer that is no image is refused', async (t) => {
  t.throws(() => new ZoneReader({ buffer: new SharedArrayBuffer(64) }), /assertion failed/)
})

t.test('a declared name exists without records, until that ends', async (t) => {
  const { image, zone } = small()
  const reader = image.reader()
  const name = new NameBuffer()
  const exists = (owner: string): boolean => {
    const octets = wire(owner)
    name.set(octets, 0, octets.length)
    reader.refresh()
    const apex = reader.matchZone(name, 0)
    return reader.findBody(apex, name, 0, reader.zoneLabel) !== 0
  }
  const declare = (owner: string, isDeclared: boolean): boolean => {
    const isChanged = image.declareName(zone, wire(owner), isDeclared)
    image.publish()
    return isChanged
  }
  t.equal(image.declareName(zone, wire('b.a.example.org.'), true), true)
  t.equal(exists('b.a.example.org.'), false, 'not published')
  image.publish()
  t.equal(exists('b.a.example.org.') && exists('a.example.org.'), true)
  t.equal(declare('b.a.example.org.', true), false)
  image.putRRset(zone, wire('c.b.a.example.org.'), a(1))
  image.publish()
  image.removeRRset(zone, wire('c.b.a.example.org.'), 1)
  image.publish()
  t.equal(exists('b.a.example.org.'), true, 'after its last child')
  image.compact()
  t.equal(exists('b.a.example.org.'), true, 'after compacting')
  t.equal(declare('b.a.example.org.', false), true)
  t.equal(exists('b.a.example.org.') || exists('a.example.org.'), false)
  t.equal(declare('none.example.org.', false), false)
  t.equal(declare('www.example.org.', true), true)
  t.equal(declare('www.example.org.', false), true)
  t.equal(exists('www.example.org.'), true, 'its records are still there')
  const before = image.stats
  t.equal(before.names, 2)
})
