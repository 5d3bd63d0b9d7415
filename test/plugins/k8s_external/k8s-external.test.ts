import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CLUSTER } from '../../../src/authority/cluster/served-cluster.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { k8sExternal } from '../../../src/plugins/k8s_external/setup.ts'
import { kubernetes } from '../../../src/plugins/kubernetes/setup.ts'
import { ZONE_VERSIONS } from '../../../src/xfr/zone-versions.ts'
import { followerOf, SetUp, setupError } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { ApiServer } from '../api-server.ts'
import { askBlock as ask, NEXT } from '../ask-block.ts'

const http = [{ name: 'http', protocol: 'TCP', port: 80 }]
const meta = (name: string, labels: object = {}, namespace = 'testns') => ({
  metadata: { namespace, name, labels, resourceVersion: '40' },
})
const of = (service: string) => ({ 'kubernetes.io/service-name': service })

/** The Services of CoreDNS's own test, and one in a namespace with the name of the apex label. */
const SERVICES = [
  { ...meta('svc1'), spec: { clusterIPs: ['10.0.0.1'], externalIPs: ['1.2.3.4'], ports: http } },
  { ...meta('svc6'), spec: { clusterIPs: ['10.0.0.3'], externalIPs: ['1:2::5'], ports: http } },
  {
    ...meta('svc11'),
    spec: { type: 'LoadBalancer', clusterIPs: ['10.0.0.3'], ports: http },
    status: { loadBalancer: { ingress: [{ ip: '2.3.4.5' }] } },
  },
  {
    ...meta('svc12'),
    spec: { type: 'LoadBalancer', clusterIPs: ['10.0.0.3'], ports: http },
    status: { loadBalancer: { ingress: [{ hostname: 'dummy.hostname' }] } },
  },
  { ...meta('svc-headless'), spec: { clusterIPs: ['None'], ports: http } },
  { ...meta('ns1', {}, 'dns'), spec: { externalIPs: ['9.9.9.9'], ports: http } },
]

const SLICES = [
  {
    ...meta('svc-headless-1', of('svc-headless')),
    ports: http,
    endpoints: [
      { addresses: ['1.2.3.4'], hostname: 'endpoint-svc-0' },
      { addresses: ['1.2.3.5'], hostname: 'endpoint-svc-1' },
    ],
  },
]

interface Place {
  readonly api: ApiServer
  /** Both directives of one block, set up. */
  readonly block: (external: string, cluster?: string) => { external: SetUp; cluster: SetUp }
}

async function place(t: Test): Promise<Place> {
  const api = await ApiServer.start(t)
  const namespaces = ['testns', 'dns'].map((name) => ({
    metadata: { name, resourceVersion: '40' },
  }))
  api.objects.set('namespaces', namespaces)
  api.objects.set('services', SERVICES)
  api.objects.set('endpointslices', SLICES)
  const kubeconfig = join(temporaryDirectory(t), 'kubeconfig')
  writeFileSync(kubeconfig, api.kubeconfig)
  const block = (properties: string, more = ''): { external: SetUp; cluster: SetUp } => {
    const external = new SetUp(k8sExternal, `k8s_external ${properties}`)
    const corefile = `kubernetes cluster.local {\n kubeconfig ${kubeconfig}\n${more}\n}`
    const cluster = new SetUp(kubernetes, corefile)
    external.block.listenHosts.push('127.0.0.1', '192.0.2.53')
    cluster.block.listenHosts.push('127.0.0.1', '192.0.2.53')
    external.block.shared.provide(CLUSTER, cluster.block.shared.find(CLUSTER)!)
    t.teardown(async () => {
      await external.stop()
      await cluster.stop()
    })
    return { external, cluster }
  }
  return { api, block }
}

const ZONES = 'example.com in-addr.arpa'
const SOA = 'example.com. 5 SOA'
const NODATA = `NOERROR; ${SOA}`
const NXDOMAIN = `NXDOMAIN; ${SOA}`
const NS = 'testns.example.com.'
const HEADLESS = `svc-headless.${NS}`
const GLUE = 'ns1.dns.example.com. 5 A 192.0.2.53'

