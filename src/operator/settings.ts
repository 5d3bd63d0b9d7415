import type { Cidr } from '../dns/text/address.ts'
import type { HostShare } from '../records/host-share.ts'
import type { DelegationRole } from './plan/decide.ts'
import type { ProbingSettings } from './probes/session-probing.ts'
import type { RequeueBounds } from './reconcile/requeue.ts'
import type { RemoteSettings } from './remotes/remote-clusters.ts'

/** Which of several operators of a cluster works. */
export interface LeaseSettings {
  /** Namespace of the Lease; undefined = no other operator works in this cluster. */
  readonly leaseNamespace: string | undefined
  /** Different from the identity of every other process. */
  readonly identity: string
}

/** Settings of an operator process, from its command line. */
export interface OperatorSettings extends RequeueBounds, LeaseSettings {
  /**
   * The name of this cluster among its peers; '' = derived from the UID of its namespace
   * kube-system.
   */
  readonly site: string
  /** How long a silent site keeps its addresses that no check finds up. */
  readonly silentMs: number
  /** Whether addresses that peers report are probed; only with `probing`. */
  readonly probesPeers: boolean
  /** Sites that must find an address of a peer down; 0 = a majority of those that are heard and know. */
  readonly quorum: number
  /** How long they must have found it down; 0 = at once. */
  readonly holdDownMs: number
  /** Undefined = no address is probed. */
  readonly probing?: ProbingSettings | undefined
  /** Kuadrant's group of this cluster; '' = none. */
  readonly group: string
  readonly role: DelegationRole
  /** Namespaces that may have hosts of others. */
  readonly shares: readonly HostShare[]
  /** How long the deletion of a delegating record waits for other clusters. */
  readonly removalTimeoutMs: number
  /** Networks of nameservers that are refused otherwise; undefined = none. */
  readonly nameserversAllowed?: readonly Cidr[] | undefined
  /** Networks from which unsigned NOTIFYs are accepted for all peers; undefined = none. */
  readonly notifyAllowed?: readonly Cidr[] | undefined
  /**
   * Other clusters whose delegating records this one publishes. Not used in the role `secondary`.
   */
  readonly remotes: RemoteSettings
}
