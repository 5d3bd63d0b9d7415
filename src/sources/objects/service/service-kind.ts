import type { ObjectKind } from '../object-kind.ts'
import { NODES, PODS, SERVICES, ServiceReader, SLICES } from './service-reader.ts'

/** Services with host names, by the annotations of external-dns. */
export const SERVICE: ObjectKind = {
  word: 'service',
  resources: [
    { group: '', version: 'v1', plural: SERVICES, kind: 'Service' },
    { group: '', version: 'v1', plural: NODES, kind: 'Node', isClusterScoped: true },
    { group: 'discovery.k8s.io', version: 'v1', plural: SLICES, kind: 'EndpointSlice' },
    { group: '', version: 'v1', plural: PODS, kind: 'Pod' },
  ],
  open: () => new ServiceReader(),
}
