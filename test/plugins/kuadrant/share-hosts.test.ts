import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Dispenser } from '../../../src/corefile/dispenser.ts'
import { scanTokens } from '../../../src/corefile/lexer.ts'
import { findIdleRights } from '../../../src/plugins/kuadrant/namespace-rights.ts'
import { draftOptions, scanOptions } from '../../../src/plugins/kuadrant/options.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { askBlock } from '../ask-block.ts'

const ZONE = 'k.example.com'

/** `endpoints`: `name TYPE ttl target`. */
function manifest(namespace: string, host: string, created: string, endpoints: readonly string[]) {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', namespace, creationTimestamp: created },
    spec: {
      rootHost: host,
      endpoints: endpoints.map((text) => {
        const [dnsName, recordType, ttl, target] = text.split(' ')
        return { dnsName, recordType, recordTTL: Number(ttl), targets: [target] }
      }),
    },
  })
}

const GW = manifest('gw', `app.${ZONE}`, '2024-01-01T00:00:00Z', [`app.${ZONE} A 60 192.0.2.1`])
/** What the author of a record in another namespace tries. */
const EVIL = manifest('evil', ZONE, '2025-01-01T00:00:00Z', [
  `app.${ZONE} A 0 203.0.113.66`,
  `_acme-challenge.app.${ZONE} TXT 60 "token"`,
  `free.${ZONE} A 60 203.0.113.66`,
])

async function serve(t: Test, files: Record<string, string>, more = '') {
  const directory = t.testdir(files)
  const text = `kuadrant {\n manifests ${directory}\n ${more}\n}`
  const setUp = new SetUp(kuadrant, text, [`${ZONE}.`])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const ask = (name: string, type = 'A') => askBlock(setUp, `${name}.${ZONE}. ${type}`)
  return { setUp, ask, directory }
}

t.test('a record of another namespace adds nothing to a host', async (t) => {
  const { setUp, ask, directory } = await serve(t, { 'gw.yaml': GW, 'evil.yaml': EVIL })
  t.match(await ask('app'), /60.* 192\.0\.2\.1/)
  t.notMatch(await ask('app'), /203\.0\.113\.66/)
  t.notMatch(await ask('_acme-challenge.app', 'TXT'), /token/)
  t.match(await ask('free'), /203\.0\.113\.66/)
  const line =
    /WARNING.*DNSRecord evil\/app: app\.k\.example\.com, _acme-challenge\.app\.k\.example\.com: not served: namespace gw had app\.k\.example\.com first; to serve it, add `share-hosts app\.k\.example\.com evil` in kuadrant/
  t.match(setUp.lines.join('\n'), line)
  t.match(setUp.problemText(), /evil\/app.*share-hosts app\.k\.example\.com evil/)
  const { faults } = await setUp.check()
  t.match(
    faults.join('\n'),
    /evil\.yaml:1: DNSRecord evil\/app: .*`share-hosts app\.k\.example\.com evil`/,
  )
  writeFileSync(join(directory, 'gw.yaml'), GW.replaceAll('app.k', 'www.k'))
  await until(async () => /203\.0\.113\.66/.test(await ask('app')), 'the host to be free')
  t.notMatch(setUp.problemText(), /evil\/app/)
  writeFileSync(join(directory, 'gw.yaml'), GW)
  await until(async () => /192\.0\.2\.1/.test(await ask('app')), 'the older record to be back')
  t.notMatch(await ask('app'), /203\.0\.113\.66/)
})

for (const property of [
  `share-hosts app.${ZONE} evil`,
  'share-hosts . *',
  'allow-namespaces gw evil',
]) {
  t.test(`${property} allows it`, async (t) => {
    const { setUp, ask } = await serve(t, { 'gw.yaml': GW, 'evil.yaml': EVIL }, property)
    t.match(await ask('app'), /203\.0\.113\.66/)
    t.same((await setUp.check()).faults, [])
  })
}

