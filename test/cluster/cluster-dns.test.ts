import t, { type Test } from 'tap'
import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { startCoredns } from '../support/coredns.ts'
import { ask, askEach, type Reply } from '../support/dig.ts'
import { getText } from '../support/get-text.ts'
import { composeManifests } from '../support/kustomize.ts'
import { isInstalled, needs } from '../support/peer.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

t.setTimeout(CLUSTER_TEST_MS)

const SLICES = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices'
const SERVICES = '/api/v1/namespaces/shop/services'
const SVC = 'shop.svc.cluster.local.'
const HTTP = { name: 'http', protocol: 'TCP', port: 80 }

const service = (name: string, spec: object) => ({ metadata: { name }, spec })
const slice = (name: string, of: string, endpoints: readonly object[], addressType = 'IPv4') => ({
  addressType,
  metadata: { name, labels: { 'kubernetes.io/service-name': of } },
  ports: [HTTP],
  endpoints,
})

/** The name for PTR records of an address (RFC 3596 section 2.5). */
function reverseOf(address: string): string {
  const digits = Buffer.from(scanAddress(address)!.bytes).toString('hex')
  return `${[...digits].reverse().join('.')}.ip6.arpa.`
}

const NEEDS = { ...needsCluster(), ...needs('dig') }

