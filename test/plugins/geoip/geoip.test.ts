import { renameSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Query } from '../../../src/dns/message/query.ts'
import { printAddress, scanAddress } from '../../../src/dns/text/address.ts'
import { LOCATOR } from '../../../src/geo/locator.ts'
import { Database } from '../../../src/geo/mmdb/database.ts'
import { bundledDatabasePath, loadFileSync } from '../../../src/geo/mmdb/load.ts'
import type { MmdbLocator } from '../../../src/geo/mmdb-locator.ts'
import { runJobInline } from '../../../src/geo/worker/run-job.ts'
import { warnOfAge } from '../../../src/plugins/geoip/age.ts'
import { geoip, geoipWith } from '../../../src/plugins/geoip/setup.ts'
import { log } from '../../../src/plugins/log/setup.ts'
import { view } from '../../../src/plugins/view/setup.ts'
import { cityEntry, composeMmdb } from '../../support/mmdb.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { answering, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const DAY_MS = 86_400_000
const quiet = () => geoipWith(runJobInline)

function setSubnet(query: Query, address: string, bits: number): void {
  const { bytes, family } = scanAddress(address)!
  query.ecsAddress.set(bytes)
  query.ecsFamily = family
  query.ecsSourceBits = bits
}

t.test('the client is the ECS address with edns-subnet, else the peer', async (t) => {
  const table = [
    { name: 'no option', block: '{\n edns-subnet\n}', want: '198.51.100.7/32 peer' },
    {
      name: 'an option',
      block: '{\n edns-subnet\n}',
      subnet: '81.2.69.0',
      bits: 24,
      want: '81.2.69.0/24 ecs',
    },
    {
      name: 'an IPv6 option',
      block: '{\n edns-subnet\n}',
      subnet: '2001:db8::',
      bits: 32,
      want: '2001:db8::/32 ecs',
    },
    {
      name: 'a prefix of no bits',
      block: '{\n edns-subnet\n}',
      subnet: '0.0.0.0',
      bits: 0,
      want: '198.51.100.7/32 peer',
    },
    {
      name: 'without edns-subnet',
      block: '',
      subnet: '81.2.69.0',
      bits: 24,
      want: '198.51.100.7/32 peer',
    },
  ]
  for (const { name, block, subnet, bits, want } of table) {
    const setUp = new SetUp(quiet(), `geoip ${block}`)
    const tx = transaction({ name: 'a.example.org.', from: '198.51.100.7' })
    if (subnet !== undefined) setSubnet(tx.query, subnet, bits!)
    let seen = ''
    await setUp
      .handler(
        answering(({ query }) => {
          const address = printAddress(query.clientAddress, query.clientFamily as 1 | 2)
          seen = `${address}/${query.clientBits} ${query.clientIsEcs ? 'ecs' : 'peer'}`
          return 0
        }),
      )
      .serve(tx)
    t.equal(seen, want, name)
  }
})

t.test('an invalid geoip block is refused with its place', async (t) => {
  const table = [
    {
      given: 'geoip {\n languages en\n}',
      want: 'Corefile:2 - Error during parsing: unknown property "languages"',
    },
    {
      given: 'geoip {\n edns-subnet yes\n}',
      want: "Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'yes'",
    },
    {
      given: 'geoip {\n net 192.0.2.0/24\n}',
      want: "Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after '192.0.2.0/24'",
    },
    {
      given: 'geoip {\n net 192.0.2.0 IE\n}',
      want: "Corefile:2 - Error during parsing: invalid network '192.0.2.0': write it as 192.0.2.0/24",
    },
    {
      given: 'geoip a.mmdb\ngeoip b.mmdb',
      want: 'Corefile:2 - Error during parsing: configuring multiple databases is not supported',
    },
    {
      given: 'geoip {\n net 192.0.2.0/24 IE\n net 192.0.2.9/24 US\n}',
      want: 'Corefile:3 - Error during parsing: net 192.0.2.9/24 is already IE: remove IE or US',
    },
    {
      given: 'geoip {\n net 192.0.2.0/24 NET-A DE FR\n}',
      want: 'Corefile:2 - Error during parsing: net 192.0.2.0/24 is already DE: remove DE or FR',
    },
    {
      given: 'geoip {\n net 192.0.2.0/24 1,2\n net 192.0.2.0/24 NET-A\n net 192.0.2.0/24 1,3\n}',
      want: 'Corefile:4 - Error during parsing: net 192.0.2.0/24 is already at 1.00,2.00: remove 1.00,2.00 or 1.00,3.00',
    },
    {
      given: 'geoip {\n net 192.0.2.0/24 91,2\n}',
      want: "Corefile:2 - Error during parsing: invalid coordinates '91,2': write latitude and longitude in degrees, as 52.52,13.40",
    },
    {
      given: 'geoip {\n net 192.0.2.0/24 52.52, 13.40\n}',
      want: "Corefile:2 - Error during parsing: invalid coordinates '52.52,': write latitude and longitude in degrees, as 52.52,13.40",
    },
  ]
  for (const { given, want } of table) t.equal(setupError(geoip, given), want, given)
  t.match(
    setupError(geoip, 'geoip {\n net 192.0.2.0/24 EU\n}'),
    /^Corefile:2 .*invalid geo code 'EU'/,
  )
})