/** The cases of CoreDNS's tests (external_test.go, apex_test.go), and their neighbours. */
const rows: readonly (readonly [question: string, want: string])[] = [
  ['4.3.2.1.in-addr.arpa. PTR', `NOERROR; 4.3.2.1.in-addr.arpa. 5 PTR svc1.${NS}`],
  [`svc1.${NS} PTR`, NODATA],
  [`not-existing.${NS} PTR`, NXDOMAIN],
  [`svc1.${NS} A`, `NOERROR; svc1.${NS} 5 A 1.2.3.4`],
  [`svc1.${NS} SRV`, `NOERROR; svc1.${NS} 5 SRV 0 100 80 svc1.${NS}; svc1.${NS} 5 A 1.2.3.4`],
  [`*._not-udp-or-tcp.svc1.${NS} SRV`, NXDOMAIN],
  [
    `_http._tcp.svc1.${NS} SRV`,
    `NOERROR; _http._tcp.svc1.${NS} 5 SRV 0 100 80 svc1.${NS}; svc1.${NS} 5 A 1.2.3.4`,
  ],
  [`svc1.${NS} AAAA`, NODATA],
  [`svc0.${NS} AAAA`, NXDOMAIN],
  [`svc0.${NS} A`, NXDOMAIN],
  ['svc0.svc-nons.example.com. A', NXDOMAIN],
  [`svc6.${NS} AAAA`, `NOERROR; svc6.${NS} 5 AAAA 1:2::5`],
  [
    `_http._tcp.svc6.${NS} SRV`,
    `NOERROR; _http._tcp.svc6.${NS} 5 SRV 0 100 80 svc6.${NS}; svc6.${NS} 5 AAAA 1:2::5`,
  ],
  [`svc6.${NS} SRV`, `NOERROR; svc6.${NS} 5 SRV 0 100 80 svc6.${NS}; svc6.${NS} 5 AAAA 1:2::5`],
  [`${NS} A`, NODATA],
  [`${NS} SOA`, NODATA],
  [`svc11.${NS} A`, `NOERROR; svc11.${NS} 5 A 2.3.4.5`],
  [
    `_http._tcp.svc11.${NS} SRV`,
    `NOERROR; _http._tcp.svc11.${NS} 5 SRV 0 100 80 svc11.${NS}; svc11.${NS} 5 A 2.3.4.5`,
  ],
  [`svc11.${NS} SRV`, `NOERROR; svc11.${NS} 5 SRV 0 100 80 svc11.${NS}; svc11.${NS} 5 A 2.3.4.5`],
  [`svc12.${NS} A`, `NOERROR; svc12.${NS} 5 CNAME dummy.hostname.`],
  [`_http._tcp.svc12.${NS} SRV`, `NOERROR; _http._tcp.svc12.${NS} 5 SRV 0 100 80 dummy.hostname.`],
  // CoreDNS answers with an SRV record beside the CNAME.
  [`svc12.${NS} SRV`, `NOERROR; svc12.${NS} 5 CNAME dummy.hostname.`],
  [`${HEADLESS} A`, `NOERROR; ${HEADLESS} 5 A 1.2.3.4, ${HEADLESS} 5 A 1.2.3.5`],
  [
    `${HEADLESS} SRV`,
    `NOERROR; ${HEADLESS} 5 SRV 0 50 80 endpoint-svc-0.${HEADLESS}, ${HEADLESS} 5 SRV 0 50 80 endpoint-svc-1.${HEADLESS}; endpoint-svc-0.${HEADLESS} 5 A 1.2.3.4, endpoint-svc-1.${HEADLESS} 5 A 1.2.3.5`,
  ],
  [
    `_http._tcp.${HEADLESS} SRV`,
    `NOERROR; _http._tcp.${HEADLESS} 5 SRV 0 50 80 endpoint-svc-0.${HEADLESS}, _http._tcp.${HEADLESS} 5 SRV 0 50 80 endpoint-svc-1.${HEADLESS}; endpoint-svc-0.${HEADLESS} 5 A 1.2.3.4, endpoint-svc-1.${HEADLESS} 5 A 1.2.3.5`,
  ],
  // CoreDNS answers with an SRV record whose target is the name itself.
  [`endpoint-svc-0.${HEADLESS} SRV`, NODATA],
  [`endpoint-svc-0.${HEADLESS} A`, `NOERROR; endpoint-svc-0.${HEADLESS} 5 A 1.2.3.4`],
  [`endpoint-svc-1.${HEADLESS} A`, `NOERROR; endpoint-svc-1.${HEADLESS} 5 A 1.2.3.5`],
  ['5.3.2.1.in-addr.arpa. PTR', 'NXDOMAIN; in-addr.arpa. 5 SOA'],
  ['example.com. SOA', `NOERROR; ${SOA}`],
  ['example.com. NS', `NOERROR; example.com. 5 NS ns1.dns.example.com.; ${GLUE}`],
  ['example.com. SRV', NODATA],
  ['dns.example.com. SRV', NODATA],
  ['dns.example.com. NS', NODATA],
  ['ns1.dns.example.com. SRV', NODATA],
  ['ns1.dns.example.com. NS', NODATA],
  ['ns1.dns.example.com. AAAA', NODATA],
  ['ns1.dns.example.com. A', `NOERROR; ${GLUE}`],
  ['ns2.dns.example.com. A', NXDOMAIN],
  ['a.ns1.dns.example.com. A', NXDOMAIN],
  [`a.b.c.svc1.${NS} A`, NXDOMAIN],
  [`SVC1.${NS} A`, `NOERROR; svc1.${NS} 5 A 1.2.3.4`],
  ['example.com. AXFR', 'REFUSED (sent: NOERROR)'],
  ['svc1.testns.svc.cluster.local. A', 'next'],
]

