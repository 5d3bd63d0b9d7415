import type { ResourceLease } from '../../base/resource-registry.ts'
import { key } from '../../base/shared-values.ts'
import type { Address } from '../../dns/text/address.ts'
import type { ClusterWatch } from './cluster-watch.ts'

/** The cluster of a server block, for all directives that serve names of it. */
export interface ServedCluster {
  /** Endpoints without a hostname are named after their Pods. */
  readonly podNames: boolean
  /** How long a start waits for the cluster. */
  readonly startupMs: number
  /** Returns the addresses of this server. */
  readonly ownAddresses: () => readonly Address[]
  /** Returns the watch of the objects. Rejects with InputError if the configuration is invalid. */
  readonly acquire: () => Promise<ResourceLease<ClusterWatch>>
}

/** The cluster whose names a server block serves. */
export const CLUSTER = key<ServedCluster>('served cluster')
