import fc from 'fast-check'
import t from 'tap'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { FlatClassTrie } from '../../../src/geo/class-trie.ts'
import { buildClasses } from '../../../src/geo/classes/build-classes.ts'
import { NO_ORDER } from '../../../src/geo/classes/point-orders.ts'
import { type GeoCode, scanGeoCode } from '../../../src/geo/code.ts'
import { type Location, ladderOf, UNKNOWN_LOCATION } from '../../../src/geo/location.ts'
import type { Database } from '../../../src/geo/mmdb/database.ts'
import { isMapped, type Net, NetTable, scanNet } from '../../../src/geo/net.ts'
import { distanceKm, scanPoint } from '../../../src/geo/point.ts'
import { cityEntry, type MmdbValue, openMmdb } from '../../support/mmdb.ts'
import { runs } from '../../support/runs.ts'

const RUNS = { seed: 20261121, numRuns: runs(150) }

/** Few bits, so that random prefixes and random addresses meet. */
const OCTETS = [0, 1, 64, 127, 128, 192, 255]
const octet = fc.constantFrom(...OCTETS)
const ipv4 = fc.tuple(fc.constantFrom(5, 81), octet, octet, octet).map((o) => o.join('.'))
const ipv6 = fc
  .tuple(fc.constantFrom('2001', '2a00'), fc.constantFrom('0', '1', '8000', 'ffff'))
  .map(([a, b]) => `${a}:${b}::1`)
const mapped = ipv4.map((text) => `::ffff:${text}`)
const network = fc.oneof(
  fc.tuple(ipv4, fc.integer({ min: 1, max: 32 })).map(([a, bits]) => `${a}/${bits}`),
  fc.tuple(ipv6, fc.integer({ min: 1, max: 64 })).map(([a, bits]) => `${a}/${bits}`),
)
const place = fc.constantFrom<MmdbValue>(
  cityEntry('US', 'NA', ['CA']),
  cityEntry('US', 'NA', ['NY']),
  cityEntry('US', 'NA'),
  cityEntry('GB', 'EU', ['ENG', 'CAM']),
  cityEntry('GB', 'EU', ['ENG']),
  { country_code: 'IE' },
  { continent_code: 'EU' },
)
const asn = fc.constantFrom<MmdbValue>(
  { autonomous_system_number: 64500 },
  { autonomous_system_number: 64501 },
)
const code = fc.constantFrom(
  ...['GEO-EU', 'GEO-NA', 'US', 'IE', 'GB', 'US-CA', 'GB-ENG', 'GB-CAM', 'AS64500', 'NET-OFFICE'],
)
const POINTS = ['52.52,13.40', '40.71,-74.01', '35.68,139.69'].map((text) => scanPoint(text)!)
const netValues = fc
  .tuple(fc.option(code), fc.constantFrom(null, '52.00,13.00', '41.00,-74.00', '36.00,140.00'))
  .map((values) => values.filter((value) => value !== null))
  .filter((values) => values.length > 0)
const geoCase = fc.record({
  places: fc.dictionary(network, place, { minKeys: 1, maxKeys: 8 }),
  asns: fc.dictionary(network, asn, { minKeys: 1, maxKeys: 4 }),
  nets: fc.uniqueArray(fc.tuple(network, netValues), { maxLength: 4, selector: ([cidr]) => cidr }),
  codes: fc.uniqueArray(code),
  addresses: fc.array(fc.oneof(ipv4, ipv6, mapped), { minLength: 4, maxLength: 12 }),
})

/** What every source says of an address, read one by one: slow and obvious. */
function locate(
  databases: readonly Database[],
  nets: readonly Net[],
  bytes: Uint8Array,
  family: number,
): Location {
  const [address, kind] =
    family === 2 && isMapped(bytes) ? [bytes.slice(12), 1] : ([bytes, family] as const)
  const known = databases.map((database) => database.locate(address, kind))
  const placed = known.find((l) => l.country !== '' || l.continent !== '') ?? UNKNOWN_LOCATION
  const numbered = known.find((l) => l.asn !== 0) ?? UNKNOWN_LOCATION
  return new NetTable(nets).place(address, kind, { ...placed, asn: numbered.asn })
}

