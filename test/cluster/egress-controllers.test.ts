import t from 'tap'
import { resolverObjectName } from '../../src/egress/openshift/object-name.ts'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster, readCrd } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { RunningOperator } from '../support/operator.ts'
import { LACKED } from '../support/rights.ts'
import { until } from '../support/until.ts'

/** Ample: a busy machine takes long. */
const SEEN_MS = 120_000
const NAMESPACE = 'ovn-kubernetes'
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const RESOLVERS = `/apis/network.openshift.io/v1alpha1/namespaces/${NAMESPACE}/dnsnameresolvers`
const FIREWALLS = (namespace: string) =>
  `/apis/k8s.ovn.org/v1/namespaces/${namespace}/egressfirewalls`
const WWW = 'www.example.com.'

t.setTimeout(CLUSTER_TEST_MS)

/** Gives the rights of the operator's account to the user `viewer`. */
function forViewer(manifest: Manifest): Manifest {
  if (manifest.subjects === undefined) return manifest
  const apiGroup = 'rbac.authorization.k8s.io'
  return { ...manifest, subjects: [{ apiGroup, kind: 'User', name: 'viewer' }] }
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

  const start = (controllers: string) =>
    RunningOperator.start(t, {
      kubeconfig: cluster.kubeconfig('viewer'),
      args: [`--controllers=${controllers}`],
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
})