t.test('a missing database stops the start and fails the check, with its place', async (t) => {
  const setUp = new SetUp(quiet(), 'geoip GeoLite2-City-demo.mmdb {\n edns-subnet\n}')
  const want =
    /^Corefile:1 - Error during parsing: failed to open database file: .*GeoLite2-City-demo\.mmdb cannot be read: ENOENT/
  await t.rejects(setUp.start(), { message: want, position: { file: 'Corefile', line: 1 } })
  const found = (await setUp.check()).faults
  t.equal(found.length, 1)
  t.match(
    found[0],
    /Corefile:1.*failed to open database file: .*GeoLite2-City-demo\.mmdb cannot be read: ENOENT/,
  )
})

t.test('a database that can no longer be used is on the ready page until it can', async (t) => {
  const file = join(t.testdir(), 'city.mmdb')
  const networks = { '81.2.69.0/24': cityEntry('GB', 'EU') }
  const good = composeMmdb({ networks, builtSeconds: 1_700_000_000 })
  writeFileSync(file, good)
  const { mtime } = statSync(file)
  const timers = new FakeTimers()
  const setUp = new SetUp(geoipWith(runJobInline), `geoip ${file}`, undefined, { timers })
  await setUp.start()
  t.teardown(() => setUp.stop())
  const note = () => setUp.problemText()
  const becomes = (want: RegExp) =>
    until(async () => {
      await timers.advance(5000)
      return want.test(note())
    }, `the note to be like ${want}`)
  t.equal(note(), '')
  const metric = (name: string) => setUp.metric(`sextant_geoip_${name}{file="${file}"}`)
  const BUILT = 'database_build_timestamp_seconds'
  t.equal(await metric(BUILT), 1_700_000_000)
  t.equal(await metric('reload_failures_total'), 0)
  writeFileSync(file, 'no database')
  await becomes(/^keeping the old version of .*city\.mmdb: .* is not a MaxMind DB/)
  t.strictSame(setUp.readiness, [], 'queries are answered as before')
  t.equal(await metric('reload_failures_total'), 1)
  t.equal(await metric(BUILT), 1_700_000_000, 'that of the version in use')
  writeFileSync(file, good)
  utimesSync(file, mtime, mtime)
  await becomes(/^$/)
})

t.test('each version of an old database is reported once, by one of its blocks', async (t) => {
  const file = join(t.testdir(), 'city.mmdb')
  const builtSeconds = 1_700_000_000
  // In one step, so that no poll meets half a file.
  const write = (seconds: number) => {
    const networks = { '81.2.69.0/24': cityEntry('GB', 'EU') }
    writeFileSync(`${file}.new`, composeMmdb({ networks, builtSeconds: seconds }))
    renameSync(`${file}.new`, file)
  }
  write(builtSeconds)
  const timers = new FakeTimers()
  const directive = geoipWith(runJobInline)
  const open = async (days: number) => {
    const setUp = new SetUp(directive, `geoip ${file}`, undefined, { timers })
    setUp.clock.nowMs = builtSeconds * 1000 + days * DAY_MS
    await setUp.start()
    return setUp
  }
  const young = await open(90)
  t.strictSame(young.lines, [], '90 days are not old')
  await young.stop()

  const blocks = [await open(91), await open(92)]
  t.teardown(() => Promise.all(blocks.map((block) => block.stop())))
  const lines = () => blocks.flatMap((block) => block.lines)
  t.strictSame(lines(), [
    `[WARNING] plugin/geoip: old location database: ${file}, built 91 days ago (limit 90): replace the file with a newer version`,
  ])

  const reloads = async (count: number) => {
    const reloaded = () => lines().filter((line) => line.includes('Reloaded')).length
    await until(async () => {
      await timers.advance(5000)
      return reloaded() === 2 * count
    }, 'both blocks to use the new version')
    return lines().filter((line) => line.includes('old location database')).length
  }
  write(builtSeconds - 1)
  t.equal(await reloads(1), 2, 'another old version')
  write(builtSeconds + 86_400 * 30)
  t.equal(await reloads(2), 2, 'a newer version')
  write(0)
  t.equal(await reloads(3), 2, 'a version without a time')
})