t.test('the names of a cluster with the real API server', NEEDS, async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.createNamespace('shop')
  await cluster.createNamespace('empty')
  await applyAll(cluster, composeManifests('deploy/base/namespace'))
  await applyAll(cluster, composeManifests('deploy/cluster-dns'))
  const apiGroup = 'rbac.authorization.k8s.io'
  await cluster.must('POST', `/apis/${apiGroup}/v1/clusterrolebindings`, {
    metadata: { name: 'viewer-cluster-dns' },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'sextant-cluster-dns' },
    subjects: [{ apiGroup, kind: 'User', name: 'viewer' }],
  })
  const both = { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4', 'IPv6'] }
  for (const { spec, name } of [
    { name: 'web', spec: { clusterIP: '10.0.0.80', ports: [HTTP] } },
    {
      name: 'dual',
      spec: {
        ...both,
        clusterIP: '10.0.0.81',
        clusterIPs: ['10.0.0.81', 'fd00:10::81'],
        ports: [HTTP],
      },
    },
    { name: 'db', spec: { clusterIP: 'None', ports: [HTTP] } },
    { name: 'outside', spec: { type: 'ExternalName', externalName: 'www.example.com' } },
  ]) {
    await cluster.must('POST', SERVICES, service(name, spec))
  }
  const endpoints = [{ addresses: ['10.1.0.1'], hostname: 'db-0' }, { addresses: ['10.1.0.2'] }]
  await cluster.must('POST', SLICES, slice('db-1', 'db', endpoints))
  await cluster.must('POST', SLICES, slice('db-2', 'db', [{ addresses: ['fd00::1'] }], 'IPv6'))
  const pod = { containers: [{ name: 'c', image: 'none' }], automountServiceAccountToken: false }
  await cluster.must('POST', '/api/v1/namespaces/shop/serviceaccounts', {
    metadata: { name: 'default' },
  })
  const pods = '/api/v1/namespaces/shop/pods'
  await cluster.must('POST', pods, { metadata: { name: 'p' }, spec: pod })
  const status = { podIP: '10.1.0.9', podIPs: [{ ip: '10.1.0.9' }] }
  await cluster.must('PATCH', `${pods}/p/status`, { status })

  const http = await freePort()
  const corefile = `cluster.local:{PORT} in-addr.arpa:{PORT} ip6.arpa:{PORT} {
    bind 127.0.0.1
    kubernetes {
        kubeconfig ${cluster.kubeconfig('viewer')}
        pods verified
    }
    transfer {
        to *
    }
    ready 127.0.0.1:${http}
    prometheus 127.0.0.1:${http}
}
`
  const server = await startServer(t, { corefile })
  const ready = async () => (await getText(`http://127.0.0.1:${http}/ready`)).status === 200
  await until(ready, 'the cluster to be read')
  const query = async (name: string, type = 'A'): Promise<string> => {
    const reply = await ask('dig', server.port, [name, type])
    const data = reply.answer.map((line) => line.split(' ').slice(3).join(' '))
    return [reply.status, ...data].join('; ')
  }
  const sees = (name: string, type: string, want: string) =>
    until(async () => (await query(name, type)) === want, `${name} ${type} to be ${want}`)

  const endpointPorts = ['10-1-0-2', 'db-0', 'fd00--1'].map(
    (host) => `; SRV 0 33 80 ${host}.db.${SVC}`,
  )
  const table: readonly (readonly [name: string, type: string, want: string])[] = [
    ['dns-version.cluster.local.', 'TXT', 'NOERROR; TXT "1.1.0"'],
    ['kubernetes.default.svc.cluster.local.', 'A', 'NOERROR; A 10.0.0.1'],
    [`web.${SVC}`, 'A', 'NOERROR; A 10.0.0.80'],
    [`web.${SVC}`, 'AAAA', 'NOERROR'],
    [`_http._tcp.web.${SVC}`, 'SRV', `NOERROR; SRV 0 100 80 web.${SVC}`],
    ['80.0.0.10.in-addr.arpa.', 'PTR', `NOERROR; PTR web.${SVC}`],
    [`dual.${SVC}`, 'A', 'NOERROR; A 10.0.0.81'],
    [`dual.${SVC}`, 'AAAA', 'NOERROR; AAAA fd00:10::81'],
    [`db.${SVC}`, 'A', 'NOERROR; A 10.1.0.1; A 10.1.0.2'],
    [`db.${SVC}`, 'AAAA', 'NOERROR; AAAA fd00::1'],
    [`db-0.db.${SVC}`, 'A', 'NOERROR; A 10.1.0.1'],
    [`10-1-0-2.db.${SVC}`, 'A', 'NOERROR; A 10.1.0.2'],
    ['1.0.1.10.in-addr.arpa.', 'PTR', `NOERROR; PTR db-0.db.${SVC}`],
    [`_http._udp.web.${SVC}`, 'SRV', 'NXDOMAIN'],
    [`_https._tcp.web.${SVC}`, 'SRV', 'NXDOMAIN'],
    [`_http._tcp.db.${SVC}`, 'SRV', `NOERROR${endpointPorts.join('')}`],
    [`db-0.db.${SVC}`, 'AAAA', 'NOERROR'],
    [`fd00--1.db.${SVC}`, 'AAAA', 'NOERROR; AAAA fd00::1'],
    [`fd00--1.db.${SVC}`, 'A', 'NOERROR'],
    [reverseOf('fd00:10::81'), 'PTR', `NOERROR; PTR dual.${SVC}`],
    [reverseOf('fd00::1'), 'PTR', `NOERROR; PTR fd00--1.db.${SVC}`],
    [`outside.${SVC}`, 'A', 'NOERROR; CNAME www.example.com.'],
    [`outside.${SVC}`, 'SRV', 'NOERROR; CNAME www.example.com.'],
    ['10-1-0-9.shop.pod.cluster.local.', 'A', 'NOERROR; A 10.1.0.9'],
    ['10-1-0-8.shop.pod.cluster.local.', 'A', 'NXDOMAIN'],
    ['empty.svc.cluster.local.', 'A', 'NOERROR'],
    ['none.svc.cluster.local.', 'A', 'NXDOMAIN'],
    [`none.${SVC}`, 'A', 'NXDOMAIN'],
  ]
  for (const [name, type, want] of table) t.equal(await query(name, type), want, `${name} ${type}`)
  const whole = await ask('dig', server.port, ['cluster.local.', 'AXFR'])
  t.match(whole.text, /db-0\.db\.shop\.svc\.cluster\.local\.\s+5\s+IN\s+A\s+10\.1\.0\.1/)

  const changed = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() }
  await cluster.must('PATCH', `${SLICES}/db-1`, {
    metadata: { annotations: changed },
    endpoints: [{ addresses: ['10.1.0.3'], conditions: { ready: true } }],
  })
  await sees(`db.${SVC}`, 'A', 'NOERROR; A 10.1.0.3')
  await sees('1.0.1.10.in-addr.arpa.', 'PTR', 'NXDOMAIN')
  const { text: metrics } = await getText(`http://127.0.0.1:${http}/metrics`)
  const kind = 'service_kind="headless_with_selector"'
  t.match(metrics, `coredns_kubernetes_dns_programming_duration_seconds_count{${kind}} 1\n`)
  t.match(
    metrics,
    /rest_client_requests_total\{code="200",method="GET",host="127\.0\.0\.1:\d+"\} \d/,
  )
  t.match(metrics, /rest_client_request_duration_seconds_count\{verb="GET",host="127/)
  await cluster.must('DELETE', `${SERVICES}/web`)
  await sees(`web.${SVC}`, 'A', 'NXDOMAIN')
  await cluster.createNamespace('new')
  await sees('new.svc.cluster.local.', 'A', 'NOERROR')

  await t.test('autopath @kubernetes', (t) => testAutopath(t, cluster))
  await t.test('early clients of k8s_cache', (t) => testEarlyClients(t, cluster))
  await t.test('k8s_external', (t) => testExternal(t, cluster))

  await cluster.killServer()
  const away = async () => /s old/.test((await getText(`http://127.0.0.1:${http}/ready`)).text)
  await until(away, 'the ready page to report that the API is away')
  t.equal(await query(`dual.${SVC}`), 'NOERROR; A 10.0.0.81', 'the last state is served')
  await cluster.startServer()
  await cluster.must('DELETE', `${SERVICES}/dual`)
  await until(async () => (await query(`dual.${SVC}`)) === 'NXDOMAIN', 'the change', 180_000)
})

