import type { ObjectKind } from '../object-kind.ts'
import { NODES, PODS, SERVICES, SLICES } from './plurals.ts'
import { ServiceReader } from './service-reader.ts'

/** Services with host names, by the annotations of external-dns. */
export const SERVICE: ObjectKind = {
  word: 'service',
  resources: [
    { group: '', version: 'v1', plural: SERVICES, kind: 'Service' },
    {
      ...{ group: '', version: 'v1', plural: NODES, kind: 'Node' },
      isClusterScoped: true,
      isOnDemand: true,
    },
    {
      ...{ group: 'discovery.k8s.io', version: 'v1', plural: SLICES, kind: 'EndpointSlice' },
      isOnDemand: true,
    },
    { group: '', version: 'v1', plural: PODS, kind: 'Pod', isOnDemand: true },
  ],
  open: () => new ServiceReader(),
}
