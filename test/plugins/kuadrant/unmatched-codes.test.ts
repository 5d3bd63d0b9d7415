import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { FlatClassTrie } from '../../../src/geo/class-trie.ts'
import { buildClasses } from '../../../src/geo/classes/build-classes.ts'
import { UNKNOWN_LOCATION } from '../../../src/geo/location.ts'
import { LOCATOR, type Locator } from '../../../src/geo/locator.ts'
import { MmdbLocator } from '../../../src/geo/mmdb-locator.ts'
import { type Net, scanNet } from '../../../src/geo/net.ts'
import { runJobInline } from '../../../src/geo/worker/run-job.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { cityEntry, composeMmdb, type MmdbContent } from '../../support/mmdb.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

/** How often files are checked. */
const POLL_MS = 5000

/** A locator whose nets are replaced, as by a new database. */
class ChangingLocator implements Locator {
  #nets: readonly Net[] = []
  #listener = (): void => {}

  constructor(...codes: readonly string[]) {
    this.replace(...codes)
  }

  /** From now on, each code has a network of its own. */
  replace(...codes: readonly string[]): void {
    this.#nets = codes.map((code, i) => scanNet(`10.${i}.0.0/16`, code) as Net)
    this.#listener()
  }

  locate() {
    return UNKNOWN_LOCATION
  }
  field() {
    return ''
  }
  async classify(codes: Parameters<Locator['classify']>[0]) {
    return new FlatClassTrie(buildClasses({ databases: [], nets: this.#nets, codes }))
  }
  onChange(callback: () => void) {
    this.#listener = callback
    return () => {}
  }
}

function manifest(...codes: readonly string[]): string {
  const endpoints = ['*', ...codes].map(
    (code, i) => `
  - dnsName: a.k.example.com
    recordType: A
    setIdentifier: s${i}
    targets: [192.0.2.${i + 1}]
    providerSpecific:
    - name: geo-code
      value: "${code}"`,
  )
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: a
spec:
  rootHost: a.k.example.com
  endpoints:${endpoints.join('')}
`
}

async function stage(t: Test, locator: Locator | undefined, ...codes: readonly string[]) {
  const directory = t.testdir({ 'a.yaml': manifest(...codes) })
  const zones = ['k.example.com.']
  const c = new SetUp(kuadrant, `kuadrant {\n manifests ${directory}\n}`, zones)
  if (locator !== undefined) c.block.shared.provide(LOCATOR, locator)
  t.teardown(() => c.stop())
  await c.start()
  const note = () => c.problemText()
  const lines = () => c.lines.filter((line) => line.includes('geo code'))
  const write = (...codes: readonly string[]) => {
    writeFileSync(join(directory, 'a.yaml'), manifest(...codes))
  }
  return { note, lines, write }
}

t.test('codes that match no client are logged, and on the ready page until they do', async (t) => {
  const locator = new ChangingLocator('IE', 'FR')
  const { note, lines, write } = await stage(t, locator, 'IE', 'FR')
  t.strictSame([lines(), note()], [[], ''])
  write('IE', 'US-CA')
  await until(() => note() !== '', 'a note')
  t.match(note(), /^geo codes that match no client: US-CA; /)
  t.match(lines(), [/^\[WARNING\] plugin\/kuadrant: geo codes that match no client: US-CA; /])
  write('IE', 'FR')
  await until(() => note() === '', 'no note')
})

t.test('a database of another kind leaves all clients to the default endpoints', async (t) => {
  const locator = new ChangingLocator('IE', 'FR')
  const { note, lines } = await stage(t, locator, 'IE', 'FR')
  locator.replace('AS64500')
  await until(() => note() !== '', 'a note')
  t.match(note(), /: FR, IE: all clients get the default endpoints; /)
  t.equal(lines().length, 1)
  locator.replace('FR', 'IE')
  await until(() => note() === '', 'no note')
  t.match(lines()[1], /all geo codes match clients again/)
})

t.test('a country database is replaced by one of another kind', async (t) => {
  const path = join(t.testdir(), 'geo.mmdb')
  const put = (content: MmdbContent): void => {
    writeFileSync(`${path}.new`, composeMmdb(content))
    renameSync(`${path}.new`, path)
  }
  const COUNTRY = {
    networks: { '5.0.0.0/8': cityEntry('IE', 'EU'), '6.0.0.0/8': cityEntry('FR', 'EU') },
  }
  put(COUNTRY)
  const timers = new FakeTimers()
  const reloads: string[] = []
  const locator = new MmdbLocator({
    ...{ resources: new ResourceRegistry(), paths: [path], nets: [], timers, runJob: runJobInline },
    onReload: (_, fault) => reloads.push(fault?.message ?? 'new'),
    onLoad: () => {},
  })
  await locator.open()
  t.teardown(() => locator.close())
  const { note, lines } = await stage(t, locator, 'IE', 'FR')
  t.strictSame([lines(), note()], [[], ''])
  put({ networks: { '5.0.0.0/16': { autonomous_system_number: 64500 } } })
  await timers.advance(POLL_MS)
  await until(() => note() !== '', 'a note')
  t.strictSame(reloads, ['new'])
  t.match(
    note(),
    /^geo codes that match no client: FR, IE: all clients get the default endpoints; /,
  )
  t.match(lines(), [/^\[WARNING\] plugin\/kuadrant: geo codes that match no client: FR, IE: all /])
  put(COUNTRY)
  await timers.advance(POLL_MS)
  await until(() => note() === '', 'no note')
  t.match(lines()[1], /all geo codes match clients again/)
})

t.test('without geoip, geo codes have no effect', async (t) => {
  const { note, lines } = await stage(t, undefined, 'IE')
  t.match(lines(), [/geo codes that match no client: IE: the server block has no geoip/])
  t.match(note(), /: IE: the server block has no geoip; add it$/)
})