/** The address of the early client: this machine has it. */
const EARLY = '127.0.0.53'

async function testEarlyClients(t: Test, cluster: Cluster): Promise<void> {
  const pods = '/api/v1/namespaces/shop/pods'
  const labels = { 'k8s-cache.coredns.io/early-refresh': 'true' }
  const spec = { containers: [{ name: 'c', image: 'none' }], automountServiceAccountToken: false }
  await cluster.must('POST', pods, { metadata: { name: 'controller', labels }, spec })
  const setAddress = (podIP: string) =>
    cluster.must('PATCH', `${pods}/controller/status`, {
      status: { podIP, podIPs: [{ ip: podIP }] },
    })
  await setAddress(EARLY)
  let answers = 0
  const upstream = await ScriptedServer.open(t, ({ question }) => {
    const rdata = Uint8Array.of(192, 0, 2, ++answers)
    return [{ owner: question!.name, type: RRType.A, rrclass: RRClass.IN, ttlSeconds: 1, rdata }]
  })
  const http = await freePort()
  const corefile = `.:{PORT} {
    bind 127.0.0.1
    ready 127.0.0.1:${http}
    prometheus 127.0.0.1:${http}
    k8s_cache {
        success 1024 3600 1
        earlyrefresh 10m
        kubeconfig ${cluster.kubeconfig('viewer')}
    }
    forward . 127.0.0.1:${upstream.port}
}
`
  const server = await startServer(t, { corefile })
  const ready = async () => (await getText(`http://127.0.0.1:${http}/ready`)).status === 200
  await until(ready, 'the Pods to be read')
  const query = async (from: string): Promise<{ ttl: number; address: string }> => {
    const { answer } = await ask('dig', server.port, ['+rec', '-b', from, 'www.example.com.', 'A'])
    const [, ttl, , , address = ''] = answer[0]?.split(' ') ?? []
    return { ttl: Number(ttl), address }
  }
  t.strictSame(await query('127.0.0.1'), { ttl: 601, address: '192.0.2.1' })
  const isNew = async () => (await query(EARLY)).address !== '192.0.2.1'
  await until(isNew, 'a new answer for the early client')
  t.equal((await query(EARLY)).ttl <= 1, true)
  const other = await query('127.0.0.1')
  t.equal(other.address, '192.0.2.1', 'others keep the old answer')
  t.ok(other.ttl > 300)
  await setAddress('127.0.0.54')
  const isOther = async () => (await query(EARLY)).address === '192.0.2.1'
  await until(isOther, 'the Pod to lose its address')
  t.not((await query('127.0.0.54')).address, '192.0.2.1')
  const { text } = await getText(`http://127.0.0.1:${http}/metrics`)
  t.match(text, /coredns_cache_hits_total\{server="dns:\/\/127.0.0.1:\d+",type="success"/)
  t.match(text, /coredns_cache_evictions_total\{[^}]*type="success"[^}]*\} 0/)
}

