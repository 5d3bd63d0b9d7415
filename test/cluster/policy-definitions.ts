import { POLICY_KINDS, type PolicyKind } from '../../src/egress/policies/policy-kinds.ts'
import type { Cluster } from '../support/cluster.ts'
import { until } from '../support/until.ts'

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
/** Ample: a busy machine takes long. */
const SERVED_MS = 120_000

/** The path of all objects of a kind, or of those of a namespace. */
export function policyPath({ resource }: PolicyKind, namespace = ''): string {
  const { group, version, plural } = resource
  const scope = namespace === '' ? '' : `/namespaces/${namespace}`
  return `/apis/${group}/${version}${scope}/${plural}`
}

/**
 * Defines the kinds of policies that have that name, with any spec, and waits until they are served. `version`: the only
 * one that is served.
 */
export async function definePolicies(
  cluster: Cluster,
  kinds: readonly string[],
  version?: string,
): Promise<void> {
  const chosen = POLICY_KINDS.filter(({ kind }) => kinds.includes(kind)).map((one) => {
    return version === undefined ? one : inVersion(one, version)
  })
  for (const one of chosen) await cluster.must('POST', DEFINITIONS, definitionOf(one))
  for (const one of chosen) {
    const isServed = async () => (await cluster.call('GET', policyPath(one))).status === 200
    await until(isServed, one.kind, SERVED_MS)
  }
}

/** The kind as a cluster serves it that has that version. */
export function inVersion(kind: PolicyKind, version: string): PolicyKind {
  return { ...kind, resource: { ...kind.resource, version } }
}

/** Serves `version` of a kind that was defined, instead of the former version. */
export async function replaceVersion(
  cluster: Cluster,
  kind: PolicyKind,
  version: string,
): Promise<void> {
  const { plural, group } = kind.resource
  const path = `${DEFINITIONS}/${plural}.${group}`
  const { spec } = await cluster.must('GET', path)
  const [former] = spec.versions
  const versions = [
    { ...former, served: false, storage: false },
    { ...former, name: version },
  ]
  await cluster.must('PATCH', path, { spec: { versions } })
  const isServed = async () => {
    return (await cluster.call('GET', policyPath(inVersion(kind, version)))).status === 200
  }
  await until(isServed, version, SERVED_MS)
}

function definitionOf({ kind, resource, isNamespaced }: PolicyKind): object {
  const { group, version, plural } = resource
  // The API server refuses groups of Kubernetes without a word of approval.
  const annotations = { 'api-approved.kubernetes.io': 'unapproved, for tests' }
  return {
    metadata: { name: `${plural}.${group}`, annotations },
    spec: {
      group,
      scope: isNamespaced ? 'Namespaced' : 'Cluster',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
        },
      ],
    },
  }
}
