import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Delv } from '../e2e/delv.ts'
import { type RunningResolver, startUnboundResolver } from '../e2e/resolvers.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { askEach } from '../support/dig.ts'
import { getText } from '../support/get-text.ts'
import { needs } from '../support/peer.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/*
 * `kubernetes` and `k8s_external` with `dnssec`, over the real API server: delv and Unbound validate every answer, also
 * while Services come and go. Unbound reuses proofs for other questions (RFC 8198).
 */

t.setTimeout(CLUSTER_TEST_MS)

const SERVICES = '/api/v1/namespaces/shop/services'
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices'
const HTTP = { name: 'http', protocol: 'TCP', port: 80 }
const SVC = 'shop.svc.cluster.local'
const OUT = 'shop.example.org'

/** Questions of each signed zone, and the data of the answer; '' = a proof that the name, or the type, does not exist. */
const QUESTIONS: Readonly<Record<string, readonly (readonly [question: string, data: string])[]>> =
  {
    'cluster.local': [
      [`web.${SVC} A`, '10.0.0.80'],
      [`web.${SVC} AAAA`, ''],
      [`web.${SVC} DS`, ''],
      [`web.${SVC} TYPE65280`, ''],
      [`_http._tcp.web.${SVC} SRV`, `0 100 80 web.${SVC}.`],
      [`_tcp.web.${SVC} A`, ''],
      [`_http._udp.web.${SVC} SRV`, ''],
      [`db.${SVC} A`, '10.1.0.1 10.1.0.2'],
      [`db-0.db.${SVC} A`, '10.1.0.1'],
      [`db-0.db.${SVC} AAAA`, ''],
      [`10-1-0-2.db.${SVC} A`, '10.1.0.2'],
      [`_http._tcp.db.${SVC} SRV`, `0 50 80 10-1-0-2.db.${SVC}. 0 50 80 db-0.db.${SVC}.`],
      [`none.${SVC} A`, ''],
      [`a.b.none.${SVC} A`, ''],
      ['none.svc.cluster.local A', ''],
      ['empty.svc.cluster.local A', ''],
      ['svc.cluster.local A', ''],
      ['10-1-0-9.shop.pod.cluster.local A', '10.1.0.9'],
      ['dns-version.cluster.local TXT', '"1.1.0"'],
      ['cluster.local SOA', 'SOA'],
      ['cluster.local NS', 'ns.dns.cluster.local.'],
      ['cluster.local DNSKEY', 'DNSKEY'],
      // A key has CDS once caches have it.
      ['cluster.local CDS', ''],
      ['cluster.local TXT', ''],
      [`fresh.${SVC} A`, ''],
    ],
    '10.in-addr.arpa': [
      ['80.0.0.10.in-addr.arpa PTR', `web.${SVC}.`],
      ['1.0.1.10.in-addr.arpa PTR', `db-0.db.${SVC}.`],
      ['9.9.9.10.in-addr.arpa PTR', ''],
      ['0.10.in-addr.arpa PTR', ''],
      ['80.0.0.10.in-addr.arpa A', ''],
    ],
    'example.org': [
      [`web.${OUT} A`, '192.0.2.80'],
      [`web.${OUT} AAAA`, ''],
      [`_http._tcp.web.${OUT} SRV`, `0 100 80 web.${OUT}.`],
      [`_tcp.web.${OUT} A`, ''],
      [`none.${OUT} A`, ''],
      [`${OUT} A`, ''],
      ['none.example.org A', ''],
      ['ns1.dns.example.org AAAA', ''],
      ['example.org SOA', 'SOA'],
      ['example.org NS', 'ns1.dns.example.org.'],
      ['example.org DNSKEY', 'DNSKEY'],
      ['example.org MX', ''],
    ],
    '2.0.192.in-addr.arpa': [
      ['80.2.0.192.in-addr.arpa PTR', `web.${OUT}.`],
      ['81.2.0.192.in-addr.arpa PTR', ''],
    ],
  }

const service = (name: string, spec: object) => ({ metadata: { name }, spec })

async function fill(cluster: Cluster): Promise<void> {
  await cluster.createNamespace('shop')
  await cluster.createNamespace('empty')
  const web = { clusterIP: '10.0.0.80', externalIPs: ['192.0.2.80'], ports: [HTTP] }
  await cluster.must('POST', SERVICES, service('web', web))
  await cluster.must('POST', SERVICES, service('db', { clusterIP: 'None', ports: [HTTP] }))
  await cluster.must('POST', SLICES, {
    addressType: 'IPv4',
    metadata: { name: 'db-1', labels: { 'kubernetes.io/service-name': 'db' } },
    ports: [HTTP],
    endpoints: [{ addresses: ['10.1.0.1'], hostname: 'db-0' }, { addresses: ['10.1.0.2'] }],
  })
  await cluster.must('POST', SERVICES, service('churn', { clusterIP: 'None', ports: [HTTP] }))
  await cluster.must('POST', SLICES, {
    addressType: 'IPv4',
    metadata: { name: 'churn-1', labels: { 'kubernetes.io/service-name': 'churn' } },
    ports: [HTTP],
    endpoints: endpointsOf(0),
  })
  await cluster.must('POST', '/api/v1/namespaces/shop/serviceaccounts', {
    metadata: { name: 'default' },
  })
  const pods = '/api/v1/namespaces/shop/pods'
  const spec = { containers: [{ name: 'c', image: 'none' }], automountServiceAccountToken: false }
  await cluster.must('POST', pods, { metadata: { name: 'p' }, spec })
  const status = { podIP: '10.1.0.9', podIPs: [{ ip: '10.1.0.9' }] }
  await cluster.must('PATCH', `${pods}/p/status`, { status })
}

