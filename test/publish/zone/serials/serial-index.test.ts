import fc from 'fast-check'
import t from 'tap'
import { SerialIndex } from '../../../../src/publish/zone/serials/serial-index.ts'
import { isSerialAfter } from '../../../../src/publish/zone/soa.ts'

const START_MS = 1_800_000_000_500

t.test('a serial starts at the time, grows with content and with nothing else', (t) => {
  const property = fc.property(
    fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }),
    (digests) => {
      const index = new SerialIndex()
      const ask = (digest: string, nowMs: number) =>
        index.serialFor({ zone: 'z', place: 'p', digest }, nowMs)
      let last = ask(digests[0]!, START_MS)
      if (last !== 1_800_000_000) return false
      for (let i = 1; i < digests.length; i++) {
        const serial = ask(digests[i]!, 1_900_000_000_000)
        const want = digests[i] === digests[i - 1] ? last : last + 1
        if (serial !== want) return false
        last = serial
      }
      return true
    },
  )
  fc.assert(property, { seed: 5, numRuns: 200 })
  t.end()
})

const step = fc.record({
  place: fc.constantFrom('p', 'q', 'r'),
  digest: fc.constantFrom('a', 'b', 'c'),
  /** Blocks of the Corefile from here on; null = no reload. */
  reload: fc.option(fc.subarray(['p', 'q', 'r'], { minLength: 1 }), { freq: 4 }),
  restart: fc.boolean(),
})

t.test(
  'no content ever comes with the serial of another, whatever is restarted or renamed',
  (t) => {
    const property = fc.property(fc.array(step), (steps) => {
      let index = new SerialIndex()
      const contentOf = new Map<number, string>()
      const current = new Map<string, { digest: string; serial: number }>()
      for (const { place, digest, reload, restart } of steps) {
        if (restart) {
          const entries = index.entriesOf('z')
          index = new SerialIndex()
          index.restore(entries)
        }
        if (reload !== null) {
          index.retain('z', new Set(reload))
          for (const gone of [...current.keys()]) if (!reload.includes(gone)) current.delete(gone)
        }
        const serial = index.serialFor({ zone: 'z', place, digest }, START_MS)
        if ((contentOf.get(serial) ?? digest) !== digest) return false
        const before = current.get(place)
        if (before?.digest === digest && before.serial !== serial) return false
        if (before !== undefined && before.digest !== digest) {
          const all = [...contentOf.keys()]
          if (!all.every((other) => isSerialAfter(serial, other))) return false
        }
        contentOf.set(serial, digest)
        current.set(place, { digest, serial })
      }
      return true
    })
    fc.assert(property, { seed: 6, numRuns: 2000 })
    t.end()
  },
)

t.test('a block that is renamed keeps its serial, one that comes back does not', (t) => {
  const index = new SerialIndex()
  const ask = (place: string, digest: string) =>
    index.serialFor({ zone: 'z', place, digest }, START_MS)
  const first = ask('p', 'a')
  index.retain('z', new Set(['q']))
  t.equal(ask('q', 'a'), first)
  t.equal(ask('q', 'b'), first + 1)
  index.retain('z', new Set(['p']))
  t.equal(ask('p', 'a'), first + 2)
  t.end()
})

t.test('serials of this process precede those of a file', (t) => {
  const index = new SerialIndex()
  const own = { zone: 'z', place: 'p', digest: 'a' }
  t.equal(index.serialFor(own, 7_000), 7)
  index.restore([{ ...own, digest: 'b', serial: 90 }])
  t.equal(index.serialFor(own, 7_000), 7)
  t.equal(index.serialFor({ ...own, digest: 'c' }, 7_000), 91)
  t.end()
})
