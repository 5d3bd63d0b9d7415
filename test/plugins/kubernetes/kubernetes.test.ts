import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { scanType } from '../../../src/dns/iana/types.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { kubernetes } from '../../../src/plugins/kubernetes/setup.ts'
import { ZONE_VERSIONS } from '../../../src/xfr/zone-versions.ts'
import { followerOf, SetUp, setupError } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { ApiServer } from '../api-server.ts'
import { askBlock as ask, NEXT } from '../ask-block.ts'
import { printSigned, writeKey } from '../dnssec/stage.ts'

const ZONES = ['cluster.local.', '10.in-addr.arpa.', 'ip6.arpa.']

const meta = (namespace: string, name: string, labels: object = {}) => ({
  metadata: { namespace, name, labels, resourceVersion: '40' },
})
const named = (name: string) => ({ metadata: { name, resourceVersion: '40' } })
const sliceOf = (service: string, namespace = 'default') =>
  meta(namespace, `${service}-x`, { 'kubernetes.io/service-name': service })
const HTTPS = { name: 'https', protocol: 'TCP', port: 443 }

function fill(api: ApiServer): void {
  api.objects.set('namespaces', [named('default'), named('empty'), named('kube-system')])
  api.objects.set('services', [
    {
      ...meta('default', 'kubernetes'),
      spec: { clusterIPs: ['10.3.0.1', 'fd00::1'], ports: [HTTPS] },
    },
    { ...meta('default', 'headless'), spec: { clusterIPs: ['None'], ports: [HTTPS] } },
    { ...meta('default', 'lonely'), spec: { clusterIPs: ['None'], ports: [HTTPS] } },
    {
      ...meta('default', 'foo'),
      spec: { type: 'ExternalName', externalName: 'www.example.com' },
    },
    {
      ...meta('default', 'alias'),
      spec: { type: 'ExternalName', externalName: 'kubernetes.default.svc.cluster.local' },
    },
    { ...meta('gone', 'kubernetes'), spec: { clusterIPs: ['10.3.0.9'] } },
  ])
  api.objects.set('endpointslices', [
    {
      ...sliceOf('headless'),
      ports: [HTTPS],
      endpoints: [{ addresses: ['10.1.0.100'], hostname: 'my-pet' }, { addresses: ['10.1.0.101'] }],
    },
    { ...sliceOf('kubernetes'), ports: [HTTPS], endpoints: [{ addresses: ['10.9.0.1'] }] },
  ])
  api.objects.set('pods', [
    { ...meta('default', 'a'), status: { podIPs: [{ ip: '10.1.0.7' }, { ip: 'fd00::7' }] } },
    { ...meta('gone', 'b'), status: { podIPs: [{ ip: '10.1.0.8' }] } },
  ])
}

/** A cluster, and a block over it. */
async function place(t: Test, properties = 'ttl 30', zones = ZONES) {
  const api = await ApiServer.start(t)
  fill(api)
  const kubeconfig = join(temporaryDirectory(t), 'kubeconfig')
  writeFileSync(kubeconfig, api.kubeconfig)
  const corefile = `kubernetes {\n kubeconfig ${kubeconfig}\n${properties}\n}`
  const block = (): SetUp => {
    const c = new SetUp(kubernetes, corefile, zones)
    t.teardown(() => c.stop())
    return c
  }
  return { api, block, corefile }
}

const NODATA = 'NOERROR; cluster.local. 30 SOA'
const NXDOMAIN = 'NXDOMAIN; cluster.local. 30 SOA'
const SVC = 'default.svc.cluster.local.'

