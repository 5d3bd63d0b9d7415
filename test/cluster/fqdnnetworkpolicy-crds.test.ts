import t, { type Test } from 'tap'
import { CLUSTER_TEST_MS, Cluster, readCrd } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { until } from '../support/until.ts'

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const APIS = [
  { group: 'networking.delta10.nl', version: 'v1alpha4', hasCache: true },
  { group: 'networking.gke.io', version: 'v1alpha3', hasCache: false },
]
const LABEL_63 = 'a'.repeat(63)
const FQDN = /fqdns/

/**
 * Names of a peer. `want`: what the refusal says, undefined = it is accepted. The same names are
 * accepted as by the webhook of gke-fqdnnetworkpolicies-golang, with the exceptions marked.
 */
const NAMES: { name: string; want?: RegExp }[] = [
  { name: 'example.com' },
  { name: 'example.com.' },
  { name: 'com' },
  { name: '1.2.3.4' },
  { name: `${LABEL_63}.com` },
  { name: `${'a.'.repeat(126)}a` },
  { name: 'münchen.example' },
  { name: 'straße.example' },
  { name: '日本.example' },
  { name: 'xn--mnchen-3ya.example' },
  // The webhook refuses capital letters; DNS does not distinguish them.
  { name: 'Example.com' },
  // Only IDNA knows that these are invalid. The controller reports them in the status.
  { name: 'xn--zzzzzzz.example' },
  { name: 'ab--c.example' },
  { name: '☃.example' },
  { name: '*.example.com', want: FQDN },
  { name: '_dmarc.example.com', want: FQDN },
  { name: 'a_b.example', want: FQDN },
  { name: '-a.example', want: FQDN },
  { name: 'a-.example', want: FQDN },
  { name: 'a..b', want: FQDN },
  { name: '', want: FQDN },
  { name: '.', want: FQDN },
  { name: `a${LABEL_63}.com`, want: FQDN },
  { name: `${'a.'.repeat(127)}aa`, want: FQDN },
  { name: 'exa mple.com', want: FQDN },
  { name: 'example.com/', want: FQDN },
]

const PORTS: { ports: object[]; want?: RegExp }[] = [
  { ports: [] },
  { ports: [{}] },
  { ports: [{ port: 1 }, { port: 65_535, protocol: 'UDP' }, { port: 443, protocol: 'SCTP' }] },
  { ports: [{ port: 'https' }] },
  {
    ports: [
      { port: 80, endPort: 90 },
      { port: 80, endPort: 80 },
    ],
  },
  { ports: [{ port: 66_443 }], want: /port/ },
  { ports: [{ port: 0 }], want: /port/ },
  { ports: [{ port: -1 }], want: /port/ },
  { ports: [{ port: '' }], want: /port/ },
  { ports: [{ port: 'HTTPS' }], want: /port/ },
  { ports: [{ port: 443, protocol: 'ICMP' }], want: /protocol/ },
  { ports: [{ port: 443, protocol: '' }], want: /protocol/ },
  { ports: [{ endPort: 90 }], want: /endPort needs/ },
  { ports: [{ port: 'https', endPort: 90 }], want: /endPort needs/ },
  { ports: [{ port: 91, endPort: 90 }], want: /endPort needs/ },
]

const HTTPS = [{ port: 443 }]
const POD = { matchExpressions: [{ key: 'role', operator: 'In', values: ['a'] }] }
const to = (fqdns: string[], ports: object[] = HTTPS) => ({ egress: [{ to: [{ fqdns }], ports }] })
const from = (fqdns: string[], ports: object[] = HTTPS) => ({
  ingress: [{ from: [{ fqdns }], ports }],
})

const SPECS: { name: string; spec: object; want?: RegExp }[] = [
  { name: 'no rules', spec: { podSelector: {} } },
  { name: 'all fields', spec: { podSelector: POD, ...to(['a.example']), ...from(['b.example']) } },
  { name: 'policy types', spec: { podSelector: {}, policyTypes: ['Egress', 'Ingress'] } },
  { name: 'no podSelector', spec: to(['a.example']), want: /podSelector: Required/ },
  { name: 'no peers', spec: { podSelector: {}, egress: [{}] }, want: /to: Required/ },
  { name: 'no names', spec: { podSelector: {}, ingress: [{ from: [{}] }] }, want: /fqdns: Requ/ },
  { name: 'other type', spec: { podSelector: {}, policyTypes: ['Both'] }, want: /Both/ },
]

