import t from 'tap'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { cityEntry, composeMmdb } from '../support/mmdb.ts'
import { needs, run } from '../support/peer.ts'
import { freePort, runSextant } from '../support/server.ts'
import { until } from '../support/until.ts'
import { AddressedObject, DNSENDPOINT, INGRESS, SERVICE } from './addressed-objects.ts'
import { Gateways } from './gateway-objects.ts'
import { SEEN_MS, ServedCluster, ZONE } from './served-cluster.ts'
import { GATEWAY_API, installDnsEndpoint, installGatewayApi } from './source-definitions.ts'

const KINDS = ['dnsendpoint', 'gateway', 'service', 'ingress']

t.setTimeout(CLUSTER_TEST_MS)

t.test('objects of other kinds are served, and followed', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  for (const name of ['infra', 'team']) await cluster.createNamespace(name)
  const admin = await freePort()
  const site = await ServedCluster.start(t, cluster.kubeconfig('viewer'), {
    properties: `sources ${KINDS.join(' ')}`,
    directives: `admin 127.0.0.1:${admin}\n    geoip places.mmdb {\n edns-subnet\n }`,
    files: { 'places.mmdb': PLACES },
  })
  const { port } = site.server
  const dig = async (...question: string[]): Promise<string[]> => {
    const args = ['@127.0.0.1', '-p', `${port}`, '+short', ...question]
    return (await run('dig', args)).stdout.trim().split('\n')
  }
  const gateways = new Gateways(cluster)

  await t.test('rights and definitions that come later', async (t) => {
    await site.server.prints(/gateways in all namespaces: 403 /)
    const { status, text } = await site.ready()
    t.equal(status, 503)
    t.match(text, /records are not read yet/)
    await applyAll(cluster, KINDS.flatMap(rightsOf))
    await site.says(/^OK\n(.*\n)*.*is the CustomResourceDefinition \S+ installed\?/)
    await installGatewayApi(cluster)
    await installDnsEndpoint(cluster)
    await site.says(/^OK$/)
  })

  await t.test('a Gateway, its route and its addresses', needs('dig'), async (t) => {
    await gateways.create('infra', 'shop', [{ name: 'all', port: 80, protocol: 'HTTP' }])
    await gateways.route('team', 'shop', [`shop.${ZONE}`, `*.apps.${ZONE}`, 'shop.example.net'])
    await gateways.accept('infra', 'shop', ['192.0.2.1'])
    await gateways.acceptRoute('team', 'shop', 'True')
    await site.sees('shop', '192.0.2.1')
    t.strictSame(await dig(`any.apps.${ZONE}`), ['192.0.2.1'])
    await site.server.prints(
      /no zone is served for Gateway infra\/shop \(shop\.example\.net\): ignored/,
    )
  })

  await t.test('changes, and last good records', async (t) => {
    await gateways.accept('infra', 'shop', ['192.0.2.2', '192.0.2.3'])
    await site.sees('shop', '192.0.2.2 192.0.2.3')
    await gateways.accept('infra', 'shop', [])
    await site.server.prints(
      /Gateway infra\/shop: status\.addresses: .* has no address yet; its last/,
    )
    t.equal(await site.ask('shop'), '192.0.2.2 192.0.2.3')
    t.match((await site.ready()).text, /Gateway infra\/shop: status\.addresses/)
    t.equal(await site.metric('sextant_kuadrant_records', 'state="refused"'), 1)
    await gateways.gatewayStatus('infra', 'shop', 'False', ['192.0.2.4'])
    await site.server.prints(/Gateway infra\/shop: status\.conditions: the Gateway is not accepted/)
    t.equal(await site.ask('shop'), '192.0.2.2 192.0.2.3')
    await gateways.accept('infra', 'shop', ['192.0.2.4'])
    await site.sees('shop', '192.0.2.4')
    await gateways.annotate('httproutes', 'team', 'shop', { 'sextant.io/weight': 'much' })
    await site.server.prints(/HTTPRoute team\/shop: metadata\.annotations\.sextant\.io\/weight: /)
    t.equal(await site.ask('shop'), '192.0.2.4')
    await gateways.annotate('httproutes', 'team', 'shop', { 'sextant.io/weight': null })
    await gateways.acceptRoute('team', 'shop', 'False')
    await site.sees('shop', 'NXDOMAIN')
    await gateways.acceptRoute('team', 'shop', 'True')
    await site.sees('shop', '192.0.2.4')
  })

  await t.test('two objects with one host: the oldest is served', async () => {
    const rival = new AddressedObject(cluster, SERVICE, 'rival', 'shop')
    await rival.create()
    await rival.setAddress('192.0.2.9')
    await site.server.prints(
      /192\.0\.2\.4 \(infra\/Gateway:shop:shop\.k\.example\.com\) and 192\.0\.2\.9 \(infra\/Service:rival:/,
    )
    await site.sees('shop', '192.0.2.4')
    await cluster.must('DELETE', `${GATEWAY_API}/namespaces/infra/gateways/shop`)
    await site.sees('shop', '192.0.2.9')
  })

  for (const sample of [SERVICE, INGRESS, DNSENDPOINT]) {
    await t.test(`${sample.kind}: last good records`, needs('dig'), async (t) => {
      const name = sample.kind.toLowerCase()
      const shown = (text: string) => new RegExp(`${sample.kind} infra/${name}: .*${text}`)
      const object = new AddressedObject(cluster, sample, name)
      await object.create()
      if (sample.subresource !== '') await site.server.prints(shown('has no address yet'))
      t.equal(await site.ask(name), 'NXDOMAIN')
      await object.setAddress('192.0.2.20')
      await site.sees(name, '192.0.2.20')
      await object.annotate({ 'sextant.io/weight': 'much' })
      await site.server.prints(shown('sextant\\.io/weight: .*much'))
      await object.setAddress('192.0.2.21')
      // The report shows that the server has read the address too.
      await object.annotate({ 'sextant.io/weight': 'more' })
      const fault = shown('sextant\\.io/weight: .*more')
      await site.server.prints(fault)
      t.match((await site.ready()).text, fault)
      const status = await runSextant('.', ['status', `@127.0.0.1:${admin}`])
      t.match(status.stdout, fault)
      t.strictSame(await dig(`${name}.${ZONE}`), ['192.0.2.20'])
      await object.annotate({ 'sextant.io/weight': null })
      await site.sees(name, '192.0.2.21')
    })
  }

  await t.test('weights and places of a DNSEndpoint', needs('dig'), async (t) => {
    const object = new AddressedObject(cluster, DNSENDPOINT, 'steered')
    await object.create({ endpoints: steered(['100', '0']) })
    const host = `steered.${ZONE}`
    const ask = async () => [await dig(host, EUROPE), await dig(host, AMERICA)].join(' ')
    const becomes = (want: string) =>
      until(async () => (await ask()) === want, `${host} to be ${want}`, SEEN_MS)
    await becomes('192.0.2.31 192.0.2.33')
    await object.patch({ spec: { endpoints: steered(['0', '100']) } })
    await becomes('192.0.2.32 192.0.2.33')
    t.strictSame(await dig(`mail.${ZONE}`, 'MX'), [`10 steered.${ZONE}.`])
  })
})

