import t from 'tap'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { readRRset } from '../../support/zone-contents.ts'
import { wire } from '../../support/zone-names.ts'

const TYPE = 65280
const set = { type: TYPE, ttlSeconds: 1, rdata: [Uint8Array.of(1)] }

t.test('whenever in a refresh the arena and the index grow, names are found', async (t) => {
  const { load } = Atomics
  t.teardown(() => {
    Atomics.load = load
  })
  for (const publishes of [true, false]) {
    for (let moment = 0; moment < 4; moment++) {
      const image = new ZoneImage({ initialOctets: 4096 })
      const zone = image.addZone(wire('z.example.'))
      image.putRRset(zone, wire('a.z.example.'), set)
      image.publish()
      const reader = new ZoneReader({ buffer: image.handle.buffer })
      // Something to move on to: else there is nothing to load.
      image.putRRset(zone, wire('b.z.example.'), set)
      image.publish()
      // What another thread may do between any two loads of ours.
      const grow = (): void => {
        for (let i = 0; i < 3000; i++) image.putRRset(zone, wire(`n${i}.z.example.`), set)
        if (publishes) image.publish()
      }
      let loads = 0
      Atomics.load = ((words: Uint32Array, index: number) => {
        const value = load(words, index)
        if (loads++ === moment) grow()
        return value
      }) as typeof Atomics.load
      reader.refresh()
      Atomics.load = load
      t.ok(loads > moment, `load ${moment} of ${loads}`)
      t.ok(readRRset(reader, wire('a.z.example.'), TYPE) !== undefined)
      t.equal(readRRset(reader, wire('no.z.example.'), TYPE), undefined)
    }
  }
})

t.test(
  'a reader that has nothing to move on to finds what it found, however the arena grows',
  async (t) => {
    const image = new ZoneImage({ initialOctets: 4096 })
    const zone = image.addZone(wire('z.example.'))
    image.putRRset(zone, wire('a.z.example.'), set)
    image.publish()
    const reader = new ZoneReader({ buffer: image.handle.buffer })
    const finds = (name: string): boolean => readRRset(reader, wire(name), TYPE) !== undefined
    for (let i = 0; i < 3000; i++) image.putRRset(zone, wire(`n${i}.z.example.`), set)
    reader.refresh()
    t.same([finds('a.z.example.'), finds('n2999.z.example.')], [true, false])
    image.publish()
    reader.refresh()
    t.same([finds('a.z.example.'), finds('n2999.z.example.')], [true, true])
    reader.refreshTo(reader.version - 1)
    t.equal(finds('n2999.z.example.'), false)
    reader.refresh()
    t.equal(
      finds('n2999.z.example.'),
      true,
      'a refresh that finds nothing new leaves an older version',
    )
  },
)
