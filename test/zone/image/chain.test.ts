import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { compareNames, printName, scanName } from '../../../src/dns/name/name.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import * as L from '../../../src/zone/image/layout.ts'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { wire } from '../../support/zone-text.ts'

const APEX = wire('example.')
const RDATA = [Uint8Array.from([0, 0, 1, 0x40])]

/** Owners of the chain in a reader's version, in its order. */
function ownersOf(reader: ZoneReader, version: number): string[] {
  const name = new NameBuffer()
  name.set(APEX, 0, APEX.length)
  const zone = reader.matchZone(name, 0)
  const { buffer } = reader.handle
  const view = VersionView.open({ zone: APEX, serial: 0, buffer, imageVersion: version })!
  const chain = reader.findChain(zone)
  if (chain === 0) return []
  const start = chain + L.CHAIN_REST + reader.words[chain + L.CHAIN_PARAMETER_WORDS]!
  const count = reader.words[chain + L.CHAIN_COUNT]!
  return Array.from({ length: count }, (_, i) => printName(view.owner(reader.words[start + i]!)))
}

const label = fc.constantFrom('a', 'b', 'z', '*', '0', '\\000', '\\255', 'aa', 'ab', 'x'.repeat(63))
/** Owners relative to the zone; never too long for a name. */
const owner = fc
  .array(label, { minLength: 0, maxLength: 4 })
  .map((labels) => labels.map((text) => `${text}.`).join(''))
  .filter((text) => scanName(`${text}example.`) !== undefined)

t.test('a chain has the owners of NSEC in canonical order, in every version', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.array(owner, { maxLength: 12 }), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      (rounds, compacts) => {
        const image = new ZoneImage()
        const zone = image.addZone(APEX)
        image.putRRset(zone, APEX, { type: RRType.NSEC, ttlSeconds: 1, rdata: RDATA })
        const present = new Set(['example.'])
        const history: [version: number, want: string[]][] = []
        const reader = new ZoneReader({ buffer: image.handle.buffer })
        for (const [i, names] of rounds.entries()) {
          const changed = names.filter((text) => text !== '').map((text) => `${text}example.`)
          for (const name of changed) {
            const gone = present.delete(name)
            if (gone) image.removeRRset(zone, wire(name), RRType.NSEC)
            else {
              present.add(name)
              image.putRRset(zone, wire(name), { type: RRType.NSEC, ttlSeconds: 1, rdata: RDATA })
            }
          }
          // What is no owner of NSEC is not in it.
          const rdata = [new Uint8Array(1)]
          image.putRRset(zone, wire(`t${i}.example.`), { type: RRType.TXT, ttlSeconds: 1, rdata })
          runWhole(image.updateChain(zone, i === 0 ? undefined : changed.map(wire)))
          const want = [...present]
            .map(wire)
            .sort(compareNames)
            .map((name) => printName(name))
          history.push([image.publish(), want])
        }
        for (const [version, want] of history) {
          reader.refreshTo(version)
          if (ownersOf(reader, version).join() !== want.join()) return false
        }
        if (!compacts) return true
        image.compact()
        const moved = image.reader()
        return ownersOf(moved, image.version).join() === history.at(-1)![1].join()
      },
    ),
    { numRuns: 300 },
  )
  t.end()
})
