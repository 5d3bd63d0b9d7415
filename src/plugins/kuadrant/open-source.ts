import { acquireCluster, isClusterRead } from '../../record/kubernetes/acquire.ts'
import type { KubernetesSourceOptions } from '../../record/kubernetes/kubernetes-source.ts'
import { acquireManifests, isManifestSourceOpen } from '../../record/manifests/acquire-manifests.ts'
import type { RefCountedSource } from '../../record/ref-counted-source.ts'
import type { SourcePlace } from './source-place.ts'

/**
 * The source at that place, and the function that gives it back. Throws InputError where it can't be
 * opened; an API server that can't be reached is waited for.
 */
export function acquire(
  place: SourcePlace,
  parts: Omit<KubernetesSourceOptions, 'api' | 'namespaces' | 'random'>,
): Promise<{ readonly shared: RefCountedSource; readonly release: () => void }> {
  if (place.kind === 'kubernetes') return acquireCluster(place, parts)
  return acquireManifests({ ...parts, directory: place.directory })
}

/** True if somebody in this process has read it. */
export function isRead(place: SourcePlace): boolean {
  return place.kind === 'kubernetes' ? isClusterRead(place) : isManifestSourceOpen(place.directory)
}