const EUROPE = '+subnet=198.51.100.0/24'
const AMERICA = '+subnet=203.0.113.0/24'
const PLACES = composeMmdb({
  networks: { '198.51.100.0/24': cityEntry('IE', 'EU'), '203.0.113.0/24': cityEntry('US', 'NA') },
})

/** Two endpoints in Europe with these weights, one in America, and a record of another type. */
function steered(weights: readonly [string, string]): object[] {
  const endpoint = (setIdentifier: string, address: string, code: string, weight: string) => ({
    dnsName: `steered.${ZONE}`,
    recordType: 'A',
    targets: [address],
    setIdentifier,
    providerSpecific: [
      { name: 'geo-code', value: code },
      { name: 'aws/weight', value: weight },
    ],
  })
  return [
    endpoint('dublin', '192.0.2.31', 'GEO-EU', weights[0]),
    endpoint('milan', '192.0.2.32', 'GEO-EU', weights[1]),
    endpoint('boston', '192.0.2.33', 'GEO-NA', '1'),
    { dnsName: `mail.${ZONE}`, recordType: 'MX', targets: [`10 steered.${ZONE}`] },
  ]
}

/** The rights of the server for a kind, for the user that it is here. */
function rightsOf(kind: string): Manifest[] {
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'viewer' }]
  return composeManifests(`deploy/server-sources/${kind}`).map((manifest) => {
    return manifest.kind === 'ClusterRole' ? manifest : { ...manifest, subjects }
  })
}
