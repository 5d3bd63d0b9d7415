import { Random } from '../../base/random.ts'
import type { ApiClient } from '../../kube/api.ts'
import type { ApiPlace } from '../../kube/kubeconfig.ts'
import { acquireSource, RefCountedSource, sourcesWithPrefix } from '../ref-counted-source.ts'
import type { KubernetesSourceOptions } from './kubernetes-source.ts'

/** Which records of which cluster. */
export interface ClusterRecords extends ApiPlace {
  /** Empty = all. */
  readonly namespaces: readonly string[]
}

/**
 * The source of a cluster, followed, with all who read it. Throws InputError where the configuration is
 * of no use; an API server that can't be reached is waited for. The returned function gives it back;
 * the last one to do so closes it.
 */
export async function acquireCluster(
  records: ClusterRecords,
  parts: Omit<KubernetesSourceOptions, 'api' | 'namespaces' | 'random'>,
): Promise<{ readonly shared: RefCountedSource; readonly release: () => void }> {
  // All that knows Kubernetes is loaded with the first cluster.
  const { digestOf } = await import('../../kube/kubeconfig.ts')
  const { KubernetesSource } = await import('./kubernetes-source.ts')
  // Before it is loaded: what is edited in between is taken up by the next reload.
  const key = `${keyOf(records)} ${digestOf(records)}`
  const { api, warning } = await openApi(records)
  const random = new Random(Math.trunc(Math.random() * 2 ** 32))
  const { namespaces } = records
  return acquireSource(key, () => {
    if (warning !== '') parts.log.warning(warning)
    const source = new KubernetesSource({ ...parts, api, namespaces, random })
    return new RefCountedSource(source, parts)
  })
}

/**
 * True if somebody in this process has read it, by this configuration or as it was before it was edited:
 * one that is still waited for has nothing to serve.
 */
export function isClusterRead(records: ClusterRecords): boolean {
  return sourcesWithPrefix(`${keyOf(records)} `).some(({ source }) => source.unreadyReason() === '')
}

/** `warning`: what an operator should know of the configuration; '' = nothing. Throws InputError where it is of no use. */
export async function openApi(
  place: ApiPlace,
): Promise<{ readonly api: ApiClient; readonly warning: string }> {
  const { HttpsClient } = await import('../../kube/https-client.ts')
  const { loadKubeConfig, warningOf } = await import('../../kube/kubeconfig.ts')
  const load = () => loadKubeConfig(place)
  const config = await load()
  return { api: new HttpsClient(config, load), warning: warningOf(config) }
}

function keyOf({ kubeconfig, context, namespaces }: ClusterRecords): string {
  return `kubernetes ${JSON.stringify([kubeconfig, context, [...namespaces].sort()])}`
}
