import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { Random } from '../../../src/base/random.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { verifyEntries, verifyTree } from '../../../src/geo/classes/verify.ts'
import { GEOIP_LABELS, readField } from '../../../src/geo/fields.ts'
import { Database } from '../../../src/geo/mmdb/database.ts'
import { bundledDatabasePath, loadFileSync } from '../../../src/geo/mmdb/load.ts'
import { cityEntry, composeMmdb, type MmdbContent, openMmdb, shared } from '../../support/mmdb.ts'

const CITY: MmdbContent = {
  networks: {
    '81.2.69.0/24': cityEntry('GB', 'EU', ['ENG', 'CAM']),
    '5.9.0.0/16': cityEntry('DE', 'EU'),
    '5.9.64.0/18': cityEntry('FR', 'EU'),
    '2001:db8::/32': cityEntry('US', 'NA', ['CA']),
  },
}

function locate(database: Database, text: string) {
  const address = scanAddress(text)!
  const { net: _net, ...location } = database.locate(address.bytes, address.family)
  return location
}

const NOWHERE = { asn: 0, subdivisions: [], country: '', continent: '' }

t.test('a City database is read with records of every width', async (t) => {
  for (const recordBits of [24, 28, 32] as const) {
    const database = openMmdb({ ...CITY, recordBits })
    const at = { asn: 0, coordinates: { latitude: 52.2242, longitude: -0.1315 } }
    const gb = { ...at, subdivisions: ['GB-ENG', 'GB-CAM'], country: 'GB', continent: 'EU' }
    const us = { ...at, subdivisions: ['US-CA'], country: 'US', continent: 'NA' }
    t.same(locate(database, '81.2.69.7'), gb, `${recordBits}: subdivisions, widest first`)
    t.match(locate(database, '5.9.1.1'), { country: 'DE' }, `${recordBits}: the wider network`)
    t.match(locate(database, '5.9.64.1'), { country: 'FR' }, `${recordBits}: the longer prefix`)
    t.same(locate(database, '2001:db8::1'), us, `${recordBits}: IPv6`)
    t.same(locate(database, '10.0.0.1'), NOWHERE, `${recordBits}: unknown`)
    t.same(locate(database, '2001:db9::1'), NOWHERE, `${recordBits}: unknown IPv6`)
    verifyEntries(database)
  }
})

t.test('a database of IPv4 alone knows no IPv6 address', async (t) => {
  const database = openMmdb({ ipVersion: 4, networks: { '5.9.0.0/16': { country_code: 'DE' } } })
  t.match(locate(database, '5.9.1.1'), { country: 'DE', continent: 'EU' })
  t.same(locate(database, '509::'), NOWHERE)
  verifyEntries(database)
})

t.test('each schema gives the place that it holds', async (t) => {
  const table = [
    { name: 'Country', entry: { country: { iso_code: 'IE' } }, want: ['IE', 'EU', 0] },
    { name: 'flat country', entry: { country_code: 'ie' }, want: ['IE', 'EU', 0] },
    { name: 'flat plain names', entry: { country: 'US', continent: 'NA' }, want: ['US', 'NA', 0] },
    { name: 'a continent alone', entry: { continent: { code: 'AS' } }, want: ['', 'AS', 0] },
    { name: "the database's continent", entry: { country_code: 'TR', continent_code: 'EU' } },
    { name: 'ASN', entry: { autonomous_system_number: 64500 }, want: ['', '', 64500] },
    { name: 'ASN beyond 24 bits', entry: { autonomous_system_number: 4200000000 } },
    {
      name: 'a flat ASN',
      entry: { asn: 'AS15169', country_code: 'US' },
      want: ['US', 'NA', 15169],
    },
    // As CoreDNS's own fixtures have it.
    { name: 'uint64', entry: { autonomous_system_number: 12_345n }, want: ['', '', 12_345] },
    {
      name: 'an ASN beyond 32 bits',
      entry: { autonomous_system_number: 2n ** 100n, country_code: 'US' },
      want: ['US', 'NA', 0],
    },
    { name: 'a flat ASN as a number', entry: { asn: 7 }, want: ['', '', 7] },
    { name: 'an unknown country', entry: { country_code: 'ZZ', asn: 7 }, want: ['', '', 7] },
  ]
  for (const { name, entry, want } of table) {
    const found = locate(openMmdb({ networks: { '192.0.2.0/24': entry } }), '192.0.2.1')
    const asked = want ?? (name.startsWith('ASN') ? ['', '', 4200000000] : ['TR', 'EU', 0])
    t.same([found.country, found.continent, found.asn], asked, name)
  }
})

t.test('a state counts as a subdivision if it is a code', async (t) => {
  const table = [
    { state: 'CA', want: ['US-CA'] },
    { state: 'US-CA', want: ['US-CA'] },
    { state: 'California', want: [] },
    { state: '', want: [] },
  ]
  for (const { state, want } of table) {
    const database = openMmdb({ networks: { '192.0.2.0/24': { country_code: 'US', state } } })
    t.same(locate(database, '192.0.2.1').subdivisions, want, state)
  }
})