/** Endpoints that come and go: none, or up to three. */
function endpointsOf(round: number): object[] {
  return Array.from({ length: round % 4 }, (_, i) => {
    return { addresses: [`10.1.1.${round + i + 1}`], hostname: `pod-${i}` }
  })
}

/** Asks for names of the endpoints that come and go; returns what is not validated. */
async function faultsOfChurn({ port }: RunningResolver): Promise<string[]> {
  const names = ['churn', 'pod-0.churn', 'pod-2.churn', '_http._tcp.churn']
  const words = names.map((name) => [`${name}.${SVC}`, name.startsWith('_') ? 'SRV' : 'A'])
  const replies = await askEach(port, ['+dnssec', '+rec'], words)
  return replies.flatMap(({ status, flags }, i) => {
    const isSo = status === 'NOERROR' && flags.includes('ad')
    return isSo ? [] : [`${words[i]!.join(' ')}: ${status} ${flags.join(' ')}`]
  })
}

/** The DNSKEY record of the only key of a zone in a directory. */
function keyOf(directory: string, zone: string): string {
  const file = readdirSync(directory).find(
    (name) => /\.key$/.test(name) && name.startsWith(`K${zone}.+`),
  )
  const lines = readFileSync(join(directory, file!), 'latin1').split('\n')
  return lines.find((line) => line.includes(' DNSKEY '))!
}

/** Asks a resolver all questions of a zone; returns what is not as expected. */
async function faultsAt(resolver: RunningResolver, zone: string): Promise<string[]> {
  const questions = QUESTIONS[zone]!
  const words = questions.map(([question]) => question.split(' '))
  const replies = await askEach(resolver.port, ['+dnssec', '+rec'], words)
  return questions.flatMap(([question, data], i) => {
    const { status, flags, answer } = replies[i]!
    const got = answer
      .map((line) => line.split(' '))
      .filter(([, , , type]) => type !== 'RRSIG')
      .map(([, , , type, ...rest]) => (data === type ? type : rest.join(' ')))
      .join(' ')
    const isSo = status === 'NOERROR' && flags.includes('ad') && got === data
    return isSo ? [] : [`${question}: ${status} ${flags.join(' ')} ${got}`]
  })
}

const NEEDS = { ...needsCluster(), ...needs('dig', 'delv', 'unbound') }

t.test('the signed names of a cluster', NEEDS, async (t) => {
  const cluster = await Cluster.start(t)
  await fill(cluster)
  const zones = Object.keys(QUESTIONS)
  const http = await freePort()
  const { port, directory } = await startServer(t, {
    corefile: `${zones.map((zone) => `${zone}:{PORT}`).join(' ')} {
    bind 127.0.0.1
    kubernetes cluster.local 10.in-addr.arpa {
        kubeconfig ${cluster.kubeconfig('admin')}
        pods verified
    }
    k8s_external example.org 2.0.192.in-addr.arpa
    dnssec {
        keys keys
    }
    ready 127.0.0.1:${http}
}
`,
  })
  const isReady = async () => (await getText(`http://127.0.0.1:${http}/ready`)).status === 200
  await until(isReady, 'the cluster to be read')
  const resolvers = new Map<string, RunningResolver>()
  for (const zone of zones) {
    const key = keyOf(join(directory, 'keys'), zone)
    const delv = new Delv(port, directory, key)
    for (const [question] of QUESTIONS[zone]!) await delv.expect(t, question, 'NOERROR', true)
    const options = { key, zones: { [zone]: [port] }, reuses: 'proofs' } as const
    const resolver = await startUnboundResolver(t, options)
    resolvers.set(zone, resolver)
    t.strictSame(await faultsAt(resolver, zone), [], `${zone}: Unbound`)
    t.strictSame(await faultsAt(resolver, zone), [], `${zone}: Unbound again, with proofs`)
  }

  const faults = new Set<string>()
  let isChanging = true
  const changes = (async () => {
    for (let round = 0; round < 30; round++) {
      const more = {
        clusterIP: `10.0.0.${100 + round}`,
        ports: [HTTP],
        externalIPs: ['192.0.2.90'],
      }
      await cluster.must('POST', SERVICES, service(`more-${round}`, more))
      await cluster.must('PATCH', `${SLICES}/churn-1`, { endpoints: endpointsOf(round) })
      if (round % 2 === 1) await cluster.must('DELETE', `${SERVICES}/more-${round - 1}`)
    }
  })().finally(() => {
    isChanging = false
  })
  const inner = resolvers.get('cluster.local')!
  while (isChanging) {
    for (const fault of await faultsOfChurn(inner)) faults.add(fault)
    for (const [zone, resolver] of resolvers)
      for (const fault of await faultsAt(resolver, zone)) faults.add(fault)
  }
  await changes
  t.strictSame([...faults], [], 'while Services and endpoints come and go')

  await cluster.must('POST', SERVICES, service('fresh', { clusterIP: '10.0.0.99', ports: [HTTP] }))
  const isFound = async (): Promise<boolean> => {
    const [reply] = await askEach(inner.port, ['+dnssec', '+rec'], [[`fresh.${SVC}`, 'A']])
    t.equal(reply!.status, 'NOERROR')
    t.ok(reply!.flags.includes('ad'))
    return reply!.answer.some((line) => line.includes(' A 10.0.0.99'))
  }
  await until(isFound, 'the new Service after its proof of absence expired')
})
