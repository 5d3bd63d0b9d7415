import { networkInterfaces } from 'node:os'
import t from 'tap'
import { RRClass, RRType } from '../../src/dns/iana/index.ts'
import { resolverObjectName } from '../../src/egress/policies/openshift/object-name.ts'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster, readCrd } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { LACKED } from '../support/rights.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

/** Ample: a busy machine takes long. */
const SEEN_MS = 120_000
const NAMESPACE = 'ovn-kubernetes'
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const RESOLVERS = `/apis/network.openshift.io/v1alpha1/namespaces/${NAMESPACE}/dnsnameresolvers`
const FIREWALLS = (namespace: string) =>
  `/apis/k8s.ovn.org/v1/namespaces/${namespace}/egressfirewalls`
const DNS_NAMES = `/apis/dns.openshift.io/v1alpha1/namespaces/${NAMESPACE}/egressfirewalldnsnames`
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices'
const WWW = 'www.example.com.'
const CONDITION = {
  type: 'Degraded',
  status: 'False',
  reason: 'NOERROR',
  message: 'No Error',
  lastTransitionTime: '2026-01-01T00:00:00Z',
}
/** The API refuses endpoints with loopback addresses. */
const HOST = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address

t.setTimeout(CLUSTER_TEST_MS)

/** Gives the rights of the operator's account to the user `viewer`. */
function forViewer(manifest: Manifest): Manifest {
  if (manifest.subjects === undefined) return manifest
  const apiGroup = 'rbac.authorization.k8s.io'
  return { ...manifest, subjects: [{ apiGroup, kind: 'User', name: 'viewer' }] }
}

function needsHost(): { readonly skip: string | false } {
  return { skip: HOST === undefined && 'this machine has no address but loopback' }
}

