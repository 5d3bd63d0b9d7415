import type { ResourceLease, ResourceRegistry } from '../base/resource-registry.ts'
import { acquireCluster, isClusterRead } from '../sources/kubernetes/acquire.ts'
import type { KubernetesSourceOptions } from '../sources/kubernetes/kubernetes-source.ts'
import { acquireManifests, isManifestSourceOpen } from '../sources/manifests/acquire-manifests.ts'
import type { OwnedSource } from '../sources/owned-source.ts'
import type { SourcePlace } from './source-place.ts'

/**
 * Opens the source at that place, shared by all its users. Throws InputError if it can't be opened.
 * An unreachable API server is not an error: the source waits for it.
 */
export function acquireRecords(
  place: SourcePlace,
  resources: ResourceRegistry,
  parts: Omit<KubernetesSourceOptions, 'api' | 'namespaces' | 'random'>,
): Promise<ResourceLease<OwnedSource>> {
  if (place.kind === 'kubernetes') return acquireCluster(place, resources, parts)
  return acquireManifests({ ...parts, directory: place.directory }, resources)
}

/** True if this process has read the source. */
export function isRead(place: SourcePlace, resources: ResourceRegistry): boolean {
  if (place.kind === 'kubernetes') return isClusterRead(place, resources)
  return isManifestSourceOpen(place.directory, resources)
}
