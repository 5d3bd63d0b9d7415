import t, { type Test } from 'tap'
import { CLUSTER_TEST_MS, Cluster, readCrd } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { until } from '../support/until.ts'

const NAMESPACE = 'openshift-ovn-kubernetes'
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const RESOLVERS = `/apis/network.openshift.io/v1alpha1/namespaces/${NAMESPACE}/dnsnameresolvers`

const LABEL_63 = 'a'.repeat(63)

/** Names of `spec.name`; `want`: what the refusal says, undefined = it is accepted. */
const NAMES: { dnsName: string; want?: RegExp }[] = [
  { dnsName: 'www.example.com.' },
  { dnsName: '*.example.com.' },
  { dnsName: `${LABEL_63}.com.` },
  { dnsName: 'www_example_com', want: /should match/ },
  { dnsName: '-example.com.', want: /should match/ },
  { dnsName: 'example-.com.', want: /should match/ },
  { dnsName: 'www.example.com', want: /should match/ },
  { dnsName: 'com.', want: /should match/ },
  { dnsName: '*.com.', want: /should match/ },
  { dnsName: 'ABCD.com.', want: /should match/ },
  { dnsName: `a${LABEL_63}.com.`, want: /should match/ },
  { dnsName: `${'a.'.repeat(127)}a.`, want: /may not be more than 254|[Tt]oo long/ },
]

const time = '2026-01-01T00:00:00Z'
const address = (ip: string) => ({ ip, ttlSeconds: 30, lastLookupTime: time })
const resolved = (...ips: string[]) => ({
  resolvedNames: [{ dnsName: 'www.example.com.', resolvedAddresses: ips.map(address) }],
})
const STATUSES: { name: string; status: object; want?: RegExp }[] = [
  { name: 'both families', status: resolved('192.0.2.1', '2001:db8::1') },
  { name: 'unspecified addresses', status: resolved('0.0.0.0', '::') },
  { name: 'capital letters', status: resolved('2001:DB8:FFFF::1') },
  { name: 'no IPv4 address', status: resolved('256.1.1.1'), want: /ip/ },
  { name: 'no IPv6 address', status: resolved('10000::'), want: /ip/ },
  { name: 'an address twice', status: resolved('192.0.2.1', '192.0.2.1'), want: /[Dd]uplicate/ },
  {
    name: 'an address without a time',
    status: {
      resolvedNames: [
        { dnsName: 'www.example.com.', resolvedAddresses: [{ ip: '192.0.2.1', ttlSeconds: 1 }] },
      ],
    },
    want: /lastLookupTime: Required/,
  },
  {
    name: 'a name that is none',
    status: { resolvedNames: [{ dnsName: 'a_b', resolvedAddresses: [] }] },
    want: /should match/,
  },
]

/** Destinations of a rule of an EgressFirewall. */
const DESTINATIONS: { to: object; want?: RegExp }[] = [
  { to: { dnsName: 'www.example.com' } },
  { to: { dnsName: '*.Example.com.' } },
  { to: { dnsName: 'com' } },
  { to: { cidrSelector: '192.0.2.0/24' } },
  { to: { nodeSelector: { matchLabels: { zone: 'a' } } } },
  { to: {}, want: /at least 1 / },
  { to: { dnsName: 'example.com', cidrSelector: '192.0.2.0/24' }, want: /at most 1 / },
  { to: { dnsName: 'a_b.example.com' }, want: /should match/ },
  { to: { dnsName: 'www.*.com' }, want: /should match/ },
]

/** Ports of such a rule. */
const PORTS: { ports: object; want?: RegExp }[] = [
  { ports: { port: 443, protocol: 'TCP' } },
  { ports: { port: 0, protocol: 'TCP' }, want: /greater than or equal to 1/ },
  { ports: { port: 65_536, protocol: 'UDP' }, want: /less than or equal to 65535/ },
  { ports: { port: 443, protocol: 'ICMP' }, want: /should match/ },
  { ports: { port: 443 }, want: /protocol: Required/ },
]

t.setTimeout(CLUSTER_TEST_MS)

t.test('the definitions for egress firewalls', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await t.test('DNSNameResolver', (t) => testResolvers(t, cluster))
  await t.test('EgressFirewall', (t) => testFirewalls(t, cluster))
  await t.test('EgressFirewallDNSName', (t) => testDnsNames(t, cluster))
})