t.test("CoreDNS's own cases", async (t) => {
  const { block } = await place(t)
  const { external } = block(`${ZONES} {\n headless\n}`)
  await external.start()
  for (const [question, want] of rows) t.equal(await ask(external, question), want, question)
  t.equal(external.readiness[0]!.check(), '')
})

t.test('options', async (t) => {
  const { block } = await place(t)
  const { external } = block('example.com {\n apex Names\n ttl 60\n fallthrough\n}')
  await external.start()
  const table = [
    [`svc1.${NS} A`, `NOERROR; svc1.${NS} 60 A 1.2.3.4`],
    [`${HEADLESS} A`, 'next'],
    [`endpoint-svc-0.${HEADLESS} A`, 'next'],
    ['4.3.2.1.in-addr.arpa. PTR', 'next'],
    [`svc1.${NS} AAAA`, 'NOERROR; example.com. 60 SOA'],
    ['ns1.names.example.com. A', 'NOERROR; ns1.names.example.com. 60 A 192.0.2.53'],
    ['ns1.dns.example.com. A', 'NOERROR; ns1.dns.example.com. 60 A 9.9.9.9'],
  ] as const
  for (const [question, want] of table) t.equal(await ask(external, question), want, question)
  const hour = block('example.com {\n ttl 3600\n}').external
  await hour.start()
  t.equal(await ask(hour, 'example.com. SOA'), 'NOERROR; example.com. 3600 SOA')
})

t.test('the name server is the Service that leads here, at its external addresses', async (t) => {
  const { api, block } = await place(t)
  const dns = { ...meta('dns'), spec: { clusterIPs: ['10.0.0.53'], ports: http } }
  const own = { ...meta('dns-1', of('dns')), endpoints: [{ addresses: ['192.0.2.53'] }] }
  api.objects.set('services', [dns])
  api.objects.set('endpointslices', [own])
  const inside = block('example.com').external
  await inside.start()
  t.equal(await ask(inside, 'ns1.dns.example.com. A'), NODATA, 'none has an external address')
  await inside.stop()
  api.objects.set('services', [{ ...dns, spec: { ...dns.spec, externalIPs: ['198.51.100.1'] } }])
  const outside = block('example.com').external
  await outside.start()
  const want = 'NOERROR; ns1.dns.example.com. 5 A 198.51.100.1'
  t.equal(await ask(outside, 'ns1.dns.example.com. A'), want)
})

t.test('one watch serves both directives of a block', async (t) => {
  const { api, block } = await place(t)
  const { external, cluster } = block('example.com')
  await external.start()
  api.isAway = true
  await cluster.start()
  t.equal(
    await ask(cluster, 'svc1.testns.svc.cluster.local. A').then((text) => text.slice(0, 7)),
    'NOERROR',
  )
  await external.stop()
  t.equal(cluster.readiness[0]!.check(), '', 'the other one keeps it')
  const reloaded = block('example.com {\n ttl 60\n}').external
  await reloaded.start()
  const want = `NOERROR; svc1.${NS} 60 A 1.2.3.4`
  t.equal(await ask(reloaded, `svc1.${NS}`), want, 'new zones need no new list')
})

