import t from 'tap'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { needs, run } from '../support/peer.ts'
import { Gateways } from './gateway-objects.ts'
import { ServedCluster, ZONE } from './served-cluster.ts'
import {
  ENDPOINT_API,
  GATEWAY_API,
  installDnsEndpoint,
  installGatewayApi,
} from './source-definitions.ts'

const KINDS = ['dnsendpoint', 'gateway', 'service']

t.setTimeout(CLUSTER_TEST_MS)

t.test('objects of other kinds are served, and followed', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  for (const name of ['infra', 'team']) await cluster.createNamespace(name)
  const properties = `sources ${KINDS.join(' ')}`
  const site = await ServedCluster.start(t, cluster.kubeconfig('viewer'), { properties })
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
    const { port } = site.server
    const args = ['@127.0.0.1', '-p', `${port}`, '+short', `any.apps.${ZONE}`, 'A']
    t.equal((await run('dig', args)).stdout, '192.0.2.1\n')
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
    await createService(cluster, 'rival', `shop.${ZONE}`, '192.0.2.9')
    await site.server.prints(
      /192\.0\.2\.4 \(infra\/Gateway:shop:shop\.k\.example\.com\) and 192\.0\.2\.9 \(infra\/Service:rival:/,
    )
    await site.sees('shop', '192.0.2.4')
    await cluster.must('DELETE', `${GATEWAY_API}/namespaces/infra/gateways/shop`)
    await site.sees('shop', '192.0.2.9')
  })

  await t.test('DNSEndpoints', async () => {
    const dnsName = `plain.${ZONE}`
    await cluster.must('POST', `${ENDPOINT_API}/namespaces/team/dnsendpoints`, {
      apiVersion: 'externaldns.k8s.io/v1alpha1',
      kind: 'DNSEndpoint',
      metadata: { name: 'plain' },
      spec: { endpoints: [{ dnsName, recordType: 'A', targets: ['192.0.2.20'] }] },
    })
    await site.sees('plain', '192.0.2.20')
  })
})

/** Creates a Service of a load balancer with this address. */
async function createService(
  cluster: Cluster,
  name: string,
  host: string,
  ip: string,
): Promise<void> {
  const path = '/api/v1/namespaces/infra/services'
  const annotations = { 'external-dns.kubernetes.io/hostname': host }
  await cluster.must('POST', path, {
    metadata: { name, annotations },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  })
  const status = { loadBalancer: { ingress: [{ ip }] } }
  await cluster.must('PATCH', `${path}/${name}/status`, { status })
}

/** The rights of the server for a kind, for the user that it is here. */
function rightsOf(kind: string): Manifest[] {
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'viewer' }]
  return composeManifests(`deploy/server-sources/${kind}`).map((manifest) => {
    return manifest.kind === 'ClusterRole' ? manifest : { ...manifest, subjects }
  })
}
