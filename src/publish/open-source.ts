import { acquireCluster, isClusterRead } from '../sources/kubernetes/acquire.ts'
import type { KubernetesSourceOptions } from '../sources/kubernetes/kubernetes-source.ts'
import { acquireManifests, isManifestSourceOpen } from '../sources/manifests/acquire-manifests.ts'
import type { RefCountedSource } from '../sources/ref-counted-source.ts'
import type { SourcePlace } from './source-place.ts'

/**
 * Opens the source at that place; returns it with the function that releases it. Throws InputError
 * if it can't be opened. An unreachable API server is not an error: the source waits for it.
 */
export function acquire(
  place: SourcePlace,
  parts: Omit<KubernetesSourceOptions, 'api' | 'namespaces' | 'random'>,
): Promise<{ readonly shared: RefCountedSource; readonly release: () => void }> {
  if (place.kind === 'kubernetes') return acquireCluster(place, parts)
  return acquireManifests({ ...parts, directory: place.directory })
}

/** True if this process has read the source. */
export function isRead(place: SourcePlace): boolean {
  return place.kind === 'kubernetes' ? isClusterRead(place) : isManifestSourceOpen(place.directory)
}
