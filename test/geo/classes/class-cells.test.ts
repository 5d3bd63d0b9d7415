import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { FlatClassTrie } from '../../../src/geo/class-trie.ts'
import { buildClasses } from '../../../src/geo/classes/build-classes.ts'
import { measureCells, SPACES } from '../../../src/geo/classes/class-cells.ts'
import { scanGeoCode } from '../../../src/geo/code.ts'
import { scanNet } from '../../../src/geo/net.ts'
import { openMmdb } from '../../support/mmdb.ts'

const entry = (country: string, continent: string) => ({
  country: { iso_code: country },
  continent: { code: continent },
})

const codes = (...texts: string[]) => texts.map((text) => scanGeoCode(text)!)
const net = (cidr: string, code: string) => {
  const found = scanNet(cidr, code)
  if (typeof found === 'string') throw new Error(found)
  return found
}

t.test('the parts of one trie are those of its prefixes', async (t) => {
  const database = openMmdb({
    networks: { '64.0.0.0/2': entry('DE', 'EU'), '3000::/4': entry('US', 'NA') },
  })
  const trie = buildClasses({ databases: [database], nets: [], codes: codes('DE', 'GEO-NA') })
  const cells = measureCells([trie])
  const partOf = (text: string, space: (typeof SPACES)[number]) =>
    cells
      .filter(({ classes }) => trie.codesOf[classes[0]!]!.some((code) => code.text === text))
      .reduce((sum, { parts }) => sum + parts[space], 0)
  // All but 100.64.0.0/10 and 127.0.0.0/8 of 64.0.0.0/2 is public.
  const outside = 2 ** 24 * 2 + 2 ** 16 + 3 * 2 ** 8 + 2 ** 17 + 2 ** 29
  const isPrivate = 2 ** 24 + 2 ** 22 + 2 ** 20 + 2 ** 16
  const expected = (2 ** 30 - 2 ** 22 - 2 ** 24) / (2 ** 32 - outside - isPrivate)
  t.ok(Math.abs(partOf('DE', 'ipv4') - expected) < 1e-12)
  t.ok(Math.abs(partOf('DE', 'private4') - 2 ** 22 / isPrivate) < 1e-12)
  // Nothing else of 2000::/3 is known.
  t.equal(partOf('GEO-NA', 'ipv6'), 1)
  t.equal(partOf('GEO-NA', 'private6'), 0)
  for (const space of SPACES) {
    const sum = cells.reduce((total, { parts }) => total + parts[space], 0)
    t.ok(Math.abs(sum - 1) < 1e-9, space)
  }
})

t.test('tries of equal content have cells with equal classes only', async (t) => {
  const database = openMmdb({ networks: { '81.0.0.0/8': entry('DE', 'EU') } })
  const trie = buildClasses({ databases: [database], nets: [], codes: codes('DE') })
  const cells = measureCells([trie, trie])
  t.ok(cells.every(({ classes: [a, b] }) => a === b))
  t.equal(cells.length, 2)
})

t.test('the parts agree with looking up random addresses', async (t) => {
  const random = new Random(7)
  const octet = () => random.below(256)
  const places = [entry('DE', 'EU'), entry('FR', 'EU'), entry('US', 'NA'), entry('JP', 'AS')]
  const prefixes = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, i) => {
        const isIPv6 = i % 2 === 1
        const text = isIPv6
          ? `${(0x2000 + random.below(0x2000)).toString(16)}:${random.below(65536).toString(16)}::/${3 + random.below(20)}`
          : `${octet()}.${octet()}.0.0/${1 + random.below(15)}`
        return [text, places[random.below(places.length)]!]
      }),
    )
  const all = codes('DE', 'FR', 'GEO-EU', 'US', 'NET-A')
  const nets = [net('64.0.0.0/5', 'NET-A'), net('2800::/6', 'GEO-AF')]
  const build = () =>
    buildClasses({ databases: [openMmdb({ networks: prefixes(60) })], nets, codes: all })
  for (let round = 0; round < 5; round++) {
    const tries = [build(), build(), build()]
    const cells = measureCells(tries)
    const lookups = tries.map((trie) => new FlatClassTrie(trie))
    for (const family of [1, 2]) {
      const counts = new Map<string, number>()
      const samples = 20_000
      for (let i = 0; i < samples; ) {
        const bytes = Uint8Array.from({ length: family === 1 ? 4 : 16 }, octet)
        if (family === 2) bytes[0] = 0x20 | (bytes[0]! & 0x1f)
        if (family === 1 && !isPublic(bytes)) continue
        const key = lookups
          .map((trie) => trie.lookup(bytes, family, family === 1 ? 32 : 128))
          .join()
        if (family === 2 && key === '0,0,0') continue
        counts.set(key, (counts.get(key) ?? 0) + 1)
        i++
      }
      const known = new Map(cells.map(({ classes, parts }) => [classes.join(), parts]))
      for (const [key, count] of counts) {
        const part = known.get(key)![family === 1 ? 'ipv4' : 'ipv6']
        // Five standard deviations of the sample, and a little for rare cells.
        const bound = 5 * Math.sqrt((part * (1 - part)) / samples) + 5 / samples
        t.ok(Math.abs(part - count / samples) < bound, `${key}: ${part} ~ ${count / samples}`)
      }
    }
  }
})

function isPublic([a = 0, b = 0, c = 0]: Uint8Array): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return false
  if (a === 100 && b >= 64 && b < 128) return false
  if (a === 169 && b === 254) return false
  if (a === 172 && b >= 16 && b < 32) return false
  if (a === 192 && (b === 168 || (b === 0 && c === 2))) return false
  if (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) return false
  return !(a === 203 && b === 0 && c === 113)
}
