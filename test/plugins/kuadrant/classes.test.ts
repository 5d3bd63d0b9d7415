import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { FlatClassTrie } from '../../../src/geo/class-trie.ts'
import { buildClasses } from '../../../src/geo/classes/build-classes.ts'
import { UNKNOWN_LOCATION } from '../../../src/geo/location.ts'
import { LOCATOR, type Locator } from '../../../src/geo/locator.ts'
import { type Net, scanNet } from '../../../src/geo/net.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { followerOf, SetUp } from '../../support/setup.ts'
import { show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

/** The client of the questions, 127.0.0.1, is in the United States. */
const NETS = [scanNet('127.0.0.0/8', 'US') as Net]

/** A locator whose classes are there when the test says so, or never. */
class SlowLocator implements Locator {
  readonly pending: (() => void)[] = []
  failure: Error | undefined

  locate() {
    return UNKNOWN_LOCATION
  }
  field() {
    return ''
  }
  async classify(codes: Parameters<Locator['classify']>[0]) {
    await new Promise<void>((resolve) => this.pending.push(resolve))
    if (this.failure !== undefined) throw this.failure
    return new FlatClassTrie(buildClasses({ databases: [], nets: NETS, codes }))
  }
  onChange() {
    return () => {}
  }
  async finish(): Promise<void> {
    await until(() => this.pending.length > 0, 'a rebuild')
    for (const resolve of this.pending.splice(0)) resolve()
  }
}

/** Clients of `code` get 192.0.2.`last`, all others 192.0.2.1. */
function manifest(code: string, last: number): string {
  const endpoint = (target: number, name: string, value: string, set: string): string => `
  - dnsName: a.k.example.com
    recordType: A
    setIdentifier: ${set}
    targets: [192.0.2.${target}]
    providerSpecific:
    - name: ${name}
      value: "${value}"`
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: a
spec:
  rootHost: a.k.example.com
  endpoints:${endpoint(1, 'geo-code', '*', 'rest')}${endpoint(last, 'geo-code', code, 'code')}
`
}

function stage(t: Test) {
  const directory = t.testdir({ 'a.yaml': manifest('GEO-NA', 2) })
  const corefile = `kuadrant {\n manifests ${directory}\n}`
  const c = new SetUp(kuadrant, corefile, ['k.example.com.'])
  const locator = new SlowLocator()
  c.block.shared.provide(LOCATOR, locator)
  t.teardown(() => c.stop())
  const follower = followerOf(c, kuadrant, corefile, ['k.example.com.'])
  const handlers = [c.handler(), follower.handler()]
  /** What the control thread and a data thread answer. */
  const ask = async (): Promise<string[]> => {
    const shown = handlers.map((handler) =>
      show(handler, transaction({ name: 'a.k.example.com.' })),
    )
    return (await Promise.all(shown)).map(({ answer }) => answer[0]?.split(' ')[4] ?? '')
  }
  const write = (code: string, last: number): void => {
    writeFileSync(join(directory, 'a.yaml'), manifest(code, last))
  }
  return { c, locator, ask, write }
}

t.test('a record whose codes are new is served once the classes know them', async (t) => {
  const { c, locator, ask, write } = stage(t)
  const started = c.start()
  await locator.finish()
  await started
  t.strictSame(await ask(), ['c0000202', 'c0000202'])
  write('US', 3)
  await until(() => locator.pending.length > 0, 'a rebuild')
  t.strictSame(await ask(), ['c0000202', 'c0000202'], 'the old version, whole')
  write('US', 4)
  await locator.finish()
  await until(async () => (await ask())[0] !== 'c0000202', 'a new version')
  await until(async () => (await ask())[0] === 'c0000204', 'the newest version')
  t.strictSame(await ask(), ['c0000204', 'c0000204'])
  locator.failure = new Error('corrupt')
  write('AS64500', 5)
  await locator.finish()
  await until(async () => (await ask())[0] === 'c0000201', 'the version that can be had')
  t.match(c.lines.join('\n'), 'GEO classes were not rebuilt: corrupt')
})

t.test('a start waits for its classes, and fails where they can not be had', async (t) => {
  const { c, locator } = stage(t)
  locator.failure = new InputError(undefined, 'geo.mmdb is corrupt')
  const started = t.rejects(c.start(), { message: 'geo.mmdb is corrupt' })
  await locator.finish()
  await started
})
