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