t.test('data threads answer from the same image', async (t) => {
  const { block } = await place(t)
  const { external } = block('example.com')
  const follower = followerOf(external, k8sExternal, 'k8s_external example.com')
  await external.start()
  t.equal(await ask(follower, `svc1.${NS}`), `NOERROR; svc1.${NS} 5 A 1.2.3.4`)
  const { source } = external.handler(NEXT)
  t.not(source!.find(transaction({ name: `svc1.${NS}` }).query), undefined, 'as a direct answer')
})

t.test('queries before the cluster is read', async (t) => {
  const { api, block } = await place(t)
  api.isAway = true
  const { external } = block('example.com', 'startup_timeout 10ms')
  await external.start()
  t.match(external.lines.join('\n'), /starting server with unsynced Kubernetes API/)
  t.equal(await ask(external, `svc1.${NS}`), 'SERVFAIL (sent: NOERROR)')
  t.not(external.readiness[0]!.check(), '')
  api.isAway = false
  await until(() => external.readiness[0]!.check() === '', 'the cluster')
  t.equal(await ask(external, `svc1.${NS}`), `NOERROR; svc1.${NS} 5 A 1.2.3.4`)
})

t.test('zones can be transferred', async (t) => {
  const { block } = await place(t)
  const { external } = block('example.com')
  await external.start()
  t.equal(
    external.block.shared.acquire(ZONE_VERSIONS).find(scanName('example.com.')!)?.serial,
    1_700_000_000,
  )
})

t.test('a block without kubernetes', async (t) => {
  const want = /Corefile:1: plugin\/k8s_external: kubernetes is missing in this server block/
  const c = new SetUp(k8sExternal, 'k8s_external example.com')
  t.match((await c.check()).faults, [want])
  await t.rejects(c.start(), { name: 'InputError', message: /kubernetes is missing/ })
  await c.stop()
})

t.test('a cluster without a usable configuration is a fault of kubernetes', async (t) => {
  const cluster = new SetUp(kubernetes, 'kubernetes cluster.local {\n kubeconfig none\n}')
  const external = new SetUp(k8sExternal, 'k8s_external example.com')
  external.block.shared.provide(CLUSTER, cluster.block.shared.find(CLUSTER)!)
  t.strictSame((await external.check()).faults, [])
  const want = { name: 'InputError', message: /plugin\/kubernetes: .*none: cannot be read/ }
  await t.rejects(external.start(), want)
  await external.stop()
})

const faults: readonly (readonly [corefile: string, want: RegExp])[] = [
  ['k8s_external in-addr.arpa', /non-reverse zone name must be used/],
  ['k8s_external a..b', /a\.\.b/],
  ['k8s_external {\n ttl 3601\n}', /ttl must be in range \[0, 3600\]: 3601/],
  ['k8s_external {\n ttl\n}', /Wrong argument count/],
  ['k8s_external {\n apex\n}', /Wrong argument count/],
  ['k8s_external {\n apex a.b\n}', /apex must be one label, such as dns: 'a\.b'/],
  ['k8s_external {\n apex -a\n}', /apex must be one label/],
  ['k8s_external {\n headless yes\n}', /Wrong argument count/],
  ['k8s_external {\n fallthrough a..b\n}', /a\.\.b/],
  ['k8s_external {\n nonsense\n}', /unknown property 'nonsense'/],
  ['k8s_external\nk8s_external', /only be used once/],
]

t.test('invalid options', async (t) => {
  for (const [corefile, want] of faults) t.match(setupError(k8sExternal, corefile), want, corefile)
  // The cases of CoreDNS's setup_test.go.
  for (const zone of ['', ' example.org']) {
    for (const properties of [
      'apex testdns',
      'headless',
      'fallthrough',
      'fallthrough ip6.arpa foo.com',
    ]) {
      t.equal(setupError(k8sExternal, `k8s_external${zone} {\n ${properties}\n}`), '', properties)
    }
  }
})
