import { readFileSync } from 'node:fs'
import { type CityResponse, Reader } from 'maxmind'
import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { printAddress, scanAddress } from '../../../src/dns/text/address.ts'
import { readField } from '../../../src/geo/fields.ts'
import { Database } from '../../../src/geo/mmdb/database.ts'
import { bundledDatabasePath } from '../../../src/geo/mmdb/load.ts'
import { cityEntry, composeMmdb, type MmdbValue } from '../../support/mmdb.ts'

/* Compares our reader of MMDB files with that of the npm package maxmind, which is by others. */

interface Readers {
  readonly ours: Database
  readonly theirs: Reader<CityResponse>
}

/** Opens the same octets with both readers. */
function openBoth(bytes: Uint8Array): Readers {
  return {
    ours: new Database({ file: 'x.mmdb', bytes }),
    theirs: new Reader<CityResponse>(Buffer.from(bytes)),
  }
}

function checkMetadata(t: Test, { ours, theirs }: Readers): void {
  t.equal(ours.type, theirs.metadata.databaseType)
  t.equal(ours.builtSeconds, theirs.metadata.buildEpoch.getTime() / 1000)
  t.equal(ours.tree.nodeCount, theirs.metadata.nodeCount)
  t.equal(ours.tree.depthMax, theirs.metadata.treeDepth)
}

/** The value of each label, from an entry as the other reader decodes it. */
const FIELDS: Readonly<Record<string, (entry: CityResponse) => string | number | undefined>> = {
  'geoip/city/name': (entry) => entry.city?.names.en,
  'geoip/country/name': (entry) => entry.country?.names.en,
  'geoip/continent/name': (entry) => entry.continent?.names.en,
  'geoip/latitude': (entry) => entry.location?.latitude,
  'geoip/longitude': (entry) => entry.location?.longitude,
  'geoip/timezone': (entry) => entry.location?.time_zone,
  'geoip/postalcode': (entry) => entry.postal?.code,
}

/** Returns what the readers disagree about for an address, and whether ours has an entry for it. */
function compare({ ours, theirs }: Readers, address: string) {
  const { bytes, family } = scanAddress(address)!
  const entry = ours.tree.findEntry(bytes, family)
  const values = theirs.get(address)
  if (entry === -1 || values === null) {
    const isSame = entry === -1 && values === null
    return { isFound: false, differing: isSame ? [] : [`${address}: only one has an entry`] }
  }
  const differing: string[] = []
  const check = (label: string, got: string, want: unknown) => {
    if (got !== String(want ?? '')) differing.push(`${address} ${label}: ${got}, not ${want}`)
  }
  const country = 'country_code' in values ? values.country_code : ''
  check('country_code', ours.data.text(ours.data.find(entry, 'country_code')), country)
  for (const [label, read] of Object.entries(FIELDS)) {
    check(label, readField(ours.data, entry, label), read(values))
  }
  return { isFound: true, differing }
}

/** Returns random addresses: IPv4, and IPv6 in 2000::/4, which contains the networks in use. */
function randomAddresses(random: Random, count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const family = i % 2 === 0 ? 1 : 2
    const bytes = Uint8Array.from({ length: family === 1 ? 4 : 16 }, () => random.below(256))
    if (family === 2) bytes[0] = 0x20 + random.below(16)
    return printAddress(bytes, family)
  })
}

t.test('both find the same countries in the bundled database', async (t) => {
  const readers = openBoth(readFileSync(bundledDatabasePath()))
  checkMetadata(t, readers)
  const results = randomAddresses(new Random(11), 20_000).map((text) => compare(readers, text))
  t.strictSame(
    results.flatMap(({ differing }) => differing),
    [],
  )
  const found = results.filter(({ isFound }) => isFound).length
  t.ok(found > 5_000, `${found} addresses have a country`)
})

/** Networks of random lengths, each with an entry of a City database. */
function randomNetworks(random: Random, count: number): Record<string, MmdbValue> {
  const networks: Record<string, MmdbValue> = {}
  for (const address of randomAddresses(random, count)) {
    const { bytes, family } = scanAddress(address)!
    const bits = 4 + random.below(family === 1 ? 29 : 125)
    // A network has zeros behind its prefix.
    const masked = bytes.map((octet, i) => {
      const kept = Math.max(0, Math.min(8, bits - i * 8))
      return octet & (0xff << (8 - kept))
    })
    const letters = String.fromCharCode(65 + random.below(26), 65 + random.below(26))
    networks[`${printAddress(masked, family)}/${bits}`] = cityEntry(`Ü${letters}`, letters, ['A'])
  }
  return networks
}

t.test('both find the same values in generated databases', async (t) => {
  for (const recordBits of [24, 28, 32] as const) {
    const random = new Random(recordBits)
    const networks = randomNetworks(random, 300)
    const readers = openBoth(composeMmdb({ recordBits, networks }))
    checkMetadata(t, readers)
    const inNetworks = Object.keys(networks).map((cidr) => cidr.slice(0, cidr.indexOf('/')))
    const addresses = [...inNetworks, ...randomAddresses(random, 2_000)]
    const results = addresses.map((text) => compare(readers, text))
    t.strictSame(
      results.flatMap(({ differing }) => differing),
      [],
      `records of ${recordBits} bits`,
    )
    const found = results.filter(({ isFound }) => isFound).length
    t.ok(found >= 300, `${found} addresses have an entry`)
  }
})