/** Every query of the specification, by its section, and their neighbours. */
const rows: readonly (readonly [question: string, want: string])[] = [
  // 2.2
  ['dns-version.cluster.local. TXT', 'NOERROR; dns-version.cluster.local. 28800 TXT "1.1.0"'],
  ['dns-version.cluster.local. A', NODATA],
  // 2.3
  [`kubernetes.${SVC} A`, `NOERROR; kubernetes.${SVC} 30 A 10.3.0.1`],
  [`KUBERNETES.${SVC} A`, `NOERROR; kubernetes.${SVC} 30 A 10.3.0.1`],
  [`kubernetes.${SVC} AAAA`, `NOERROR; kubernetes.${SVC} 30 AAAA fd00::1`],
  [`kubernetes.${SVC} TXT`, NODATA],
  [
    `_https._tcp.kubernetes.${SVC} SRV`,
    `NOERROR; _https._tcp.kubernetes.${SVC} 30 SRV 0 50 443 kubernetes.${SVC}; kubernetes.${SVC} 30 A 10.3.0.1, kubernetes.${SVC} 30 AAAA fd00::1`,
  ],
  [`_http._tcp.kubernetes.${SVC} SRV`, NXDOMAIN],
  [`_https._udp.kubernetes.${SVC} SRV`, NXDOMAIN],
  [`10-9-0-1.kubernetes.${SVC} A`, `NOERROR; 10-9-0-1.kubernetes.${SVC} 30 A 10.9.0.1`],
  ['1.0.3.10.in-addr.arpa. PTR', `NOERROR; 1.0.3.10.in-addr.arpa. 30 PTR kubernetes.${SVC}`],
  ['9.0.3.10.in-addr.arpa. PTR', 'NXDOMAIN; 10.in-addr.arpa. 30 SOA'],
  [
    '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. PTR',
    `NOERROR; 1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. 30 PTR kubernetes.${SVC}`,
  ],
  // 2.4
  [
    `headless.${SVC} A`,
    `NOERROR; headless.${SVC} 30 A 10.1.0.100, headless.${SVC} 30 A 10.1.0.101`,
  ],
  [`headless.${SVC} AAAA`, NODATA],
  [`my-pet.headless.${SVC} A`, `NOERROR; my-pet.headless.${SVC} 30 A 10.1.0.100`],
  [`10-1-0-101.headless.${SVC} A`, `NOERROR; 10-1-0-101.headless.${SVC} 30 A 10.1.0.101`],
  [`10-1-0-100.headless.${SVC} A`, NXDOMAIN],
  [
    `_https._tcp.headless.${SVC} SRV`,
    `NOERROR; _https._tcp.headless.${SVC} 30 SRV 0 50 443 my-pet.headless.${SVC}, _https._tcp.headless.${SVC} 30 SRV 0 50 443 10-1-0-101.headless.${SVC}; my-pet.headless.${SVC} 30 A 10.1.0.100, 10-1-0-101.headless.${SVC} 30 A 10.1.0.101`,
  ],
  [
    '100.0.1.10.in-addr.arpa. PTR',
    `NOERROR; 100.0.1.10.in-addr.arpa. 30 PTR my-pet.headless.${SVC}`,
  ],
  [`lonely.${SVC} A`, NXDOMAIN],
  // 2.5
  [`foo.${SVC} A`, `NOERROR; foo.${SVC} 30 CNAME www.example.com.`],
  [`foo.${SVC} CNAME`, `NOERROR; foo.${SVC} 30 CNAME www.example.com.`],
  [
    `alias.${SVC} A`,
    `NOERROR; alias.${SVC} 30 CNAME kubernetes.${SVC}, kubernetes.${SVC} 30 A 10.3.0.1`,
  ],
  // A namespace without Services exists; one without a Namespace does not.
  ['default.svc.cluster.local. A', NODATA],
  ['empty.svc.cluster.local. A', NODATA],
  ['none.svc.cluster.local. A', NXDOMAIN],
  ['kubernetes.gone.svc.cluster.local. A', NXDOMAIN],
  ['svc.cluster.local. A', NODATA],
  ['pod.cluster.local. A', NODATA],
  ['cluster.local. A', NODATA],
  ['cluster.local. SOA', 'NOERROR; cluster.local. 30 SOA'],
  ['cluster.local. NS', 'NOERROR; cluster.local. 30 NS ns.dns.cluster.local.'],
  ['other.cluster.local. A', NXDOMAIN],
  ['www.google.com.default.svc.cluster.local. A', NXDOMAIN],
  ['cluster.local. AXFR', 'REFUSED (sent: NOERROR)'],
  ['www.example.com. A', 'next'],
]

