import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { freePort } from '../../support/free-port.ts'
import { recordManifest } from '../../support/manifest.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const OWNER = 'kuadrant-active-groups.k.example.com'
const groups = (text: string): string => {
  const endpoints = [{ dnsName: OWNER, recordType: 'TXT', targets: [`version=1;groups=${text}`] }]
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'groups' },
    spec: { rootHost: OWNER, endpoints },
  })
}

t.test('a passive site has no endpoints in service', async (t) => {
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1'),
    'groups.json': groups('g1'),
  })
  const options = `manifests ${directory}\n site dublin\n group g2 127.0.0.1:${await freePort()}`
  const setUp = new SetUp(kuadrant, `kuadrant {\n ${options}\n}`, ['k.example.com.'])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const note = (): string => setUp.readiness[0]!.note?.() ?? ''
  const labels = `{source="${directory}",zone="k.example.com."}`
  const metric = () => setUp.metric(`sextant_kuadrant_drained${labels}`)
  const drain = `site:dublin zone:k.example.com by ${OWNER}.: group g2 is not active`
  t.match(note(), `drained: ${drain}; health and drains are ignored`)
  t.equal(await metric(), 1, 'at the first answer')
  t.match(setUp.lines.join('\n'), /INFO.*active groups of k\.example\.com\.: g1/)
  const path = join(directory, 'groups.json')
  writeFileSync(`${path}.new`, groups('g1&&g2'))
  renameSync(`${path}.new`, path)
  await until(async () => note() === '' && (await metric()) === 0, 'the site to be active')
})

t.test('a site with an unknown state is active', async (t) => {
  const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
  const options = `manifests ${directory}\n site dublin\n group g2 127.0.0.1:${await freePort()}`
  const setUp = new SetUp(kuadrant, `kuadrant {\n ${options}\n}`, ['k.example.com.'])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const want =
    /^active groups of k\.example\.com\.: 127\.0\.0\.1:\d+: .*; the group counts as active$/
  await until(() => want.test(setUp.problemText()), 'the fault')
})

t.test('blocks with other records of the zone share the lookup', async (t) => {
  const text = Buffer.from('version=1;groups=g1')
  const server = await ScriptedServer.open(t, ({ question }) => {
    const rdata = Buffer.concat([Buffer.from([text.length]), text])
    const { TXT } = RRType
    return [{ owner: question!.name, type: TXT, rrclass: RRClass.IN, ttlSeconds: 60, rdata }]
  })
  const directories = t.testdir({
    a: { 'a.yaml': recordManifest('a', '192.0.2.1') },
    b: { 'b.yaml': recordManifest('b', '192.0.2.2') },
  })
  const setUps = ['a', 'b'].map((name) => {
    const options = `manifests ${join(directories, name)}\n site dublin\n group g2 ${server.address}`
    return new SetUp(kuadrant, `kuadrant {\n ${options}\n}`, ['k.example.com.'])
  })
  for (const setUp of setUps) {
    await setUp.start()
    t.teardown(() => setUp.stop())
    t.match(setUp.readiness[0]!.note?.(), /^drained: site:dublin zone:k\.example\.com /)
  }
  t.equal(server.asked.length, 1)
  const lines = setUps.flatMap((setUp) => setUp.lines)
  for (const event of ['active groups of', 'drain begins:']) {
    t.equal(lines.filter((line) => line.includes(event)).length, 1, event)
  }
})

for (const [name, options, want] of [
  ['twice', 'manifests a\n site x\n group a\n group b', /group appears twice/],
  ['too long', 'manifests a\n site x\n group abcdefghijklmnopq', /up to 16 characters/],
  ['an invalid name', 'manifests a\n site x\n group a&b', /is not a name of up to 16 characters/],
  ['no name', 'manifests a\n site x\n group', /Wrong argument count/],
  ['a name of a server', 'manifests a\n site x\n group a ns1.example.org', /not an address/],
  ['no site', 'manifests a\n group a', /group needs `site NAME`/],
  ['a cluster', 'site x\n group a', /group needs manifests/],
] as const) {
  t.test(`refused: ${name}`, async (t) => {
    t.throws(() => new SetUp(kuadrant, `kuadrant {\n ${options}\n}`), { message: want })
  })
}