t.test('controllers for egress with the real API server', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  for (const namespace of [NAMESPACE, 'a', 'b']) await cluster.createNamespace(namespace)
  for (const crd of ['openshift/dnsnameresolvers', 'ovn/egressfirewalls']) {
    await cluster.must('POST', DEFINITIONS, readCrd(crd))
  }
  const areServed = async () => {
    const replies = [
      await cluster.call('GET', RESOLVERS),
      await cluster.call('GET', FIREWALLS('a')),
    ]
    return replies.every(({ status }) => status === 200)
  }
  await until(areServed, 'the definitions', SEEN_MS)
  const rights = composeManifests('deploy/egress-firewall').map(forViewer)
  await applyAll(cluster, rights)

  const start = (controllers: string, ...more: readonly string[]) =>
    RunningOperator.start(t, {
      kubeconfig: cluster.kubeconfig('viewer'),
      args: [`--controllers=${controllers}`, ...more],
    })
  const resolvers = async (): Promise<readonly string[]> => {
    const { items } = await cluster.must('GET', RESOLVERS)
    return items
      .map(
        ({ metadata, spec }: { metadata: { name: string }; spec: { name: string } }) =>
          `${metadata.name} ${spec.name}`,
      )
      .sort()
  }
  const resolver = (name: string, dnsName: string) =>
    cluster.must('POST', RESOLVERS, {
      apiVersion: 'network.openshift.io/v1alpha1',
      kind: 'DNSNameResolver',
      metadata: { name },
      spec: { name: dnsName },
    })
  const putFirewall = async (namespace: string, ...dnsNames: readonly string[]) => {
    const path = `${FIREWALLS(namespace)}/default?fieldManager=test&force=true`
    const object = {
      apiVersion: 'k8s.ovn.org/v1',
      kind: 'EgressFirewall',
      metadata: { name: 'default' },
      spec: { egress: dnsNames.map((dnsName) => ({ type: 'Allow', to: { dnsName } })) },
    }
    const contentType = 'application/apply-patch+yaml'
    const reply = await cluster.call('PATCH', path, object, { contentType })
    if (reply.status >= 300) throw new Error(JSON.stringify(reply.body))
  }
  const become = (want: readonly string[], what: string) =>
    until(async () => (await resolvers()).join() === [...want].sort().join(), what, SEEN_MS)
  const made = (dnsName: string) => `${resolverObjectName(dnsName)} ${dnsName}`

  await t.test('egressfirewall: each name in use has one DNSNameResolver', async (t) => {
    await putFirewall('a', 'www.example.com')
    await resolver('adopted', WWW)
    await resolver('unused', 'unused.example.com.')
    const operator = await start('egressfirewall')
    await become([`adopted ${WWW}`], 'adoption')
    await putFirewall('b', 'WWW.example.com.', '*.example.com')
    await become([`adopted ${WWW}`, made('*.example.com.')], 'a new name')
    await resolver('additional', '*.example.com.')
    await become([`adopted ${WWW}`, made('*.example.com.')], 'the end of a second object')
    await cluster.must('DELETE', `${FIREWALLS('a')}/default`)
    await cluster.must('DELETE', `${RESOLVERS}/adopted`)
    await become([made(WWW), made('*.example.com.')], 'a new object in the place of a deleted one')
    await putFirewall('b', 'www.example.com', 'com')
    await become([], 'no names of an object with an invalid one')
    const events = '/apis/events.k8s.io/v1/namespaces/b/events'
    const hasEvent = async () =>
      (await cluster.must('GET', events)).items.some(
        ({ reason }: { reason: string }) => reason === 'InvalidDNSName',
      )
    await until(hasEvent, 'an Event', SEEN_MS)
    t.notMatch(operator.output, LACKED)
    await cluster.killServer()
    await cluster.startServer()
    await putFirewall('b', 'www.example.com')
    await become([made(WWW)], 'a name after a restart of the API server')
    t.equal(await operator.metric('sextant_egressfirewall_names'), 1)
    t.equal(await operator.metric('sextant_egressfirewall_faulty_objects'), 0)
    t.equal(await operator.stop(), 0)
  })
  await t.test('dnsnameresolver: dead addresses are removed', needsHost(), async (t) => {
    const server = await ScriptedServer.open(
      t,
      ({ question }) => {
        const { name, type } = question!
        if (type !== RRType.A) return []
        const rdata = Uint8Array.of(192, 0, 2, 2)
        return [{ owner: name, type, rrclass: RRClass.IN, ttlSeconds: 3600, rdata }]
      },
      HOST,
    )
    await cluster.must('POST', SLICES, {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'kube-dns-1', labels: { 'kubernetes.io/service-name': 'kube-dns' } },
      addressType: 'IPv4',
      ports: [{ name: 'dns', protocol: 'UDP', port: server.port }],
      endpoints: [{ addresses: [HOST], conditions: { ready: true } }],
    })
    const patch = async (path: string, resolvedNames: readonly object[]) => {
      const contentType = 'application/merge-patch+json'
      const body = { status: { resolvedNames } }
      const reply = await cluster.call('PATCH', `${path}/status`, body, { contentType })
      if (reply.status >= 300) throw new Error(JSON.stringify(reply.body))
    }
    const lastLookupTime = `${new Date(Date.now() - 600_000).toISOString().slice(0, 19)}Z`
    const timed = (ip: string, ttlSeconds: number) => ({ ip, ttlSeconds, lastLookupTime })
    await resolver('www', WWW)
    const addresses = [timed('192.0.2.1', 1), timed('192.0.2.2', 3600)]
    const entry = { dnsName: WWW, conditions: [CONDITION], resolvedAddresses: addresses }
    await patch(`${RESOLVERS}/www`, [entry])
    // The definition of the first design is missing.
    const operator = await start('dnsnameresolver')
    const has = (path: string, want: readonly object[]) =>
      until(
        async () => {
          const { status } = await cluster.must('GET', path)
          return JSON.stringify(status.resolvedNames) === JSON.stringify(want)
        },
        `${path}: ${JSON.stringify(want)}`,
        SEEN_MS,
      )
    const { status } = await cluster.must('GET', `${RESOLVERS}/www`)
    const [, kept] = status.resolvedNames[0].resolvedAddresses
    await has(`${RESOLVERS}/www`, [{ ...status.resolvedNames[0], resolvedAddresses: [kept] }])
    t.ok(server.asked.length >= 2)
    t.equal(await operator.metric('sextant_dnsnameresolver_servers'), 1)
    t.equal(await operator.metric('sextant_dnsnameresolver_removed_total{what="addresses"}'), 1)
    t.notMatch(operator.output, LACKED)
    t.equal(await operator.stop(), 0)

    await cluster.must('POST', DEFINITIONS, readCrd('openshift/egressfirewalldnsnames'))
    await until(async () => (await cluster.call('GET', DNS_NAMES)).status === 200, 'it', SEEN_MS)
    await cluster.must('POST', DNS_NAMES, {
      apiVersion: 'dns.openshift.io/v1alpha1',
      kind: 'EgressFirewallDNSName',
      metadata: { name: 'www' },
      spec: { name: WWW },
    })
    await patch(`${DNS_NAMES}/www`, [
      { dnsName: WWW, ips: ['192.0.2.1', '192.0.2.2'], ttl: 30, lastLookupTime },
    ])
    const next = await start('dnsnameresolver')
    await has(`${DNS_NAMES}/www`, [{ dnsName: WWW, ips: ['192.0.2.2'], lastLookupTime, ttl: 30 }])
    t.notMatch(next.output, LACKED)
    t.equal(await next.stop(), 0)
  })
  await t.test('egressfirewall: the first design of the objects', needsHost(), async (t) => {
    const before = await resolvers()
    const operator = await start('egressfirewall', '--egress-kind=EgressFirewallDNSName')
    const names = async (): Promise<string> => {
      const { items } = await cluster.must('GET', DNS_NAMES)
      return items
        .map(({ metadata, spec }: Manifest) => `${metadata.name} ${spec.name}`)
        .sort()
        .join()
    }
    const have = async (...want: readonly string[]) =>
      until(async () => (await names()) === [...want].sort().join(), want.join(), SEEN_MS)
    await putFirewall('a', 'www.example.com', '*.example.net')
    await have(`www ${WWW}`, made('*.example.net.'))
    await cluster.must('DELETE', `${DNS_NAMES}/www`)
    await have(made(WWW), made('*.example.net.'))
    await putFirewall('a')
    await have(made(WWW))
    t.strictSame(await resolvers(), before, 'the other kind stays as it is')
    t.notMatch(operator.output, LACKED)
    t.equal(await operator.stop(), 0)
  })
})