t.test('every query of the specification', async (t) => {
  const { block } = await place(t)
  const c = block()
  await c.start()
  for (const [question, want] of rows)
    t.equal((await ask(c, question)).replace(/; ns\.dns.*/, ''), want, question)
  t.equal(c.readiness[0]!.check(), '')
})

t.test('data threads answer from the same image', async (t) => {
  const { block, corefile } = await place(t)
  const c = block()
  const follower = followerOf(c, kubernetes, corefile, ZONES)
  await c.start()
  t.equal(await ask(follower, `kubernetes.${SVC}`), `NOERROR; kubernetes.${SVC} 30 A 10.3.0.1`)
})

t.test('names of Pods', async (t) => {
  const table = [
    { mode: 'disabled', name: '10-1-0-7.default.pod', want: NXDOMAIN },
    { mode: 'disabled', name: 'default.pod', want: NXDOMAIN },
    { mode: 'insecure', name: '1-2-3-4.default.pod', want: 'A 1.2.3.4' },
    { mode: 'insecure', name: '1-2-3-4.default.pod', type: 'AAAA', want: NODATA },
    { mode: 'insecure', name: '2001-db8--1.default.pod', type: 'AAAA', want: 'AAAA 2001:db8::1' },
    { mode: 'insecure', name: '--1.default.pod', type: 'AAAA', want: 'AAAA ::1' },
    { mode: 'insecure', name: '2001-db8--1.default.pod', want: NODATA },
    { mode: 'insecure', name: '1-2-3-400.default.pod', want: NXDOMAIN },
    { mode: 'insecure', name: 'x.default.pod', want: NXDOMAIN },
    { mode: 'insecure', name: '1-2-3-4.none.pod', want: NXDOMAIN },
    { mode: 'insecure', name: '1-2-3-4.default.svc', want: NXDOMAIN },
    { mode: 'insecure', name: 'a.1-2-3-4.default.pod', want: NXDOMAIN },
    { mode: 'insecure', name: 'empty.pod', want: NODATA },
    { mode: 'verified', name: '10-1-0-7.default.pod', want: 'A 10.1.0.7' },
    { mode: 'verified', name: 'fd00--7.default.pod', type: 'AAAA', want: 'AAAA fd00::7' },
    { mode: 'verified', name: '10-1-0-8.default.pod', want: NXDOMAIN },
    { mode: 'verified', name: '10-1-0-8.gone.pod', want: NXDOMAIN },
    { mode: 'verified', name: 'empty.pod', want: NODATA },
  ]
  for (const mode of ['disabled', 'insecure', 'verified']) {
    const { block } = await place(t, `ttl 30\npods ${mode}`)
    const c = block()
    await c.start()
    for (const { name, type = 'A', want } of table.filter((row) => row.mode === mode)) {
      const owner = `${name}.cluster.local.`
      const whole = want.includes(';') ? want : `NOERROR; ${owner} 30 ${want}`
      t.equal(await ask(c, `${owner} ${type}`), whole, `${mode}: ${name} ${type}`)
    }
  }
})

t.test('options that select', async (t) => {
  const one = await place(t, 'namespaces default none\nnoendpoints\nttl 0')
  const c = one.block()
  await c.start()
  t.equal(await ask(c, `kubernetes.${SVC}`), `NOERROR; kubernetes.${SVC} 0 A 10.3.0.1`)
  t.match(await ask(c, 'empty.svc.cluster.local.'), /^NXDOMAIN/)
  t.match(await ask(c, 'none.svc.cluster.local.'), /^NXDOMAIN/)
  t.match(await ask(c, `headless.${SVC}`), /^NXDOMAIN/)
  const other = await place(t, 'ignore empty_service\nendpoint_pod_names')
  other.api.objects.set('endpointslices', [])
  const d = other.block()
  await d.start()
  t.match(await ask(d, `kubernetes.${SVC}`), /^NXDOMAIN/)
})

