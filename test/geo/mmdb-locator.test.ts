import {
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { ResourceRegistry } from '../../src/base/resource-registry.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { type GeoCode, scanGeoCode } from '../../src/geo/code.ts'
import { bundledDatabasePath, OpenFile } from '../../src/geo/mmdb/load.ts'
import { MmdbLocator } from '../../src/geo/mmdb-locator.ts'
import { type Net, scanNet } from '../../src/geo/net.ts'
import type { GeoJobMessage } from '../../src/geo/worker/job.ts'
import { type JobRunner, runJobInline, runJobInThread } from '../../src/geo/worker/run-job.ts'
import { cityEntry, composeMmdb, type MmdbContent } from '../support/mmdb.ts'
import { FakeTimers } from '../support/setup.ts'
import { until } from '../support/until.ts'

const POLL_MS = 5_000

let writes = 0

/** In one step: a concurrent poll finds the version before, or this one. */
function write(path: string, octets: Uint8Array): void {
  const fresh = `${path}.fresh`
  writeFileSync(fresh, octets)
  // Each version has a time of its own, however fast the test is.
  writes++
  utimesSync(fresh, 1_700_000_000 + writes, 1_700_000_000 + writes)
  renameSync(fresh, path)
}

const resources = new ResourceRegistry()

function createLocator(
  paths: readonly string[],
  nets: readonly string[] = [],
  runJob: JobRunner = runJobInline,
) {
  const timers = new FakeTimers()
  const reloads: string[] = []
  const locator = new MmdbLocator({
    resources,
    paths,
    nets: nets.map((line) => scanNet(...(line.split(' ') as [string, ...string[]])) as Net),
    timers,
    runJob,
    onReload: (_path, fault) => reloads.push(fault?.message ?? 'good'),
    onLoad: () => {},
  })
  return { locator, timers, reloads }
}

function locate(locator: MmdbLocator, text: string) {
  const { bytes, family } = scanAddress(text)!
  return locator.locate(bytes, family)
}

function field(locator: MmdbLocator, text: string, label: string): string {
  const { bytes, family } = scanAddress(text)!
  return locator.field(bytes, family, label)
}

/** What a block asks that reads metadata. */
const ENTRIES = { readsEntries: true }

const CITY: MmdbContent = { networks: { '5.0.0.0/8': cityEntry('DE', 'EU', ['BE']) } }
const ASN: MmdbContent = {
  networks: {
    '5.0.0.0/16': {
      autonomous_system_number: 64500,
      autonomous_system_organization: 'Example Ltd',
    },
  },
}

t.test(
  'entries of a database in use are read without a job, and only while they are wanted',
  async (t) => {
    const path = join(t.testdir(), 'city.mmdb')
    write(path, composeMmdb(CITY))
    let jobs = 0
    const { locator } = createLocator([path], [], (job) => {
      jobs++
      return runJobInline(job)
    })
    await locator.open()
    t.teardown(() => locator.close())
    jobs = 0
    const end = await locator.readEntries()
    t.equal(jobs, 0)
    t.equal(locate(locator, '5.9.0.1').country, 'DE')
    t.match(locator.evidence(scanAddress('5.9.0.1')!.bytes, 1), [{ prefixBits: 8 }])
    t.ok(locator.images[0]!.bytes.buffer instanceof SharedArrayBuffer)
    end()
    t.equal(locate(locator, '5.9.0.1').country, '')

    const reading = locator.readEntries()
    ;(await reading)()
    t.strictSame(locator.images, [], 'nothing is kept for a user that has ended')

    write(path, composeMmdb({ networks: { '5.0.0.0/8': cityEntry('FR', 'EU', []) } }))
    await locator.readEntries()
    t.equal(jobs, 1, 'a new version is verified')
    t.equal(locate(locator, '5.9.0.1').country, 'FR')
  },
)

t.test('a City and an ASN database complete each other, nets come above both', async (t) => {
  const dir = t.testdir()
  write(join(dir, 'city.mmdb'), composeMmdb(CITY))
  write(join(dir, 'asn.mmdb'), composeMmdb(ASN))
  const paths = [join(dir, 'city.mmdb'), join(dir, 'asn.mmdb')]
  const nets = ['5.0.1.0/24 IE NET-OFFICE', '5.0.0.0/16 GEO-NA', '5.9.8.0/24 48.86,2.35']
  const { locator } = createLocator(paths, nets)
  await locator.open(ENTRIES)
  t.teardown(() => locator.close())
  t.same(locate(locator, '5.9.0.1'), {
    ...{ net: '', asn: 0, subdivisions: ['DE-BE'], country: 'DE', continent: 'EU' },
    coordinates: { latitude: 52.2242, longitude: -0.1315 },
  })
  t.match(locate(locator, '5.0.1.1'), {
    net: 'NET-OFFICE',
    asn: 64500,
    country: 'IE',
    continent: 'EU',
  })
  t.match(locate(locator, '5.0.2.1'), { net: '', asn: 64500, country: '', continent: 'NA' })
  t.match(locate(locator, '::ffff:5.0.1.1'), { net: 'NET-OFFICE', country: 'IE' }, 'IPv4-mapped')
  const table = [
    { label: 'geoip/city/name', want: 'City in DE' },
    { label: 'geoip/country/code', want: 'DE' },
    { label: 'geoip/country/name', want: 'Country DE' },
    { label: 'geoip/continent/code', want: 'EU' },
    { label: 'geoip/continent/name', want: 'Continent EU' },
    { label: 'geoip/subdivisions/code', want: 'BE' },
    { label: 'geoip/latitude', want: '52.2242' },
    { label: 'geoip/timezone', want: 'Europe/London' },
    { label: 'geoip/postalcode', want: 'CB4' },
    { label: 'geoip/asn/number', want: '' },
  ]
  for (const { label, want } of table) t.equal(field(locator, '5.9.0.1', label), want, label)
  const moved = {
    ...{ net: '', asn: 0, subdivisions: ['DE-BE'], country: 'DE', continent: 'EU' },
    coordinates: { latitude: 48.86, longitude: 2.35 },
  }
  t.same(locate(locator, '5.9.8.1'), moved, 'a net with coordinates keeps the codes')
  t.equal(field(locator, '5.9.8.1', 'geoip/latitude'), '48.86')
  t.equal(field(locator, '5.9.8.1', 'geoip/longitude'), '2.35')
  t.equal(field(locator, '5.9.8.1', 'geoip/city/name'), 'City in DE')
  t.equal(field(locator, '5.0.1.1', 'geoip/city/name'), '', "a moved client isn't in the old city")
  t.equal(field(locator, '5.0.1.1', 'geoip/asn/org'), 'Example Ltd')
  t.equal(field(locator, '5.0.1.1', 'geoip/asn/number'), '64500')
})

t.test('a changed file is taken into use, a corrupt one is not', async (t) => {
  const file = join(t.testdir(), 'city.mmdb')
  write(file, composeMmdb(CITY))
  const { locator, timers, reloads } = createLocator([file])
  await locator.open(ENTRIES)
  let changes = 0
  const stopFailing = locator.onChange(() => {
    throw new Error('a listener fails')
  })
  locator.onChange(() => changes++)
  // File reads take real time: turns the clock on until the reports are there.
  const poll = (count: number): Promise<void> =>
    until(async () => {
      await timers.advance(POLL_MS)
      return reloads.length >= count
    }, `report ${count}`)
  const pollInVain = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) {
      await timers.advance(POLL_MS)
      await stat(file).catch(() => undefined)
    }
  }
  await pollInVain()
  t.same(reloads, [], 'nothing changed')

  write(file, composeMmdb({ networks: { '5.0.0.0/8': cityEntry('FR', 'EU') } }))
  await poll(1)
  t.match(locate(locator, '5.9.0.1'), { country: 'FR' })
  t.same([reloads, changes], [['good', 'a listener fails'], 1], 'the others are notified')
  stopFailing()
  reloads.pop()

  write(file, composeMmdb(CITY).subarray(0, 500))
  await poll(2)
  t.match(locate(locator, '5.9.0.1'), { country: 'FR' }, 'the last good one stays')
  t.match(reloads[1], /city\.mmdb is not a MaxMind DB, or is truncated/)
  await pollInVain()
  t.equal(reloads.length, 2, 'notified once')
  t.match(locator.faults, [{ path: file, fault: { message: /is not a MaxMind DB/ } }])

  rmSync(file)
  await poll(3)
  t.match(reloads[2], /cannot be read: ENOENT/)
  t.match(locate(locator, '5.9.0.1'), { country: 'FR' }, 'also without the file')

  write(file, composeMmdb(CITY))
  await poll(4)
  t.match(locate(locator, '5.9.0.1'), { country: 'DE' }, 'until there is a better one')
  t.equal(changes, 2)
  t.same(locator.faults, [])
  locator.close()
  t.equal(timers.count, 0, 'nothing is polled any more')
})

