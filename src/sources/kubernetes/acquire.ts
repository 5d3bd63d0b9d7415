import { Random } from '../../base/random.ts'
import type { ResourceLease, ResourceRegistry } from '../../base/resource-registry.ts'
import type { ApiPlace } from '../../kube/kubeconfig.ts'
import { openApi } from '../../kube/open-api.ts'
import { acquireSource, OwnedSource } from '../owned-source.ts'
import type { KubernetesSourceOptions } from './kubernetes-source.ts'

/** Selects the records of a cluster. */
export interface ClusterRecords extends ApiPlace {
  /** Empty = all namespaces. */
  readonly namespaces: readonly string[]
  /** The kinds that are read: at least one of `SOURCE_WORDS`, in their order. Missing = DNSRecords only. */
  readonly sources?: readonly string[]
}

type SourceParts = Omit<KubernetesSourceOptions, 'api' | 'namespaces' | 'sources' | 'random'>

/**
 * Returns the source of a cluster, started and shared by all its users. Throws InputError if the
 * configuration is invalid. Waits for an API server that can't be reached.
 */
export async function acquireCluster(
  records: ClusterRecords,
  resources: ResourceRegistry,
  parts: SourceParts,
): Promise<ResourceLease<OwnedSource>> {
  // The Kubernetes modules are loaded with the first cluster.
  const { digestOf } = await import('../../kube/kubeconfig.ts')
  const { KubernetesSource } = await import('./kubernetes-source.ts')
  // Before the configuration is loaded: the next reload then applies an edit that happens in
  // between.
  const drains = JSON.stringify([parts.readsNamespaces === true, parts.drainsPlace ?? null])
  const key = `${keyOf(records)} ${digestOf(records)} ${drains}`
  const { api, warning } = await openApi(records)
  const random = new Random(Math.trunc(Math.random() * 2 ** 32))
  const { namespaces, sources } = records
  return acquireSource(resources, key, () => {
    if (warning !== '') parts.log.warning(warning, 'kubeconfig-warning')
    const source = new KubernetesSource({ ...parts, api, namespaces, sources, random })
    return new OwnedSource(source, parts)
  })
}

/**
 * True if a source in this process has read the cluster, with this configuration or with one from
 * before an edit. A source that still waits for its cluster has nothing to serve.
 */
export function isClusterRead(records: ClusterRecords, resources: ResourceRegistry): boolean {
  const sources = resources.withPrefix(OwnedSource, `${keyOf(records)} `)
  return sources.some(({ source }) => source.unreadyReason() === '')
}

function keyOf({ kubeconfig, context, namespaces, sources }: ClusterRecords): string {
  return `kubernetes ${JSON.stringify([kubeconfig, context, [...namespaces].sort(), sources])}`
}