function scan(text: string): GeoCode {
  return scanGeoCode(text)!
}

/** Those of `codes` that match a client at `location`, in the order of the GEO ladder. */
function codesMatching(location: Location, codes: readonly GeoCode[]): GeoCode[] {
  const byText = new Map(codes.map((code) => [code.text, code]))
  return ladderOf(location).flatMap((text) => byText.get(text) ?? [])
}

/** Text of the nearest point; '' = the coordinates are unknown. */
function nearestOf({ coordinates }: Location): string {
  if (coordinates === undefined) return ''
  const [first] = POINTS.toSorted((a, b) => distanceKm(a, coordinates) - distanceKm(b, coordinates))
  return first!.text
}

/** The nearest point of a class; '' = no order. */
function nearestIn(trie: FlatClassTrie, clientClass: number): string {
  const { points, orders, orderOf } = trie.data.near!
  const order = orderOf[clientClass]!
  return order === NO_ORDER ? '' : points[orders[order * points.length]!]!
}

function texts(codes: readonly GeoCode[]): string {
  return codes.map(({ text }) => text).join()
}

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = bytes.slice()
  copy[bit >> 3] = copy[bit >> 3]! ^ (0x80 >> (bit & 7))
  return copy
}

/** Two networks that are the same prefix would make "the" net of an address ambiguous. */
function uniqueNets(pairs: readonly (readonly [string, readonly string[]])[]): Net[] {
  const byPrefix = new Map<string, Net>()
  for (const [cidr, values] of pairs) {
    const net = scanNet(cidr, ...values)
    if (typeof net === 'string') throw new Error(net)
    byPrefix.set(`${net.cidr.family}:${net.cidr.bytes.join('.')}/${net.cidr.bits}`, net)
  }
  return [...byPrefix.values()]
}

t.test('the class of an address has exactly the codes that match its location', async (t) => {
  fc.assert(
    fc.property(geoCase, ({ places, asns, nets: pairs, codes: given, addresses }) => {
      const databases = [openMmdb({ networks: places }), openMmdb({ networks: asns })]
      const nets = uniqueNets(pairs)
      const codes = given.map(scan)
      const trie = new FlatClassTrie(buildClasses({ databases, nets, codes, pointSets: [POINTS] }))
      for (const text of addresses) {
        const { bytes, family } = scanAddress(text)!
        const clientClass = trie.lookup(bytes, family, bytes.length * 8)
        const found = trie.codesOf[clientClass]!
        const location = locate(databases, nets, bytes, family)
        const wanted = codesMatching(location, codes)
        const nearest = nearestOf(location)
        if (nearestIn(trie, clientClass) !== nearest) {
          throw new Error(`${text}: ${nearestIn(trie, clientClass)} instead of ${nearest}`)
        }
        if (texts(found) !== texts(wanted)) {
          throw new Error(`${text}: ${texts(found)} instead of ${texts(wanted)}`)
        }
      }
    }),
    RUNS,
  )
  t.pass()
})

/** The class of the whole prefix of `depth` bits around `bytes`, or -1 if it is cut further. */
function classOfPrefix(trie: FlatClassTrie, bytes: Uint8Array, family: number, depth: number) {
  const found = trie.lookup(bytes, family, depth)
  return trie.depth <= depth ? found : -1
}

t.test('the scope is the widest prefix of one class', async (t) => {
  fc.assert(
    fc.property(geoCase, fc.nat(), ({ places, asns, nets: pairs, codes, addresses }, noise) => {
      const databases = [openMmdb({ networks: places }), openMmdb({ networks: asns })]
      const nets = uniqueNets(pairs)
      const input = { databases, nets, codes: codes.map(scan), pointSets: [POINTS] }
      const trie = new FlatClassTrie(buildClasses(input))
      for (const text of addresses) {
        const { bytes, family } = scanAddress(text)!
        const bits = bytes.length * 8
        const clientClass = trie.lookup(bytes, family, bits)
        const { depth } = trie
        for (let i = 0; i < 8 && depth < bits; i++) {
          const inside = flipped(bytes, depth + ((noise + i * 7) % (bits - depth)))
          if (trie.lookup(inside, family, bits) !== clientClass || trie.depth !== depth) {
            throw new Error(`${text}/${depth} holds more than one class`)
          }
        }
        if (depth === 0) continue
        const sibling = flipped(bytes, depth - 1)
        if (classOfPrefix(trie, sibling, family, depth) === clientClass) {
          throw new Error(`${text}/${depth} and its sibling could be one`)
        }
      }
    }),
    RUNS,
  )
  t.pass()
})

