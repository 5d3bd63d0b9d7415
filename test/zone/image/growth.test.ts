import { createContext, runInContext } from 'node:vm'
import t, { type Test } from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import type { ZoneId } from '../../../src/zone/image/types.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { listRRsets, listZones, readRRset } from '../../support/zone-contents.ts'
import { text, wire } from '../../support/zone-names.ts'

/*
 * The arena grows while a version is being written, and readers that have not refreshed have views of its former size.
 * The blocks of the new version are written at each place around the end of these views.
 */

const APEX = wire('z.example.')
const OWNER = wire('a.z.example.')
const PADDING = wire('p.z.example.')
/** Words of the views: the first size of every arena. */
const VIEW_WORDS = 65_536 / 4
/** So far from their end the arena has not grown: a change reserves room for the name and all its ancestors. */
const SPARE_WORDS = 1500
/** More than any step takes, so that each of its words is at the end of the views once. */
const PADS = 40
/** No measure of anything: the bound on a loop without an end. */
const TIMEOUT_MS = 120_000

const txt = (octets: number) => {
  return { type: RRType.TXT, ttlSeconds: 1, rdata: [new Uint8Array(octets)] }
}
const numbered = (type: number, n: number) => {
  return { type, ttlSeconds: 1, rdata: [Uint8Array.of(n >> 8, n & 0xff)] }
}

interface Case {
  readonly name: string
  /** Writes, without publishing, what `read` must not see. */
  readonly write: (image: ZoneImage, zone: ZoneId, n: number) => void
  readonly read: (reader: ZoneReader) => unknown
}

const CASES: readonly Case[] = [
  {
    name: 'bodies of a name',
    write: (image, zone, n) => image.putRRset(zone, OWNER, numbered(RRType.A, n)),
    read: (reader) => readRRset(reader, OWNER, RRType.A),
  },
  {
    name: 'nodes of a zone',
    write: (image, zone, n) => {
      image.putRRset(zone, wire(`${n}.z.example.`), numbered(RRType.A, n))
    },
    read: (reader) => {
      const sets = [...listZones(reader)].flatMap(({ id }) => [...listRRsets(reader, id)])
      return sets.map(({ owner, type }) => [text(owner), type])
    },
  },
  {
    name: 'chains of a signed zone',
    write: (image, zone, n) => {
      image.putRRset(zone, OWNER, numbered(RRType.NSEC, n))
      runWhole(image.updateChain(zone, [OWNER]))
    },
    read: (reader) => {
      const name = new NameBuffer()
      name.set(APEX, 0, APEX.length)
      return reader.findChain(reader.matchZone(name, 0))
    },
  },
  {
    name: 'zones of one apex',
    write: (image) => {
      image.removeZone(image.findZone(APEX)!)
      image.addZone(APEX)
    },
    read: (reader) => [[...listZones(reader)], readRRset(reader, OWNER, RRType.A)],
  },
  {
    name: 'zones of many apexes, and their tables',
    write: (image, _, n) => image.addZone(wire(`z${n}.`)),
    read: (reader) => [[...listZones(reader)], readRRset(reader, OWNER, RRType.A)],
  },
]

/** An image with a published version that ends `pad` words before the arena has to grow. */
function prepare(pad: number): { image: ZoneImage; zone: ZoneId } {
  const image = new ZoneImage({ initialOctets: 4096 })
  const zone = image.addZone(APEX)
  image.putRRset(zone, APEX, numbered(RRType.NSEC, 0))
  image.putRRset(zone, OWNER, numbered(RRType.A, 0))
  image.putRRset(zone, OWNER, numbered(RRType.NSEC, 0))
  runWhole(image.updateChain(zone))
  const free = VIEW_WORDS - SPARE_WORDS - image.stats.usedOctets / 4 - pad
  image.putRRset(zone, PADDING, txt(free * 4))
  image.publish()
  return { image, zone }
}

function sweep(t: Test, { write, read }: Case): void {
  let crossings = 0
  for (let pad = 0; pad < PADS; pad++) {
    const { image, zone } = prepare(pad)
    const reader = new ZoneReader({ buffer: image.handle.buffer })
    if (reader.words.length !== VIEW_WORDS) throw new Error(`views of ${reader.words.length} words`)
    const want = JSON.stringify(read(reader))
    for (let n = 1; image.stats.usedOctets / 4 < VIEW_WORDS + PADS; n++) {
      write(image, zone, n)
      const got = JSON.stringify(read(reader))
      if (got === want) continue
      t.equal(got, want, `pad ${pad}, step ${n}, ${image.stats.usedOctets / 4} words`)
      return
    }
    if (image.handle.buffer.byteLength > VIEW_WORDS * 4) crossings++
  }
  t.equal(crossings, PADS, 'the arena grew each time')
}

for (const one of CASES) {
  t.test(`${one.name} that are written as the arena grows`, async (t) => {
    // A loop without an end must fail the test, not stop it.
    const context = createContext({ run: () => sweep(t, one) })
    runInContext('run()', context, { timeout: TIMEOUT_MS })
  })
}
