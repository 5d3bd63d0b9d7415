import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { SetUp } from '../../support/setup.ts'
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
