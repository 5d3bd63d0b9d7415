import { InputError } from '../../base/errors.ts'
import {
  acquireCluster,
  type ClusterRecords,
  isClusterRead,
} from '../../record/kubernetes/acquire.ts'
import type { KubernetesSourceOptions } from '../../record/kubernetes/kubernetes-source.ts'
import { acquireSource, isSourceOpen } from '../../record/manifests/shared-source.ts'
import type { SharedSource } from '../../record/source-sharing.ts'

/** Where a block has its records from. */
export type SourcePlace =
  | { readonly kind: 'manifests' /** Absolute. */; readonly directory: string }
  | ({ readonly kind: 'kubernetes' } & ClusterRecords)

/** Names it in metrics; equal for equal places, among blocks of one process. */
export function nameOf(place: SourcePlace): string {
  if (place.kind === 'manifests') return place.directory
  const { kubeconfig, context } = place
  return ['kubernetes', kubeconfig, context].filter((part) => part !== '').join(' ')
}

/**
 * The source at that place, and the function that gives it back. Throws InputError where it can't be
 * opened; an API server that can't be reached is waited for.
 */
export function acquire(
  place: SourcePlace,
  parts: Omit<KubernetesSourceOptions, 'api' | 'namespaces' | 'random'>,
): Promise<{ readonly shared: SharedSource; readonly release: () => void }> {
  if (place.kind === 'kubernetes') return acquireCluster(place, parts)
  return acquireSource({ ...parts, directory: place.directory })
}

/** True if somebody in this process has read it. */
export function isRead(place: SourcePlace): boolean {
  return place.kind === 'kubernetes' ? isClusterRead(place) : isSourceOpen(place.directory)
}

/** RFC 1123 section 2.1, as the API has it. */
const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * Reads WATCH_NAMESPACES: a comma list, blanks around names or none at all; empty = all namespaces. Throws
 * InputError for what can't be a namespace.
 */
export function scanNamespaces(text: string): string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const bad = names.find((name) => !NAMESPACE.test(name))
  if (bad === undefined) return names
  const cure = 'names of namespaces are lower case letters, digits and dashes, with commas between'
  throw new InputError(
    'NAMESPACE',
    undefined,
    `WATCH_NAMESPACES: ${JSON.stringify(bad)} is no namespace: ${cure}`,
  )
}
