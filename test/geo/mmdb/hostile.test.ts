import { renameSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { coverageOf } from '../../../src/geo/classes/coverage.ts'
import { verifyEntries } from '../../../src/geo/classes/verify.ts'
import { scanGeoCode } from '../../../src/geo/code.ts'
import { Database } from '../../../src/geo/mmdb/database.ts'
import { MmdbLocator } from '../../../src/geo/mmdb-locator.ts'
import { type JobRunner, runJobInline, runJobInThread } from '../../../src/geo/worker/run-job.ts'
import { cityEntry, composeMmdb, type MmdbValue, openMmdb } from '../../support/mmdb.ts'
import { FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

// Long: it reads thousands of damaged databases.

const text = (value: string): number[] => [0x40 | value.length, ...Buffer.from(value)]

/** Pairs of the map that all entries of `composeShared` share. */
const PAIRS = 4000
/** As the header of a map has it. */
const PAIRS_CODED = PAIRS - 285

/**
 * Composes a database of IPv4 with an entry for each prefix of that length. All entries share one large map as their
 * country, so that a small file holds many values.
 */
function composeShared(bits: number): Uint8Array {
  const nodeCount = 2 ** bits - 1
  const data = text('country')
  const map = data.length
  data.push(0xfe, PAIRS_CODED >> 8, PAIRS_CODED & 0xff)
  for (let i = 1; i < PAIRS; i++) data.push(0x40, 0xa0)
  data.push(...text('iso_code'), ...text('IE'))
  const first = data.length
  const tree = Buffer.alloc(nodeCount * 8)
  for (let child = 1; child <= nodeCount * 2; child++) {
    const leaf = child - nodeCount
    const record = leaf < 0 ? child : nodeCount + 16 + first + leaf * 5
    tree.writeUInt32BE(record, (child - 1) * 4)
    if (leaf >= 0) data.push(0xe1, 0x20, 0, 0x20 | (map >> 8), map & 0xff)
  }
  const metadata = [
    ...[0xe4, 0x5b, ...Buffer.from('binary_format_major_version'), 0xa1, 2],
    ...[...text('record_size'), 0xa1, 32, ...text('ip_version'), 0xa1, 4],
    ...[...text('node_count'), 0xc4, 0, 0, nodeCount >> 8, nodeCount & 0xff],
  ]
  const marker = [0xab, 0xcd, 0xef, ...Buffer.from('MaxMind.com')]
  return Buffer.concat([
    tree,
    new Uint8Array(16),
    Uint8Array.from([...data, ...marker, ...metadata]),
  ])
}

function locate(locator: MmdbLocator, address: string): string {
  const { bytes, family } = scanAddress(address)!
  return locator.locate(bytes, family).country
}

t.test('entries that share one large map are refused in a bounded time', async (t) => {
  // 65 536 entries of 4000 pairs: some 10^9 values in a file of less than 1 MB.
  const bytes = composeShared(15)
  t.ok(bytes.length < 1_000_000)
  const open = () => new Database({ file: 'x.mmdb', bytes })
  const want = { name: 'InputError', message: /^x\.mmdb is corrupt: .*too many entries that share/ }
  t.throws(() => verifyEntries(open()), want, 'at a reload')
  t.throws(() => coverageOf([open()], []), want, 'in a check')
  const file = join(t.testdir(), 'x.mmdb')
  writeFileSync(file, bytes)
  const { locator } = createLocator(file, runJobInline)
  t.teardown(() => locator.close())
  await locator.open()
  const codes = [scanGeoCode('IE')!]
  const points = [[{ text: '53,-6', latitude: 53, longitude: -6 }]]
  const classify = locator.classify(codes, points)
  await t.rejects(classify, { name: 'InputError', message: /too many entries/ }, 'with coordinates')
  await t.resolves(locator.classify(codes), 'codes are read once from what entries share')
})

t.test('metadata can not break what prints it', async (t) => {
  const networks = { '192.0.2.0/24': { country_code: 'IE' } }
  const lying = openMmdb({
    type: `Evil\u001b[31m\n\u202e${'x'.repeat(3000)}`,
    builtSeconds: 2 ** 50,
    networks,
  })
  t.match(lying.type, /^Evil\\x1b\[31m\\x0a\\u202ex+$/)
  t.equal(lying.type.length, 64)
  t.equal(lying.builtSeconds, 0, 'a time that no calendar has is unknown')
  const last = openMmdb({ builtSeconds: 253_402_300_799, networks })
  t.equal(new Date(last.builtSeconds * 1000).toISOString(), '9999-12-31T23:59:59.000Z')
})

t.test('values that are no codes and no coordinates are unknown', async (t) => {
  const place = (latitude: MmdbValue, longitude: MmdbValue): MmdbValue => ({
    country: { iso_code: 'IE' },
    location: { latitude, longitude },
  })
  const locateIn = (entry: MmdbValue) => {
    const { bytes, family } = scanAddress('192.0.2.1')!
    return openMmdb({ networks: { '192.0.2.0/24': entry } }).locate(bytes, family)
  }
  for (const [latitude, longitude] of [
    [Number.NaN, 1],
    [1, Number.POSITIVE_INFINITY],
    [Number.NEGATIVE_INFINITY, 1],
    [90.001, 1],
    [1, -180.001],
    ['', 1],
    [' ', 1],
    ['north', 1],
    [2n ** 100n, 1],
    [{ degrees: 1 }, 1],
    [1, [1]],
  ] as const) {
    const found = locateIn(place(latitude, longitude))
    t.equal(found.coordinates, undefined, `${latitude},${longitude}`)
    t.equal(found.country, 'IE')
  }
  for (const code of ['I\0', 'IE\n', 'IE'.repeat(5000), '\u0130E', '<b>', ['IE'], 7, true]) {
    const found = locateIn({ country_code: code, state: code, continent_code: code, asn: code })
    t.match(
      found,
      { country: '', continent: '', subdivisions: [] },
      JSON.stringify(code).slice(0, 9),
    )
  }
})

function createLocator(path: string, runJob: JobRunner) {
  const timers = new FakeTimers()
  const reports: string[] = []
  const locator = new MmdbLocator({
    resources: new ResourceRegistry(),
    paths: [path],
    nets: [],
    timers,
    runJob,
    onReload: (_path, fault) => reports.push(fault?.message ?? 'good'),
    onLoad: () => {},
  })
  return { locator, timers, reports }
}

t.test('each invalid new version is one error, and the last valid one is used', async (t) => {
  const path = join(t.testdir(), 'geo.mmdb')
  let seconds = 1_700_000_000
  const write = (octets: Uint8Array): void => {
    seconds++
    writeFileSync(`${path}.new`, octets)
    utimesSync(`${path}.new`, seconds, seconds)
    renameSync(`${path}.new`, path)
  }
  const good = composeMmdb({ networks: { '192.0.2.0/24': cityEntry('IE', 'EU') } })
  const changed = (change: (copy: Buffer) => void): Uint8Array => {
    const copy = Buffer.from(good)
    change(copy)
    return copy
  }
  write(good)
  const { locator, timers, reports } = createLocator(path, runJobInThread)
  t.teardown(() => locator.close())
  await locator.open({ readsEntries: true })
  const entry = Buffer.from(good).indexOf('country')
  const table = [
    { name: 'nothing', octets: new Uint8Array(0), want: /is not a MaxMind DB/ },
    { name: 'a half', octets: good.subarray(0, good.length >> 1), want: /no metadata found/ },
    { name: 'a loop', octets: changed((copy) => copy.fill(0, 0, 6)), want: /deeper than an/ },
    {
      name: 'an unknown type',
      octets: changed((copy) => copy.set([0, 5], entry - 1)),
      want: /unknown type 12/,
    },
    { name: 'shared values', octets: composeShared(15), want: /too many entries that share/ },
  ]
  for (const { name, octets, want } of table) {
    reports.length = 0
    write(octets)
    await until(async () => {
      await timers.advance(5_000)
      return reports.length > 0
    }, `the report of ${name}`)
    await timers.advance(20_000)
    t.equal(reports.length, 1, name)
    t.match(reports[0], want, name)
    t.equal(locate(locator, '192.0.2.1'), 'IE', name)
  }
})
