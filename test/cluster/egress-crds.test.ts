import t from 'tap'
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

t.setTimeout(CLUSTER_TEST_MS)

t.test('the definition of DNSNameResolver', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
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
})