async function testFirewalls(t: Test, cluster: Cluster): Promise<void> {
  await cluster.must('POST', DEFINITIONS, readCrd('ovn/egressfirewalls'))
  await cluster.createNamespace('team')
  const firewalls = '/apis/k8s.ovn.org/v1/namespaces/team/egressfirewalls'
  const isServed = async () => (await cluster.call('GET', firewalls)).status === 200
  await until(isServed, 'egressfirewalls', CLUSTER_TEST_MS)
  const { status } = await cluster.must('GET', `${DEFINITIONS}/egressfirewalls.k8s.ovn.org`)
  t.notOk(status.conditions.find(({ type }: { type: string }) => type === 'NonStructuralSchema'))
  const put = (name: string, rule: object) =>
    cluster.call('POST', `${firewalls}?dryRun=All`, {
      apiVersion: 'k8s.ovn.org/v1',
      kind: 'EgressFirewall',
      metadata: { name },
      spec: { egress: [{ type: 'Allow', ...rule }] },
    })
  const cases = [
    ...DESTINATIONS.map(({ to, want }) => ({ rule: { to }, want })),
    ...PORTS.map(({ ports, want }) => {
      return { rule: { to: { cidrSelector: '0.0.0.0/0' }, ports: [ports] }, want }
    }),
    { rule: { to: { cidrSelector: '0.0.0.0/0' }, type: 'Pass' }, want: /should match/ },
  ]
  for (const { rule, want } of cases) {
    const reply = await put('default', rule)
    if (want === undefined) t.equal(reply.status, 201, JSON.stringify(rule))
    else t.match(reply, { status: 422, body: { message: want } }, JSON.stringify(rule))
  }
  t.match(
    await put('other', { to: { cidrSelector: '0.0.0.0/0' } }),
    { status: 422, body: { message: /should match/ } },
    'one object in each namespace',
  )
}

async function testDnsNames(t: Test, cluster: Cluster): Promise<void> {
  await cluster.must('POST', DEFINITIONS, readCrd('openshift/egressfirewalldnsnames'))
  await cluster.createNamespace('first-design')
  const path = '/apis/dns.openshift.io/v1alpha1/namespaces/first-design/egressfirewalldnsnames'
  const isServed = async () => (await cluster.call('GET', path)).status === 200
  await until(isServed, 'egressfirewalldnsnames', CLUSTER_TEST_MS)
  const { status } = await cluster.must(
    'GET',
    `${DEFINITIONS}/egressfirewalldnsnames.dns.openshift.io`,
  )
  t.notOk(status.conditions.find(({ type }: { type: string }) => type === 'NonStructuralSchema'))
  const object = (name: string, dnsName: string) => ({
    apiVersion: 'dns.openshift.io/v1alpha1',
    kind: 'EgressFirewallDNSName',
    metadata: { name },
    spec: { name: dnsName },
  })
  for (const { dnsName, isRefused = false } of [
    { dnsName: 'www.example.com.' },
    { dnsName: '*.EXAMPLE.com.' },
    { dnsName: 'com.' },
    { dnsName: '-a-.com.' },
    { dnsName: 'www.example.com', isRefused: true },
    { dnsName: 'a_b.example.com.', isRefused: true },
    { dnsName: 'a.*.example.com.', isRefused: true },
  ]) {
    const reply = await cluster.call('POST', `${path}?dryRun=All`, object('n', dnsName))
    t.equal(reply.status, isRefused ? 422 : 201, dnsName)
  }
  await cluster.must('POST', path, object('n', 'www.example.com.'))
  const entry = { dnsName: 'www.example.com.', ips: ['192.0.2.1'], ttl: 30, lastLookupTime: time }
  for (const { change, want } of [
    { change: {} },
    { change: { ips: ['192.0.2.1', '2001:db8::1'] } },
    { change: { ips: null }, want: /ips: Required/ },
    { change: { ttl: 'x' }, want: /ttl/ },
    { change: { ttl: null }, want: /ttl: Required/ },
    { change: { lastLookupTime: 'now' }, want: /lastLookupTime/ },
    { change: { dnsName: 'a_b.' }, want: /should match/ },
  ]) {
    const patch = { status: { resolvedNames: [{ ...entry, ...change }] } }
    const reply = await cluster.call('PATCH', `${path}/n/status`, patch)
    if (want === undefined) t.equal(reply.status, 200, JSON.stringify(change))
    else t.match(reply, { status: 422, body: { message: want } }, JSON.stringify(change))
  }
}

async function testResolvers(t: Test, cluster: Cluster): Promise<void> {
  await cluster.must('POST', DEFINITIONS, readCrd('openshift/dnsnameresolvers'))
  await cluster.createNamespace(NAMESPACE)
  const isServed = async () => (await cluster.call('GET', RESOLVERS)).status === 200
  await until(isServed, 'dnsnameresolvers', CLUSTER_TEST_MS)
  const object = (name: string, dnsName: string) => ({
    apiVersion: 'network.openshift.io/v1alpha1',
    kind: 'DNSNameResolver',
    metadata: { name },
    spec: { name: dnsName },
  })
  const { status } = await cluster.must(
    'GET',
    `${DEFINITIONS}/dnsnameresolvers.network.openshift.io`,
  )
  t.notOk(status.conditions.find(({ type }: { type: string }) => type === 'NonStructuralSchema'))

  for (const [i, { dnsName, want }] of NAMES.entries()) {
    const reply = await cluster.call('POST', RESOLVERS, object(`n${i}`, dnsName))
    if (want === undefined) t.equal(reply.status, 201, dnsName)
    else t.match(reply, { status: 422, body: { message: want } }, dnsName)
  }
  t.match(
    await cluster.call('PATCH', `${RESOLVERS}/n0`, { spec: { name: 'other.example.com.' } }),
    { status: 422, body: { message: /spec\.name is immutable/ } },
    'another name',
  )
  for (const { name, status, want } of STATUSES) {
    const reply = await cluster.call('PATCH', `${RESOLVERS}/n0/status`, { status })
    if (want === undefined) t.equal(reply.status, 200, name)
    else t.match(reply, { status: 422, body: { message: want } }, name)
  }
}