const TIME = '2026-01-01T00:00:00Z'
const cacheOf = (entry: object) => ({ state: 'Active', cache: { 'a.example': entry } })
const STATUSES: { name: string; status: object; want?: RegExp }[] = [
  { name: 'Pending', status: { state: 'Pending', reason: 'no ready endpoints' } },
  { name: 'times', status: { state: 'Active', lastSyncTime: TIME, nextSyncTime: TIME } },
  { name: 'no state', status: { reason: 'unknown' }, want: /state: Required/ },
]
const CACHES: typeof STATUSES = [
  {
    name: 'a cache',
    status: cacheOf({ nextUdateTime: TIME, ipExpiration: { '192.0.2.1/32': TIME } }),
  },
  {
    name: 'another spelling',
    status: cacheOf({ nextUpdateTime: TIME, ipExpiration: {} }),
    want: /nextUdateTime: Required/,
  },
  {
    name: 'no date',
    status: cacheOf({ nextUdateTime: TIME, ipExpiration: { '192.0.2.1/32': 'soon' } }),
    want: /ipExpiration/,
  },
]

t.setTimeout(CLUSTER_TEST_MS)

t.test('the definitions of FQDNNetworkPolicy', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  for (const api of APIS) await t.test(api.group, (t) => checkDefinition(t, cluster, api))
})

async function checkDefinition(t: Test, cluster: Cluster, api: (typeof APIS)[number]) {
  const { group, version, hasCache } = api
  await cluster.must('POST', DEFINITIONS, readCrd(`fqdnnetworkpolicy/${group}`))
  const policies = `/apis/${group}/${version}/namespaces/default/fqdnnetworkpolicies`
  const isServed = async () => (await cluster.call('GET', policies)).status === 200
  await until(isServed, 'fqdnnetworkpolicies', CLUSTER_TEST_MS)
  const definition = `${DEFINITIONS}/fqdnnetworkpolicies.${group}`
  const { status: defined } = await cluster.must('GET', definition)
  t.notOk(defined.conditions.find(({ type }: { type: string }) => type === 'NonStructuralSchema'))

  let count = 0
  const check = async (spec: object, want: RegExp | undefined, what: string) => {
    const metadata = { name: `p${count++}` }
    const object = { apiVersion: `${group}/${version}`, kind: 'FQDNNetworkPolicy', metadata, spec }
    const reply = await cluster.call('POST', policies, object)
    if (want === undefined) t.equal(reply.status, 201, `${what} ${JSON.stringify(reply.body)}`)
    else t.match(reply, { status: 422, body: { message: want } }, what)
  }
  for (const { name, want } of NAMES) {
    await check({ podSelector: {}, ...to([name]) }, want, `egress to ${name}`)
    await check({ podSelector: {}, ...from([name]) }, want, `ingress from ${name}`)
  }
  for (const { ports, want } of PORTS) {
    const what = JSON.stringify(ports)
    await check({ podSelector: {}, ...to(['a.example'], ports) }, want, `egress ${what}`)
    await check({ podSelector: {}, ...from(['a.example'], ports) }, want, `ingress ${what}`)
  }
  for (const { name, spec, want } of SPECS) await check(spec, want, name)
  const { spec } = await cluster.must('GET', `${policies}/p0`)
  t.strictSame(spec.egress[0].ports, [{ port: 443, protocol: 'TCP' }], 'the default protocol')

  for (const { name, status, want } of [...STATUSES, ...(hasCache ? CACHES : [])]) {
    const reply = await cluster.call('PATCH', `${policies}/p0/status`, { status })
    if (want === undefined) t.match(reply, { status: 200, body: { status } }, name)
    else t.match(reply, { status: 422, body: { message: want } }, name)
    await cluster.must('PATCH', `${policies}/p0/status`, { status: null })
  }
}
