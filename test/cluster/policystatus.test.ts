import t from 'tap'
import { POLICY_KINDS } from '../../src/egress/policies/policy-kinds.ts'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { LACKED } from '../support/rights.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'
import { definePolicies, policyPath } from './policy-definitions.ts'

/** Ample: a busy machine takes long. */
const SEEN_MS = 120_000
const KIND = POLICY_KINDS.find(({ kind }) => kind === 'ClusterNetworkPolicy')!
const PATH = `${policyPath(KIND)}/one`

t.setTimeout(CLUSTER_TEST_MS)

/** Gives the rights of the operator's account to the user `viewer`. */
function forViewer(manifest: Manifest): Manifest {
  if (manifest.subjects === undefined) return manifest
  const apiGroup = 'rbac.authorization.k8s.io'
  return { ...manifest, subjects: [{ apiGroup, kind: 'User', name: 'viewer' }] }
}

t.test('conditions of policies, with the real API server', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  // The other kinds are missing.
  await definePolicies(cluster, ['ClusterNetworkPolicy'])
  await applyAll(cluster, composeManifests('deploy/policy-status').map(forViewer))
  const policy = (peer: object) => ({
    apiVersion: 'policy.networking.k8s.io/v1beta1',
    kind: 'ClusterNetworkPolicy',
    metadata: { name: 'one' },
    spec: {
      tier: 'Admin',
      priority: 1,
      subject: { namespaces: {} },
      egress: [{ action: 'Accept', to: [peer] }],
    },
  })
  await cluster.must('POST', policyPath(KIND), policy({ domainNames: ['www.example.com'] }))
  const contentType = 'application/merge-patch+json'
  const foreign = { type: 'Ready-In-Zone-a', status: 'True' }
  const body = { status: { conditions: [foreign] } }
  t.equal((await cluster.call('PATCH', `${PATH}/status`, body, { contentType })).status, 200)

  const operator = await RunningOperator.start(t, {
    kubeconfig: cluster.kubeconfig('viewer'),
    args: ['--controllers=policystatus'],
  })
  const become = async (status: string, generation: number): Promise<void> => {
    let found: unknown
    const isSo = async () => {
      found = (await cluster.must('GET', PATH)).status?.conditions
      const wanted = [foreign, { type: 'SextantAccepted', status, observedGeneration: generation }]
      return (found as object[]).length === 2 && contains(found as object[], wanted)
    }
    await until(isSo, `${status} ${generation}`, SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(found)}\n${operator.output}`)
    })
  }
  await become('True', 1)
  const { metadata } = await cluster.must('GET', PATH)
  await cluster.must('PUT', PATH, {
    ...policy({ moons: {} }),
    metadata: { name: 'one', resourceVersion: metadata.resourceVersion },
  })
  await become('False', 2)
  t.notMatch(operator.output, LACKED)
  t.equal(await operator.stop(), 0)
})

/** True if each object has the fields of the wanted one at its place. */
function contains(found: readonly object[], wanted: readonly object[]): boolean {
  return wanted.every((want, i) => {
    return Object.entries(want).every(([field, value]) => Reflect.get(found[i]!, field) === value)
  })
}
