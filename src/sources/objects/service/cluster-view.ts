import type { NodeParts, PodParts, SliceParts } from './cluster-parts.ts'

/** The objects that the records of Services depend on. */
export interface ServiceCluster {
  nodes(): Iterable<NodeParts>
  /** Undefined = it is not known. */
  node(name: string): NodeParts | undefined
  /** The EndpointSlices of a Service, in the order of their names. `service`: `namespace/name`. */
  slicesOf(service: string): readonly SliceParts[]
  /** `key`: `namespace/name`. Undefined = it is not known. */
  pod(key: string): PodParts | undefined
}
