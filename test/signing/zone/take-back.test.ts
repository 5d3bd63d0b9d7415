import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { takeBack } from '../../../src/signing/zone/take-back.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { runs } from '../../support/runs.ts'
import { listRRsets } from '../../support/zone-contents.ts'
import { wire } from '../../support/zone-names.ts'

const APEX = wire('k.example.')
const step = fc.record({
  owner: fc.constantFrom('k', 'a.k', 'b.a.k', '*.c.k').map((label) => wire(`${label}.example.`)),
  type: fc.constantFrom(RRType.A, RRType.TXT, 0),
  value: fc.option(fc.nat(2)),
  steering: fc.option(fc.nat(2)),
})
const steps = fc.array(step, { maxLength: 12 })

t.test('an image has its published content again', (t) => {
  fc.assert(
    fc.property(steps, steps, (first, second) => {
      const image = new ZoneImage()
      const zone = image.addZone(APEX)
      const apply = (all: typeof first): void => {
        for (const { owner, type, value, steering } of all) {
          const words = steering === null ? undefined : new Uint32Array([steering])
          const rdata = [new Uint8Array([192, 0, 2, value ?? 0])]
          if (type === 0) image.declareName(zone, owner, value !== null)
          else if (value === null) image.removeRRset(zone, owner, type)
          else image.putRRset(zone, owner, { type, ttlSeconds: 60, rdata, steering: words })
        }
      }
      const contents = (): string[] => {
        const sets = [...listRRsets(image.reader(), zone)]
        return sets
          .map((set) => JSON.stringify({ ...set, steering: [...(set.steering ?? [])] }))
          .sort()
      }
      apply(first)
      image.publish()
      const [before, { names }] = [contents(), image.stats]
      apply(second)
      runWhole(takeBack(image, zone, APEX))
      image.publish()
      return t.strictSame(contents(), before) && t.equal(image.stats.names, names)
    }),
    { numRuns: runs(200) },
  )
  t.end()
})