t.test('fallthrough, in all zones or in some', async (t) => {
  const reverse = await place(t, 'ttl 30\npods insecure\nfallthrough in-addr.arpa ip6.arpa')
  const c = reverse.block()
  await c.start()
  t.equal(await ask(c, '9.0.3.10.in-addr.arpa. PTR'), 'next')
  t.equal(await ask(c, '1.0.3.10.in-addr.arpa. SOA'), 'NOERROR; 10.in-addr.arpa. 30 SOA')
  t.equal(await ask(c, 'other.cluster.local.'), NXDOMAIN)
  const all = await place(t, 'fallthrough')
  const d = all.block()
  await d.start()
  t.equal(await ask(d, 'other.cluster.local.'), 'next')
})

t.test('direct answers are for zones that deny', async (t) => {
  const { block } = await place(t, 'fallthrough in-addr.arpa ip6.arpa')
  const c = block()
  await c.start()
  const source = c.handler(NEXT).source!
  const found = (name: string) => source.find(transaction({ name }).query) !== undefined
  t.equal(source.denies, true)
  t.equal(found('a.cluster.local.'), true)
  t.equal(found('1.10.in-addr.arpa.'), false)
  t.equal(found('www.example.com.'), false)
  const all = (await place(t, 'fallthrough')).block()
  await all.start()
  const open = all.handler(NEXT).source!
  t.equal(open.denies, false)
  t.not(open.find(transaction({ name: 'a.cluster.local.' }).query), undefined)
})

t.test('queries before the cluster is read, and a cluster that comes later', async (t) => {
  const { api, block } = await place(t, 'startup_timeout 10ms\nfallthrough ip6.arpa')
  api.isAway = true
  const c = block()
  await c.start()
  t.match(
    c.lines.join('\n'),
    /starting server with unsynced Kubernetes API: .*queries get SERVFAIL/,
  )
  t.not(c.readiness[0]!.check(), '')
  t.equal(await ask(c, `kubernetes.${SVC}`), 'SERVFAIL (sent: NOERROR)')
  t.equal(await ask(c, '1.ip6.arpa. PTR'), 'next')
  t.equal(await ask(c, 'www.example.com.'), 'next')
  api.isAway = false
  await until(() => c.readiness[0]!.check() === '', 'the cluster')
  t.match(await ask(c, `kubernetes.${SVC}`), /10\.3\.0\.1/)
})

t.test('a reload keeps the view, also while the API is away', async (t) => {
  const { api, block } = await place(t)
  const first = block()
  await first.start()
  api.isAway = true
  const second = block()
  await second.start()
  await first.stop()
  t.match(await ask(second, `kubernetes.${SVC}`), /10\.3\.0\.1/)
  t.equal(second.readiness[0]!.check(), '')
})

t.test('zones can be transferred', async (t) => {
  const { block } = await place(t)
  const c = block()
  await c.start()
  const version = c.block.shared.acquire(ZONE_VERSIONS).find(scanName('cluster.local.')!)
  t.equal(version?.serial, 1_700_000_000)
})

t.test('other classes go on', async (t) => {
  const { block } = await place(t)
  const c = block()
  await c.start()
  const tx = transaction({ name: `kubernetes.${SVC}`, class: RRClass.CH, type: RRType.A })
  await show(c.handler(NEXT), tx)
  t.equal(tx.response.answeredBy, 'next')
})