t.test('a namespace that is not served has no hosts', async (t) => {
  const old = EVIL.replace('2025', '2020')
  const { ask } = await serve(t, { 'gw.yaml': GW, 'evil.yaml': old }, 'allow-namespaces gw')
  t.match(await ask('app'), /192\.0\.2\.1/)
  t.notMatch(await ask('app'), /203\.0\.113\.66/)
})

const ALL = 'no effect: namespaces of allow-namespaces share all hosts; remove this line'

for (const [name, more, want, zone = ZONE, watched = ''] of [
  ['a host of the zone', `share-hosts app.${ZONE} evil`, []],
  ['a host above the zone', 'share-hosts com evil', []],
  ['beside all hosts', 'share-hosts . a\nallow-namespaces a', [`share-hosts .: ${ALL}`]],
  [
    'a host outside of all zones',
    'share-hosts app.example.org evil',
    ['share-hosts app.example.org: no zone that is served from these records has the host; corr'],
  ],
  ['the zone of all hosts', 'share-hosts a.example.org evil', [], 'kdrnt'],
  ['read namespaces', 'allow-namespaces gw', [], ZONE, 'gw,app'],
  [
    'namespaces that are not read',
    'share-hosts . gw evil',
    ['share-hosts .: not in WATCH_NAMESPACES, so not read: evil; correct it'],
    ZONE,
    'gw,app',
  ],
  [
    'allowed namespaces that are not read',
    'allow-namespaces gw evil',
    ['allow-namespaces: not in WATCH_NAMESPACES, so not read: evil; correct it'],
    ZONE,
    'gw,app',
  ],
] as const) {
  t.test(`lines that have no effect: ${name}`, async (t) => {
    const c = new SetUp(kuadrant, 'kuadrant {\n manifests zones\n}', [`${zone}.`])
    const dispenser = new Dispenser(scanTokens(`kuadrant {\n ${more}\n}`, 'Corefile'))
    const parts = { dispenser, block: c.block, warn: () => {} }
    const options = scanOptions(parts, draftOptions(dispenser, watched))
    const found = [...findIdleRights(options, [options])]
    t.strictSame(
      found.map(({ position }) => position?.line),
      want.map(() => 2),
    )
    for (const [i, text] of want.entries()) t.ok(found[i]?.message.startsWith(text))
  })
}

t.test('lines that have no effect are reported at the start', async (t) => {
  const text = `kuadrant {\n manifests ${t.testdir({})}\n share-hosts example.net a\n}`
  const setUp = new SetUp(kuadrant, text, [`${ZONE}.`])
  setUp.handler()
  t.match(setUp.warnings, [/^3: share-hosts example\.net: no zone/])
  const bad = setupError(kuadrant, 'kuadrant {\n manifests a\n allow-namespaces gw *\n}')
  t.match(bad, 'allow-namespaces: "*" is not the name of a namespace')
})

t.test('a check warns of rights of namespaces and hosts without records', async (t) => {
  const directory = t.testdir({ 'gw.yaml': GW })
  const warnings = async (line: string): Promise<string> => {
    const text = `kuadrant {\n manifests ${directory}\n ${line}\n}`
    const { warnings } = await new SetUp(kuadrant, text, [`${ZONE}.`]).check()
    return warnings.filter((one) => one.includes('no record')).join()
  }
  t.equal(await warnings(`share-hosts app.${ZONE} gw`), '')
  t.equal(await warnings(`share-hosts ${ZONE} *`), '')
  t.equal(await warnings('allow-namespaces gw'), '')
  t.match(
    await warnings(`share-hosts x.app.${ZONE} *`),
    /^Corefile:3: share-hosts x\.app\.k\.example\.com: no record has this host or a name below it$/,
  )
  t.match(
    await warnings(`share-hosts . evil`),
    /^Corefile:3: share-hosts: no record is in namespace evil$/,
  )
  t.match(
    await warnings('allow-namespaces evil'),
    /^Corefile:3: allow-namespaces: no record is in namespace evil$/,
  )
})