async function testAutopath(t: Test, cluster: Cluster): Promise<void> {
  const spec = { containers: [{ name: 'c', image: 'none' }], automountServiceAccountToken: false }
  await cluster.must('POST', '/api/v1/namespaces/shop/pods', { metadata: { name: 'buyer' }, spec })
  const client = '127.0.0.9'
  const status = { podIP: client, podIPs: [{ ip: client }] }
  await cluster.must('PATCH', '/api/v1/namespaces/shop/pods/buyer/status', { status })
  const upstream = await ScriptedServer.open(t, ({ question }) => {
    const { name } = question!
    if (!Buffer.from(name).includes('example')) return Rcode.NXDOMAIN
    const rdata = Uint8Array.of(192, 0, 2, 1)
    return [{ owner: name, type: RRType.A, rrclass: RRClass.IN, ttlSeconds: 60, rdata }]
  })
  const http = await freePort()
  const corefile = `.:{PORT} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${http}
    ready 127.0.0.1:${http}
    autopath @kubernetes
    kubernetes cluster.local {
        kubeconfig ${cluster.kubeconfig('viewer')}
        pods verified
    }
    forward . 127.0.0.1:${upstream.port}
}
`
  const server = await startServer(t, { corefile })
  const ready = async () => (await getText(`http://127.0.0.1:${http}/ready`)).status === 200
  await until(ready, 'the cluster to be read')
  const query = async (from: string, name: string): Promise<string> => {
    const { status, answer } = await ask('dig', server.port, ['+rec', '-b', from, name, 'A'])
    return [status, ...answer.map((line) => line.split(' ').slice(3).join(' '))].join('; ')
  }
  const outside = `www.example.com.${SVC}`
  t.equal(await query(client, outside), 'NOERROR; A 192.0.2.1; CNAME www.example.com.')
  t.equal(await query('127.0.0.1', outside), 'NXDOMAIN', 'another client')
  t.equal(await query(client, 'www.example.com.empty.svc.cluster.local.'), 'NXDOMAIN')
  const other = await query(client, `dual.shop.${SVC}`)
  t.equal(other, `NOERROR; CNAME dual.${SVC}; A 10.0.0.81`, 'a Service by NAME.NAMESPACE')
  t.equal(await query(client, `dual.${SVC}`), 'NOERROR; A 10.0.0.81')
  const { text } = await getText(`http://127.0.0.1:${http}/metrics`)
  t.match(text, /coredns_autopath_success_total\{server="[^"]*"\} 3\n/)
}

const OUT = 'shop.example.org.'
const PROPERTIES = 'example.org in-addr.arpa {\n headless\n}'

/** What both servers answer, except where `ours` is given: there CoreDNS answers otherwise. */
const external: readonly (readonly [name: string, type: string, want: string, ours?: boolean])[] = [
  [`static.${OUT}`, 'A', 'NOERROR; A 192.0.2.1; A 192.0.2.2'],
  [`static.${OUT}`, 'AAAA', 'NOERROR; AAAA 2001:db8::1'],
  [`static.${OUT}`, 'SRV', `NOERROR; SRV 0 33 80 static.${OUT}`],
  [`_http._tcp.static.${OUT}`, 'SRV', `NOERROR; SRV 0 33 80 static.${OUT}`],
  [`_http._udp.static.${OUT}`, 'SRV', 'NXDOMAIN'],
  [`static.${OUT}`, 'TXT', 'NOERROR'],
  ['1.2.0.192.in-addr.arpa.', 'PTR', `NOERROR; PTR static.${OUT}`],
  ['9.2.0.192.in-addr.arpa.', 'PTR', 'NXDOMAIN'],
  [`balanced.${OUT}`, 'A', 'NOERROR; A 198.51.100.1'],
  ['1.100.51.198.in-addr.arpa.', 'PTR', `NOERROR; PTR balanced.${OUT}`],
  [`named.${OUT}`, 'A', 'NOERROR; CNAME lb.example.net.'],
  [`_http._tcp.named.${OUT}`, 'SRV', 'NOERROR; SRV 0 100 80 lb.example.net.'],
  [`named.${OUT}`, 'SRV', 'NOERROR; CNAME lb.example.net.', true],
  [`db.${OUT}`, 'A', 'NOERROR; A 10.1.0.2; A 10.1.0.3'],
  [`db.${OUT}`, 'AAAA', 'NOERROR; AAAA fd00::1'],
  [`10-1-0-2.db.${OUT}`, 'A', 'NOERROR; A 10.1.0.2'],
  [`x.db.${OUT}`, 'A', 'NXDOMAIN'],
  [`x.static.${OUT}`, 'A', 'NXDOMAIN', true],
  [`dual.${OUT}`, 'A', 'NXDOMAIN'],
  [`outside.${OUT}`, 'A', 'NXDOMAIN'],
  [`none.${OUT}`, 'A', 'NXDOMAIN'],
  [OUT, 'A', 'NOERROR'],
  ['none.example.org.', 'A', 'NXDOMAIN'],
  ['example.org.', 'NS', 'NOERROR; NS ns1.dns.example.org.'],
  ['example.org.', 'A', 'NOERROR'],
  ['dns.example.org.', 'A', 'NOERROR'],
  ['ns2.dns.example.org.', 'A', 'NXDOMAIN'],
]

async function testExternal(t: Test, cluster: Cluster): Promise<void> {
  const balanced = { type: 'LoadBalancer', ports: [HTTP] }
  const externalIPs = ['192.0.2.1', '192.0.2.2', '2001:db8::1']
  await cluster.must('POST', SERVICES, service('static', { externalIPs, ports: [HTTP] }))
  await cluster.must('POST', SERVICES, service('balanced', balanced))
  await cluster.must('POST', SERVICES, service('named', balanced))
  const setIngress = (name: string, entry: object) =>
    cluster.must('PATCH', `${SERVICES}/${name}/status`, {
      status: { loadBalancer: { ingress: [entry] } },
    })
  await setIngress('balanced', { ip: '198.51.100.1' })
  await setIngress('named', { hostname: 'lb.example.net' })
  await cluster.must('PATCH', `${SLICES}/db-1`, {
    endpoints: [{ addresses: ['10.1.0.2'] }, { addresses: ['10.1.0.3'] }],
  })
  const http = await freePort()
  const kubeconfig = cluster.kubeconfig('viewer')
  const inside = `kubernetes cluster.local {\n kubeconfig ${kubeconfig}\n}`
  const { port } = await startServer(t, {
    corefile: `cluster.local:{PORT} example.org:{PORT} in-addr.arpa:{PORT} {
    bind 127.0.0.1
    ready 127.0.0.1:${http}
    ${inside}
    k8s_external ${PROPERTIES}
    transfer {
        to *
    }
}
`,
  })
  const ready = async () => (await getText(`http://127.0.0.1:${http}/ready`)).status === 200
  await until(ready, 'the cluster to be read')
  const show = ({ status, answer }: Reply): string => {
    return [status, ...answer.map((line) => line.split(' ').slice(3).join(' '))].join('; ')
  }
  const query = async (name: string): Promise<string> => show(await ask('dig', port, [name, 'A']))
  const questions = external.map(([name, type]) => [name, type])
  const ours = (await askEach(port, [], questions)).map(show)
  for (const [i, [name, type, want]] of external.entries()) {
    t.equal(ours[i], want, `${name} ${type}`)
  }
  t.equal(await query(`dual.${SVC}`), 'NOERROR; A 10.0.0.81', 'a name inside of the cluster')
  // CI does not have it: no package of Debian contains it.
  if (isInstalled('coredns')) {
    const other = await startCoredns(t, `${inside}\nk8s_external ${PROPERTIES}`)
    for (const [name, type, want, isOurs = false] of external) {
      const answer = show(await ask('dig', other, [name, type]))
      t.equal(answer === want, !isOurs, `CoreDNS: ${name} ${type}: ${answer}`)
    }
  }
  const { text } = await ask('dig', port, ['example.org.', 'AXFR'])
  t.match(text, /balanced\.shop\.example\.org\.\s+5\s+IN\s+A\s+198\.51\.100\.1/)
  const sees = (name: string, want: string) =>
    until(async () => (await query(name)) === want, `${name} to be ${want}`)
  await setIngress('balanced', { hostname: 'other.example.net' })
  await sees(`balanced.${OUT}`, 'NOERROR; CNAME other.example.net.')
  await setIngress('balanced', { ip: '198.51.100.2' })
  await sees(`balanced.${OUT}`, 'NOERROR; A 198.51.100.2')
  await cluster.must('PATCH', `${SERVICES}/static`, { spec: { externalIPs: null } })
  await sees(`static.${OUT}`, 'NXDOMAIN')
  await cluster.must('DELETE', `${SERVICES}/balanced`)
  await sees(`balanced.${OUT}`, 'NXDOMAIN')
}
