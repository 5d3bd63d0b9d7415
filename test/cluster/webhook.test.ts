import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsExternalDns } from '../support/cluster-binary.ts'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { freePort, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { Gateways } from './gateway-objects.ts'
import { SEEN_MS, ServedCluster, ZONE } from './served-cluster.ts'
import { ENDPOINT_API, installDnsEndpoint, installGatewayApi } from './source-definitions.ts'
import {
  grantRights,
  isSettled,
  NAMESPACE,
  recordsOf,
  startExternalDns,
  startWebhook,
} from './webhook-site.ts'

const PREFIX = 'external-dns.kubernetes.io/'
const SERVICES = `/api/v1/namespaces/${NAMESPACE}/services`
const INGRESSES = `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/ingresses`
const ENDPOINTS = `${ENDPOINT_API}/namespaces/${NAMESPACE}/dnsendpoints`
const SOURCES = ['service', 'ingress', 'crd', 'gateway-httproute']

t.setTimeout(CLUSTER_TEST_MS)

t.test(
  'external-dns stores its endpoints through the webhook',
  { ...needs('dig'), ...needsExternalDns() },
  async (t) => {
    const cluster = await Cluster.start(t)
    await cluster.installCrds()
    await installDnsEndpoint(cluster)
    await installGatewayApi(cluster)
    for (const name of [NAMESPACE, 'infra']) await cluster.createNamespace(name)
    await grantRights(cluster)
    const site = await ServedCluster.start(t, cluster.kubeconfig('admin'))
    const webhook = await startWebhook(t, ['--kubeconfig', cluster.kubeconfig('viewer')])
    const externalDns = startExternalDns(t, cluster, webhook.port, { sources: SOURCES })

    await t.test('a Service, an Ingress and a DNSEndpoint, with the TXT registry', async (t) => {
      await putService(cluster, 'shop', '192.0.2.1', { ttl: '30' })
      await putIngress(cluster, 'wiki', '192.0.2.2')
      await cluster.must('POST', ENDPOINTS, dnsEndpoint)
      await site.sees('shop', '192.0.2.1')
      await site.sees('wiki', '192.0.2.2')
      await site.sees('europe', '192.0.2.3')
      const [record] = (await recordsOf(cluster)).filter(
        ({ spec }) => spec.rootHost === `shop.${ZONE}`,
      )
      t.match(
        record.metadata.annotations['webhook.sextant.io/registry'],
        /external-dns\/owner=default/,
      )
      t.same(record.spec.endpoints, [
        { dnsName: `shop.${ZONE}`, recordType: 'A', recordTTL: 30, targets: ['192.0.2.1'] },
      ])
      const dig = (...args: string[]) => ask('dig', site.server.port, args)
      t.equal((await dig(`a-shop.${ZONE}`, 'TXT')).status, 'NXDOMAIN', 'the registry is not public')
      t.match((await dig(`mail.${ZONE}`, 'MX')).answer, [/MX 10 mx\.example\.net\.$/])
      t.match((await dig(`text.${ZONE}`, 'TXT')).answer, [/TXT "a text"$/])
      t.match((await dig(`_sip._tcp.${ZONE}`, 'SRV')).answer, [/SRV 1 2 5060 sip\.example\.net\.$/])
    })

    await t.test('a Gateway and its HTTPRoute', async () => {
      const gateways = new Gateways(cluster)
      await gateways.create('infra', 'shop', [{ name: 'all', port: 80, protocol: 'HTTP' }])
      await gateways.route(NAMESPACE, 'web', [`web.${ZONE}`])
      await gateways.acceptRoute(NAMESPACE, 'web', 'True')
      await gateways.accept('infra', 'shop', ['192.0.2.4'])
      await site.sees('web', '192.0.2.4')
      await gateways.accept('infra', 'shop', ['192.0.2.5'])
      await site.sees('web', '192.0.2.5')
    })

    await t.test('set identifiers, weights and codes', async (t) => {
      const weighted = (weight: string, code: string) => ({
        hostname: `geo.${ZONE}`,
        'set-identifier': code,
        'webhook-weight': weight,
        'webhook-geo-code': code,
      })
      await putService(cluster, 'geo-eu', '192.0.2.11', weighted('120', 'GEO-EU'))
      await putService(cluster, 'geo-us', '192.0.2.12', weighted('80', '*'))
      const hosted = async () =>
        (await recordsOf(cluster)).find(({ spec }) => spec.rootHost === `geo.${ZONE}`)
      await until(async () => (await hosted())?.spec.endpoints.length === 2, 'both sets', SEEN_MS)
      const endpoints = (await hosted()).spec.endpoints
      t.match(endpoints, [
        {
          setIdentifier: '*',
          targets: ['192.0.2.12'],
          providerSpecific: [
            { name: 'geo-code', value: '*' },
            { name: 'weight', value: '80' },
          ],
        },
        {
          setIdentifier: 'GEO-EU',
          targets: ['192.0.2.11'],
          providerSpecific: [
            { name: 'geo-code', value: 'GEO-EU' },
            { name: 'weight', value: '120' },
          ],
        },
      ])
      await site.sees('geo', '192.0.2.12')
    })

    await t.test('nothing is written while nothing changes', async (t) => {
      await isSettled(externalDns)
      const versions = async () =>
        (await recordsOf(cluster)).map(({ metadata }) => metadata.resourceVersion)
      const before = await versions()
      await isSettled(externalDns)
      t.same(await versions(), before)
      t.notMatch(externalDns.output(), /level=error/)
    })

    await t.test('a changed and a removed Service', async (t) => {
      await setAddress(cluster, 'shop', '192.0.2.21')
      await site.sees('shop', '192.0.2.21')
      await cluster.must('DELETE', `${SERVICES}/shop`)
      await cluster.must('DELETE', `${SERVICES}/geo-us`)
      await site.sees('shop', 'NXDOMAIN')
      const left = async () =>
        (await recordsOf(cluster)).map(({ spec }) => `${spec.rootHost} ${spec.endpoints.length}`)
      await until(async () => (await left()).includes(`geo.${ZONE} 1`), 'one set', SEEN_MS)
      t.notOk(
        (await left()).some((one) => one.startsWith('shop')),
        'its record is removed',
      )
    })

    await t.test('records of another owner are not touched', async () => {
      const name = (await recordsOf(cluster)).find(({ spec }) => spec.rootHost === `wiki.${ZONE}`)
        .metadata.name
      const path = cluster.records(NAMESPACE, name)
      await cluster.must('PATCH', path, {
        metadata: { labels: { 'webhook.sextant.io/owner': 'other' } },
      })
      await webhook.prints(/wiki\.k\.example\.com: DNSRecord \S+ exists and has another owner/)
      await cluster.must('PATCH', path, {
        metadata: { labels: { 'webhook.sextant.io/owner': 'default' } },
      })
      await isSettled(externalDns)
    })

    externalDns.process.kill()
    await externalDns.exited()

    await t.test('manifests, without a registry', async (t) => {
      const directory = temporaryDirectory(t)
      mkdirSync(join(directory, 'records'))
      const corefile = `${ZONE}:{PORT} {\n    bind 127.0.0.1\n    kuadrant {\n        manifests records\n    }\n}\n`
      const server = await startServer(t, {
        corefile,
        beside: { port: await freePort(), directory },
      })
      const files = await startWebhook(t, ['--manifests', join(directory, 'records')])
      const again = startExternalDns(t, cluster, files.port, {
        sources: SOURCES,
        registry: 'noop',
      })
      const sees = (name: string, want: RegExp) => {
        const isSo = async () =>
          want.test((await ask('dig', server.port, [`${name}.${ZONE}`])).text)
        return until(isSo, `${name} ${want}`, SEEN_MS)
      }
      await sees('wiki', /192\.0\.2\.2/)
      await isSettled(again)
      await cluster.must('DELETE', `${INGRESSES}/wiki`)
      await sees('wiki', /status: NXDOMAIN/)
      t.notMatch(again.output(), /level=error/)
    })
  },
)

const dnsEndpoint = {
  apiVersion: 'externaldns.k8s.io/v1alpha1',
  kind: 'DNSEndpoint',
  metadata: { name: 'all' },
  spec: {
    endpoints: [
      { dnsName: `europe.${ZONE}`, recordType: 'A', recordTTL: 60, targets: ['192.0.2.3'] },
      { dnsName: `mail.${ZONE}`, recordType: 'MX', recordTTL: 60, targets: ['10 mx.example.net'] },
      { dnsName: `text.${ZONE}`, recordType: 'TXT', targets: ['"a text"'] },
      { dnsName: `_sip._tcp.${ZONE}`, recordType: 'SRV', targets: ['1 2 5060 sip.example.net.'] },
    ],
  },
}

async function putService(
  cluster: Cluster,
  name: string,
  address: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  const all = { hostname: `${name}.${ZONE}`, ...settings }
  const annotations = Object.fromEntries(
    Object.entries(all).map(([key, value]) => [PREFIX + key, value]),
  )
  await cluster.must('POST', SERVICES, {
    metadata: { name, annotations },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  })
  await setAddress(cluster, name, address)
}

async function setAddress(cluster: Cluster, name: string, ip: string): Promise<void> {
  const status = { loadBalancer: { ingress: [{ ip }] } }
  await cluster.must('PATCH', `${SERVICES}/${name}/status`, { status })
}

async function putIngress(cluster: Cluster, name: string, ip: string): Promise<void> {
  const backend = { service: { name: 'shop', port: { number: 80 } } }
  const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] }
  await cluster.must('POST', INGRESSES, {
    metadata: { name },
    spec: { rules: [{ host: `${name}.${ZONE}`, http }] },
  })
  const status = { loadBalancer: { ingress: [{ ip }] } }
  await cluster.must('PATCH', `${INGRESSES}/${name}/status`, { status })
}