t.test('two locators share a file, and part with it one by one', async (t) => {
  const file = join(t.testdir(), 'city.mmdb')
  write(file, composeMmdb(CITY))
  const first = createLocator([file])
  const second = createLocator([file], ['5.1.0.0/16 US'])
  await first.locator.open(ENTRIES)
  await second.locator.open(ENTRIES)
  t.same([first.timers.count, second.timers.count], [1, 0], 'one of them polls')
  t.match(locate(first.locator, '5.1.0.1'), { country: 'DE' })
  t.match(locate(second.locator, '5.1.0.1'), { country: 'US' }, 'nets are its own')
  write(file, composeMmdb({ networks: { '5.0.0.0/8': cityEntry('FR', 'EU') } }))
  const third = createLocator([file])
  await third.locator.open(ENTRIES)
  t.match(
    locate(first.locator, '5.9.0.1'),
    { country: 'FR' },
    'the next user of the file loads the change',
  )
  first.locator.close()
  second.locator.close()
  t.equal(first.timers.count, 1, 'one holder is left')
  third.locator.close()
  t.equal(first.timers.count, 0)
})

t.test('a file that cannot be opened names itself, and leaves nothing open', async (t) => {
  const dir = t.testdir({ 'bad.mmdb': 'no database' })
  write(join(dir, 'city.mmdb'), composeMmdb(CITY))
  const table = [
    {
      name: 'a missing file',
      file: 'GeoLite2-City-demo.mmdb',
      want: /demo\.mmdb cannot be read: ENOENT/,
    },
    { name: 'no database', file: 'bad.mmdb', want: /bad\.mmdb is not a MaxMind DB/ },
    { name: 'a folder', file: '.', want: /is not a regular file/ },
  ]
  for (const { name, file, want } of table) {
    const { locator, timers } = createLocator([join(dir, 'city.mmdb'), join(dir, file)])
    await t.rejects(locator.open(), { message: want }, name)
    t.equal(timers.count, 0)
  }
})