t.test('the bundled database may be one year old', async (t) => {
  const path = bundledDatabasePath()
  const { builtSeconds } = new Database(loadFileSync(path).image)
  const warnAfter = (days: number) =>
    warnOfAge(path, builtSeconds, builtSeconds * 1000 + days * DAY_MS)
  t.equal(warnAfter(365), '', 'a user cannot replace it by itself')
  t.match(
    warnAfter(366),
    /^old location database: .*, built 366 days ago \(limit 365\): update Sextant, or name a newer /,
  )
})

t.test('check prints the age of each database', async (t) => {
  const file = join(t.testdir(), 'city.mmdb')
  const networks = { '81.2.69.0/24': cityEntry('GB', 'EU') }
  writeFileSync(file, composeMmdb({ networks, builtSeconds: 1_700_000_000 }))
  for (const line of ['geoip', `geoip ${file}`]) {
    const setUp = new SetUp(geoip, line)
    const path = line === 'geoip' ? bundledDatabasePath() : file
    const { type, builtSeconds } = new Database(loadFileSync(path).image)
    setUp.clock.nowMs = builtSeconds * 1000 + 100 * DAY_MS
    const read: string[] = []
    t.strictSame(await setUp.check((what) => read.push(what)), { faults: [], warnings: [] })
    t.strictSame(read, [`${path}: ${type}, built 100 days ago`])
  }
})

t.test('databases are found from root, and give their labels', async (t) => {
  const dir = t.testdir()
  const content = { networks: { '81.2.69.0/24': cityEntry('GB', 'EU', ['ENG']) } }
  writeFileSync(join(dir, 'city.mmdb'), composeMmdb(content))
  const setUp = new SetUp(quiet(), 'geoip city.mmdb {\n edns-subnet\n}')
  // `root` runs before geoip; the helper has no root directive, so the path is given whole.
  await t.rejects(setUp.start())
  const found = new SetUp(quiet(), `geoip ${join(dir, 'city.mmdb')} {\n edns-subnet\n}`)
  found.block.metadata.isEnabled = true
  found.block.metadata.read.add('geoip/city/name')
  await found.start()
  t.teardown(() => found.stop())
  t.strictSame(await found.check(), { faults: [], warnings: [] })
  const tx = transaction({ name: 'a.example.org.', from: '198.51.100.7' })
  const city = found.block.metadata.find('geoip/city/name')!
  t.equal(city(tx), '', 'the peer is unknown')
  setSubnet(tx.query, '81.2.69.0', 24)
  t.equal(city(tx), 'City in GB', 'before the chain ran')
  const client = printAddress(tx.query.clientAddress, 1)
  t.equal(client, '198.51.100.7', 'and the client is left to the block that will serve')
  t.equal(found.block.metadata.locatesSubnet, true)
  found.block.metadata.isEnabled = false
  t.equal(found.block.metadata.find('geoip/city/name'), undefined)
})

t.test('the database stays in memory only where a directive reads its labels', async (t) => {
  const file = join(t.testdir(), 'city.mmdb')
  writeFileSync(file, composeMmdb({ networks: { '81.2.69.0/24': cityEntry('GB', 'EU') } }))
  const table = [
    { name: 'nothing', directive: log, given: 'log', want: 0 },
    { name: 'other labels', directive: log, given: 'log . "{/log/type}"', want: 0 },
    { name: 'a log format', directive: log, given: 'log . "{/geoip/city/name}"', want: 1 },
    { name: 'no metadata', directive: log, given: 'log . "{/geoip/asn/org}"', off: true, want: 0 },
    {
      name: 'a view',
      directive: view,
      given: `view v {\n expr metadata('geoip/country/code') == 'GB'\n}`,
      want: 1,
    },
    {
      name: 'a view that computes a label',
      directive: view,
      given: `view v {\n expr metadata(name()) == 'GB'\n}`,
      want: 1,
    },
    {
      name: 'a view of something else',
      directive: view,
      given: `view v {\n expr true\n}`,
      want: 0,
    },
  ]
  for (const { name, directive, given, off, want } of table) {
    const reader = new SetUp(directive, given)
    const setUp = new SetUp(quiet(), `geoip ${file}`)
    setUp.block.metadata.isEnabled = off !== true
    for (const label of reader.block.metadata.read) setUp.block.metadata.read.add(label)
    await setUp.start()
    t.equal((setUp.block.shared.find(LOCATOR) as MmdbLocator).images.length, want, name)
    await setUp.stop()
  }
})