t.test('the worked cases', async (t) => {
  const databases = [
    openMmdb({
      networks: {
        '5.0.0.0/8': cityEntry('DE', 'EU'),
        '5.128.0.0/9': cityEntry('US', 'NA', ['CA']),
      },
    }),
  ]
  const nets = [
    scanNet('127.0.100.0/24', 'IE') as Net,
    scanNet('127.0.200.0/24', 'GEO-NA') as Net,
    scanNet('5.1.0.0/16', 'NET-OFFICE') as Net,
    scanNet('5.1.2.0/24', 'AS64500') as Net,
    scanNet('::ffff:9.9.9.0/120', 'JP') as Net,
  ]
  const build = (...codes: string[]) =>
    new FlatClassTrie(buildClasses({ databases, nets, codes: codes.map(scan) }))
  const table = [
    { codes: ['GEO-EU'], from: '5.1.2.3', want: 'GEO-EU', depth: 9 },
    { codes: ['GEO-EU', 'GEO-NA'], from: '5.128.0.1', want: 'GEO-NA', depth: 9 },
    { codes: ['DE', 'GEO-EU'], from: '5.127.0.1', want: 'DE,GEO-EU', depth: 9 },
    { codes: ['NET-OFFICE', 'GEO-EU'], from: '5.1.9.9', want: 'NET-OFFICE,GEO-EU', depth: 16 },
    { codes: ['NET-OFFICE', 'AS64500'], from: '5.1.2.9', want: 'NET-OFFICE,AS64500', depth: 24 },
    { codes: ['US-CA', 'US'], from: '5.200.0.1', want: 'US-CA,US', depth: 9 },
    { codes: ['US-NY'], from: '5.200.0.1', want: '', depth: 0 },
    { codes: ['IE', 'GEO-EU'], from: '127.0.100.1', want: 'IE,GEO-EU', depth: 24 },
    { codes: ['US', 'GEO-NA'], from: '127.0.200.1', want: 'GEO-NA', depth: 24 },
    { codes: ['JP'], from: '9.9.9.9', want: 'JP', depth: 24 },
    { codes: ['JP'], from: '::ffff:9.9.9.9', want: 'JP', depth: 120 },
    { codes: ['*'], from: '5.1.2.3', want: '', depth: 0 },
    { codes: [], from: '2001:db8::1', want: '', depth: 0 },
  ]
  for (const { codes, from, want, depth } of table) {
    const trie = build(...codes)
    const { bytes, family } = scanAddress(from)!
    const found = trie.lookup(bytes, family, 128)
    t.same([texts(trie.codesOf[found]!), trie.depth], [want, depth], `${from} by ${codes}`)
    if (want === '') t.equal(found, 0, 'unknown is class 0')
  }
})

t.test('a prefix that ends inside the trie counts as its lowest address', async (t) => {
  const databases = [
    openMmdb({ networks: { '5.0.0.0/9': { country_code: 'IE' }, '5.128.0.0/9': { asn: 1 } } }),
  ]
  const trie = new FlatClassTrie(buildClasses({ databases, nets: [], codes: [scan('IE')] }))
  const high = scanAddress('5.128.0.1')!.bytes
  t.equal(texts(trie.codesOf[trie.lookup(high, 1, 32)]!), '')
  t.equal(texts(trie.codesOf[trie.lookup(high, 1, 8)]!), 'IE', 'bits beyond the prefix are zero')
  t.equal(trie.depth, 9, 'the scope says what would have been needed')
})