t.test('a job in a thread ends as it does in place', async (t) => {
  // What threads say: a job that none came up for is done in place, and ends as well.
  const said: string[] = []
  const listen = (worker: Worker): void => {
    worker.on('message', ({ kind }: GeoJobMessage) => said.push(kind))
  }
  process.on('worker', listen)
  t.teardown(() => process.off('worker', listen))
  const codes: GeoCode[] = ['GEO-EU', 'US'].map((text) => scanGeoCode(text)!)
  const dir = t.testdir()
  const [file, broken] = [join(dir, 'city.mmdb'), join(dir, 'broken.mmdb')]
  write(file, composeMmdb(CITY))
  write(broken, composeMmdb(CITY).subarray(0, 99))
  const [open, openBroken] = [new OpenFile(file), new OpenFile(broken)]
  t.teardown(() => {
    for (const one of [open, openBroken]) one.release()
  })
  const common = { nets: [], codes, pointSets: [] }
  const job = { kind: 'classify', sources: [open.source], ...common } as const
  t.same(await runJobInThread(job), await runJobInline(job))
  t.strictSame(said.splice(0), ['ready', 'done'])
  const verify = { kind: 'verify', isThorough: true, isKept: false } as const
  const failing = runJobInThread({ ...verify, source: openBroken.source })
  await t.rejects(failing, { message: /broken\.mmdb is / })
  t.strictSame(said, ['ready', 'failed'])
  const { source } = open
  const unkept = await runJobInline({ ...verify, source })
  t.strictSame(unkept, { builtSeconds: 1_700_000_000 }, 'nothing is kept unasked')
  const { image } = await runJobInThread({ ...verify, source, isKept: true })
  t.ok(image?.bytes.buffer instanceof SharedArrayBuffer, 'threads can share it')
  t.same(Buffer.from(image!.bytes), readFileSync(file))
})