t.test('fields are read for metadata', async (t) => {
  const database = openMmdb(CITY)
  const entry = database.findEntry(scanAddress('81.2.69.7')!.bytes, 1)
  const read = (label: string) => readField(database.data, entry, label)
  t.equal(read('geoip/city/name'), 'City in GB')
  t.equal(read('geoip/latitude'), '52.2242')
  t.equal(read('geoip/longitude'), '-0.1315')
  t.equal(read('geoip/nothing'), '')
  t.equal(database.findEntry(scanAddress('10.0.0.1')!.bytes, 1), -1)
})

t.test('a database without places is refused', async (t) => {
  const database = openMmdb({ type: 'Names', networks: { '192.0.2.0/24': { owner: 'me' } } })
  t.throws(() => verifyTree(database), {
    message: /Names.*no known fields/,
  })
})

t.test('the bundled database is sound and knows the addresses of the examples', async (t) => {
  const file = bundledDatabasePath()
  const database = new Database(loadFileSync(file).image)
  verifyTree(database)
  const table = [
    { given: '81.2.69.1', country: 'GB', continent: 'EU' },
    { given: '5.9.0.1', country: 'DE', continent: 'EU' },
    { given: '8.8.8.8', country: 'US', continent: 'NA' },
    { given: '1.0.16.1', country: 'JP', continent: 'AS' },
    { given: '2001:4860:4860::8888', country: 'US', continent: 'NA' },
    { given: '127.0.0.1', country: '', continent: '' },
    { given: '192.168.1.1', country: '', continent: '' },
    { given: 'fd00::1', country: '', continent: '' },
  ]
  for (const { given, country, continent } of table) {
    t.match(locate(database, given), { country, continent }, given)
  }
})

/** Does everything that can be done with a file; true if it was accepted. */
function exercise(bytes: Uint8Array): boolean {
  try {
    const database = new Database({ file: 'test.mmdb', bytes })
    verifyTree(database)
    for (const text of ['81.2.69.7', '5.9.64.1', '2001:db8::1', '255.1.2.3', '::']) {
      const { bytes: address, family } = scanAddress(text)!
      database.locate(address, family)
      const entry = database.findEntry(address, family)
      if (entry === -1) continue
      for (const label of GEOIP_LABELS) readField(database.data, entry, label)
    }
    verifyEntries(database)
    return true
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return false
  }
}

t.test('a file truncated at any octet is refused with an InputError', async (t) => {
  for (const recordBits of [24, 28, 32] as const) {
    const whole = composeMmdb({ ...CITY, recordBits })
    t.equal(exercise(whole), true)
    let accepted = 0
    for (let octets = 0; octets < whole.length; octets++) {
      if (exercise(shared(whole.subarray(0, octets)))) accepted++
    }
    t.equal(accepted, 0, `${recordBits} bits`)
  }
})

t.test('no flipped octet makes it crash or hang', async (t) => {
  const random = new Random(7)
  for (const recordBits of [24, 28, 32] as const) {
    const whole = composeMmdb({ ...CITY, recordBits })
    let refused = 0
    for (let at = 0; at < whole.length; at++) {
      const copy = shared(whole)
      copy[at] = copy[at]! ^ (1 + random.below(255))
      if (!exercise(copy)) refused++
    }
    t.ok(refused > whole.length / 20, `${recordBits} bits: ${refused} were noticed`)
  }
})

t.test('a search tree in a loop is refused', async (t) => {
  const bytes = composeMmdb({
    recordBits: 24,
    networks: { '192.0.2.0/24': { country_code: 'IE' } },
  })
  bytes.set([0, 0, 0, 0, 0, 0], 0)
  const database = new Database({ file: 'loop.mmdb', bytes })
  t.throws(() => verifyTree(database), { message: /loop.mmdb is corrupt.*deeper than an address/ })
  t.throws(() => database.locate(new Uint8Array(16), 2), /^loop\.mmdb is corrupt/)
})

t.test('metadata that cannot be is refused with what is wrong', async (t) => {
  const whole = composeMmdb(CITY)
  const change = (key: string, value: number): Uint8Array => {
    const copy = shared(whole)
    // Behind the key: the control octet of an integer, then its last octet.
    const at = Buffer.from(copy.buffer).lastIndexOf(key) + key.length
    copy[at + (copy[at]! & 0x1f)] = value
    return copy
  }
  const table = [
    { key: 'binary_format_major_version', value: 3, want: /format version 3; only version 2/ },
    { key: 'ip_version', value: 5, want: /unknown IP version 5/ },
    { key: 'record_size', value: 20, want: /records of 20 bits; only 24, 28 and 32/ },
    { key: 'node_count', value: 0, want: /node count 0 is invalid/ },
  ]
  for (const { key, value, want } of table) {
    const open = () => new Database({ file: 'x.mmdb', bytes: change(key, value) })
    t.throws(open, { message: want }, key)
  }
})

t.test('an invalid database is refused by name', async (t) => {
  const table = [
    { name: 'nothing', given: new Uint8Array(0) },
    { name: 'text', given: Buffer.from('not a database at all') },
    { name: 'a marker alone', given: Buffer.from('\u00ab\u00cd\u00efMaxMind.com', 'latin1') },
    {
      name: 'a huge array',
      given: Buffer.from('\u00ab\u00cd\u00efMaxMind.com\x1f\x04\xff\xff\xff', 'latin1'),
    },
  ]
  for (const { name, given } of table) {
    t.throws(
      () => new Database({ file: 'x.mmdb', bytes: shared(given) }),
      { message: /^x\.mmdb / },
      name,
    )
  }
})
