import type { ResourceLease, ResourceRegistry } from '../base/resource-registry.ts'
import { openApi } from '../kube/open-api.ts'
import { acquireCluster, isClusterRead } from './kubernetes/acquire.ts'
import type { KubernetesSourceOptions } from './kubernetes/kubernetes-source.ts'
import { acquireManifests, isManifestSourceOpen } from './manifests/acquire-manifests.ts'
import type { OwnedSource } from './owned-source.ts'
import type { SourcePlace } from './source-place.ts'

/**
 * Opens the source at that place, shared by all its users. Throws InputError if it can't be opened.
 * An unreachable API server is not an error: the source waits for it.
 */
export function acquireRecords(
  place: SourcePlace,
  resources: ResourceRegistry,
  parts: Omit<KubernetesSourceOptions, 'api' | 'namespaces' | 'sources' | 'random'>,
): Promise<ResourceLease<OwnedSource>> {
  if (place.kind === 'kubernetes') return acquireCluster(place, resources, parts)
  return acquireManifests({ ...parts, directory: place.directory }, resources)
}

/** Returns what is wrong with the configuration of a source; '' = nothing. Reads no records. Throws InputError. */
export async function warningOf(place: SourcePlace): Promise<string> {
  return place.kind === 'kubernetes' ? (await openApi(place)).warning : ''
}

/** True if this process has read the source. */
export function isRead(place: SourcePlace, resources: ResourceRegistry): boolean {
  if (place.kind === 'kubernetes') return isClusterRead(place, resources)
  return isManifestSourceOpen(place.directory, resources)
}
