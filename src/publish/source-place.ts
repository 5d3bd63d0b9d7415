import { InputError } from '../base/errors.ts'
import type { ClusterRecords } from '../sources/kubernetes/acquire.ts'

/** Where a block reads its records from. */
export type SourcePlace =
  | { readonly kind: 'manifests' /** Absolute path. */; readonly directory: string }
  | ({ readonly kind: 'kubernetes' } & ClusterRecords)

/** Returns the source's name in metrics; equal for equal places within one process. */
export function nameOf(place: SourcePlace): string {
  if (place.kind === 'manifests') return place.directory
  const { kubeconfig, context } = place
  return ['kubernetes', kubeconfig, context].filter((part) => part !== '').join(' ')
}

/** RFC 1123 section 2.1, as the Kubernetes API requires. */
const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * Reads WATCH_NAMESPACES: a comma list, with optional blanks around names; empty = all namespaces.
 * Throws InputError for an invalid namespace.
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
    undefined,
    `WATCH_NAMESPACES: ${JSON.stringify(bad)} is no namespace: ${cure}`,
  )
}