const faults: readonly (readonly [corefile: string, want: RegExp])[] = [
  ['kubernetes in-addr.arpa', /non-reverse zone name must be used/],
  ['kubernetes {\n pods maybe\n}', /wrong value for pods: maybe/],
  ['kubernetes {\n ttl 3601\n}', /ttl must be in range \[0, 3600\]: 3601/],
  ['kubernetes {\n ttl x\n}', /ttl must be in range/],
  ['kubernetes {\n namespaces\n}', /Wrong argument count/],
  ['kubernetes {\n noendpoints x\n}', /Wrong argument count/],
  ['kubernetes {\n namespaces a\n namespace_labels b=c\n}', /cannot both be set/],
  ['kubernetes {\n ignore nothing\n}', /unable to parse ignore value: 'nothing'/],
  ['kubernetes {\n startup_timeout x\n}', /failed to parse startup_timeout: x/],
  ['kubernetes {\n multicluster a.\n}', /multicluster is not supported: /],
  ['kubernetes {\n endpoint x\n}', /endpoint must be a URL/],
  ['kubernetes {\n tls a b\n}', /Wrong argument count/],
  ['kubernetes {\n nonsense\n}', /unknown property 'nonsense'/],
  ['kubernetes\nkubernetes', /only be used once/],
  [`kubernetes ${'a'.repeat(60)}.${'b'.repeat(60)}.example.org`, /too long for names of Services/],
]

t.test('invalid options', async (t) => {
  for (const [corefile, want] of faults) t.match(setupError(kubernetes, corefile), want, corefile)
  t.equal(setupError(kubernetes, 'kubernetes {\n apiserver_qps 5\n pods verified\n}'), '')
})

t.test('an endpoint without a usable configuration is a fault of the line', async (t) => {
  const table = [
    { properties: 'endpoint http://api.example.com', want: /endpoint: names a server without TLS/ },
    { properties: 'endpoint https://api.example.com\ntls a b c', want: /cannot be read/ },
    { properties: 'kubeconfig none', want: /none: cannot be read/ },
  ]
  for (const { properties, want } of table) {
    const c = new SetUp(kubernetes, `kubernetes {\n${properties}\n}`)
    const { faults } = await c.check()
    t.match(faults, [want])
    await t.rejects(c.start(), { name: 'InputError', message: want })
    await c.stop()
  }
})

t.test('kubectl proxy is an endpoint', async (t) => {
  const api = await ApiServer.start(t)
  fill(api)
  const url = /server: "([^"]+)"/.exec(api.kubeconfig)![1]
  const c = new SetUp(kubernetes, `kubernetes cluster.local {\n endpoint ${url}\n}`)
  t.teardown(() => c.stop())
  await c.start()
  t.match(await ask(c, `kubernetes.${SVC}`), /10\.3\.0\.1/)
})

t.test('signed on demand: proofs of names with and without records', async (t) => {
  const key = await writeKey(temporaryDirectory(t), 'cluster.local.')
  const rows: readonly (readonly [question: string, types: RegExp])[] = [
    ['svc.cluster.local. A', /^RRSIG NSEC$/],
    [`${SVC} TXT`, /^RRSIG NSEC$/],
    [`_tcp.kubernetes.${SVC} DS`, /^RRSIG NSEC$/],
    [`kubernetes.${SVC} TXT`, /^A .* AAAA .* TYPE65534$/],
    ['10-1-0-9.default.pod.cluster.local. TXT', /^A .* AAAA .* TYPE65534$/],
    ['cluster.local. TXT', /^A NS .* SOA .* TYPE65534$/],
    [`nope.${SVC} A`, /^RRSIG NSEC NXNAME$/],
  ]
  const { block } = await place(t, 'pods insecure')
  const c = block()
  await c.start()
  const sign = new SetUp(dnssec, `dnssec {\n key file ${key.path}\n}`, ['cluster.local.'])
  await sign.start()
  t.teardown(() => sign.stop())
  const handler = sign.handler(c.handler(NEXT))
  for (const [question, types] of rows) {
    const [name = '', type = ''] = question.split(' ')
    const tx = transaction({ name, type: scanType(type)!, dnssecOk: true })
    await handler.serve(tx)
    const proof = printSigned(tx.response, [key.key]).find((line) => / NSEC /.test(line)) ?? ''
    t.match(proof.replace(/^.* NSEC \d+ \S+ /, ''), types, question)
    t.notMatch(proof, /unsigned|bogus/, question)
  }
})
