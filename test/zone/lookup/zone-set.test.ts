import fc from 'fast-check'
import t from 'tap'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { isSubdomain } from '../../../src/dns/name/name.ts'
import { countLabels, ZoneSet } from '../../../src/zone/lookup/zone-set.ts'
import { wire } from '../../support/zone-text.ts'

function named(text: string): NameBuffer {
  const name = new NameBuffer()
  const octets = wire(text)
  name.set(octets, 0, octets.length)
  return name
}

const arbitraryName = fc
  .array(fc.constantFrom('a', 'b', 'c'), { maxLength: 4 })
  .map((labels) => labels.map((label) => `${label}.`).join('') || '.')

t.test('zones are found as by comparing with each', async (t) => {
  const names = fc.uniqueArray(arbitraryName, { maxLength: 12 })
  const property = fc.property(names, arbitraryName, (zones, name) => {
    const apexes = zones.map(wire)
    const set = new ZoneSet(apexes)
    const above = apexes.filter((apex) => isSubdomain(wire(name), apex))
    const longest = above.sort((a, b) => b.length - a.length)[0]
    const index = longest === undefined ? -1 : apexes.indexOf(longest)
    const around =
      longest === undefined ? apexes : apexes.filter((apex) => isSubdomain(apex, longest))
    t.equal(set.match(named(name)), index)
    t.equal(set.indexOf(wire(name)), zones.indexOf(name))
    t.equal(set.deepestAround(named(name)), Math.max(0, ...around.map(countLabels)))
  })
  fc.assert(property)
})

t.test('the number of zones has no limit', async (t) => {
  const zones = Array.from({ length: 200_000 }, (_, i) => {
    return new Uint8Array([3, i >> 16, (i >> 8) & 255, i & 255, 0])
  })
  t.equal(new ZoneSet(zones).deepest, 1)
})
