import t from 'tap'
import { compilePod, object } from '../compiled.ts'

const CNP = 'cilium.io/v2 CiliumNetworkPolicy'
const CCNP = 'cilium.io/v2 CiliumClusterwideNetworkPolicy'

/** Which Pods a policy selects; the Pod is `a/web` with the label `app: web`, of the account `default`. */
const SUBJECTS: readonly {
  readonly name: string
  readonly type?: string
  readonly namespace?: string
  readonly endpointSelector: object
  readonly isSelected: boolean
}[] = [
  { name: 'all', endpointSelector: {}, isSelected: true },
  { name: 'of another namespace', namespace: 'b', endpointSelector: {}, isSelected: false },
  { name: 'by a label', endpointSelector: { matchLabels: { app: 'web' } }, isSelected: true },
  { name: 'k8s:', endpointSelector: { matchLabels: { 'k8s:app': 'web' } }, isSelected: true },
  { name: 'any:', endpointSelector: { matchLabels: { 'any:app': 'web' } }, isSelected: true },
  {
    name: 'of another source',
    endpointSelector: { matchLabels: { 'container:app': 'web' } },
    isSelected: false,
  },
  {
    name: 'an expression',
    endpointSelector: {
      matchExpressions: [{ key: 'k8s:app', operator: 'NotIn', values: ['db'] }],
    },
    isSelected: true,
  },
  {
    name: 'the service account',
    endpointSelector: { matchLabels: { 'io.cilium.k8s.policy.serviceaccount': 'default' } },
    isSelected: true,
  },
  {
    name: 'all namespaces',
    type: CCNP,
    endpointSelector: {},
    isSelected: true,
  },
  {
    name: 'the namespace by name',
    type: CCNP,
    endpointSelector: { matchLabels: { 'k8s:io.kubernetes.pod.namespace': 'a' } },
    isSelected: true,
  },
  {
    name: 'another namespace by name',
    type: CCNP,
    endpointSelector: { matchLabels: { 'io.kubernetes.pod.namespace': 'b' } },
    isSelected: false,
  },
  {
    name: 'the namespace by its labels',
    type: CCNP,
    endpointSelector: {
      matchLabels: { 'k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name': 'a' },
    },
    isSelected: true,
  },
  {
    name: 'another namespace by its labels',
    type: CCNP,
    endpointSelector: {
      matchExpressions: [{ key: 'io.cilium.k8s.namespace.labels.team', operator: 'Exists' }],
    },
    isSelected: false,
  },
]

t.test('which Pods policies of Cilium select', async (t) => {
  for (const { name, type = CNP, namespace = 'a', endpointSelector, isSelected } of SUBJECTS) {
    const policy = object(type, { endpointSelector, egress: [{}] }, { namespace })
    const { lists, problems } = compilePod([policy])
    t.equal(lists.length > 0, isSelected, name)
    t.strictSame(problems, [], name)
  }
  const other = { matchLabels: { 'k8s:io.kubernetes.pod.namespace': 'b' } }
  const { lists, problems } = compilePod([object(CNP, { endpointSelector: other, egress: [{}] })])
  t.strictSame(lists, [['deny others']], 'the namespace of the policy counts')
  t.match(problems[0], /spec.endpointSelector: namespace "b" is ignored: it is a/)
})