/** The classes of `code` for 5.9.0.1: whether it is in one of its own. */
async function matches(locator: MmdbLocator, code: string): Promise<boolean> {
  const trie = await locator.classify([scanGeoCode(code) as GeoCode])
  return trie.lookup(scanAddress('5.9.0.1')!.bytes, 1, 32) !== 0
}

t.test('only a holder that reads entries has the content in memory', async (t) => {
  const file = join(t.testdir(), 'city.mmdb')
  write(file, composeMmdb(CITY))
  const [classes, entries] = [createLocator([file]), createLocator([file])]
  await classes.locator.open()
  t.same(classes.locator.images, [], 'classes need none of it')
  t.match(locate(classes.locator, '5.9.0.1'), { country: '' })
  t.equal(await matches(classes.locator, 'DE'), true)
  await entries.locator.open(ENTRIES)
  t.match(locate(entries.locator, '5.9.0.1'), { country: 'DE' })
  t.same(classes.reloads, [], 'nothing has changed for the other one')
  const [image] = entries.locator.images
  t.ok(image!.bytes.buffer instanceof SharedArrayBuffer)
  entries.locator.close()
  t.same(classes.locator.images, [], 'the last reader took it along')
  classes.locator.close()
})

t.test('a new code is built in from the last good version, whatever the path has', async (t) => {
  const dir = t.testdir()
  const file = join(dir, 'city.mmdb')
  const table: readonly { name: string; change: () => void; want: boolean }[] = [
    { name: 'the same file', change: () => {}, want: true },
    { name: 'it has vanished', change: () => rmSync(file), want: true },
    {
      name: 'another that is no database',
      change: () => write(file, Buffer.from('none')),
      want: true,
    },
    {
      name: 'another that was not verified yet',
      change: () => write(file, composeMmdb({ networks: { '5.0.0.0/8': cityEntry('FR', 'EU') } })),
      want: true,
    },
  ]
  for (const { name, change, want } of table) {
    write(file, composeMmdb(CITY))
    const { locator } = createLocator([file])
    await locator.open()
    change()
    t.equal(await matches(locator, 'DE'), want, name)
    locator.close()
  }
  write(file, composeMmdb(CITY))
  const { locator, timers, reloads } = createLocator([file])
  await locator.open()
  t.teardown(() => locator.close())
  // In place, which no reader of a file can be safe from: the version that was verified is gone.
  writeFileSync(file, composeMmdb({ networks: { '5.0.0.0/8': cityEntry('FR', 'EU') } }))
  await t.rejects(locator.classify([scanGeoCode('DE') as GeoCode]), {
    message: /city\.mmdb was overwritten while in use: write a new file and rename it/,
  })
  await until(async () => {
    await timers.advance(POLL_MS)
    return reloads.length > 0
  }, 'the new content to be adopted')
  t.same(reloads, ['good'])
  t.equal(await matches(locator, 'FR'), true)
})

t.test('no descriptor stays open, however holders come and go', async (t) => {
  const file = join(t.testdir(), 'city.mmdb')
  write(file, composeMmdb(CITY))
  const opened = () =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(file)
      } catch {
        return false
      }
    }).length
  const locators = Array.from({ length: 4 }, () => createLocator([file]).locator)
  await Promise.all(locators.map((one, i) => one.open({ readsEntries: i % 2 === 0 })))
  t.equal(opened(), 1, 'one version is open, once')
  const building = locators[0]!.classify([scanGeoCode('DE') as GeoCode])
  write(file, composeMmdb({ networks: { '5.0.0.0/8': cityEntry('FR', 'EU') } }))
  const late = createLocator([file]).locator
  await late.open()
  for (const one of [...locators, late]) one.close()
  t.ok((await building).classCount > 1, 'a job that is under way keeps its version')
  t.equal(opened(), 0)
})

t.test('the bundled database is opened by its path', async (t) => {
  const { locator } = createLocator([bundledDatabasePath()])
  await locator.open(ENTRIES)
  t.teardown(() => locator.close())
  t.match(locate(locator, '81.2.69.1'), { country: 'GB', continent: 'EU' })
  t.match(locate(locator, '192.168.1.1'), { country: '', continent: '' })
})
