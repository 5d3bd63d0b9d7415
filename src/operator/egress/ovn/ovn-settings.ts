import type { AddressFamily, Cidr } from '../../../dns/text/address.ts'
import type { OvsdbTlsFiles } from '../../../ovsdb/open-socket.ts'
import type { OvsdbRemote } from '../../../ovsdb/remote.ts'
import type { NameKind } from '../resources.ts'

export interface OvnSettings {
  /** Namespace of the objects. */
  readonly namespace: string
  /** What the objects are: DNSNameResolvers, unless the cluster has their first design. */
  readonly nameKind: NameKind
  /** Servers of OVN Northbound; not empty. */
  readonly remotes: readonly OvsdbRemote[]
  /** Undefined = no remote has TLS. */
  readonly tls: OvsdbTlsFiles | undefined
  /** `k8s.ovn.org/owner-controller` of the rows. */
  readonly owner: string
  /** Not empty. */
  readonly families: readonly AddressFamily[]
  /** Networks of the cluster, whose addresses are never granted. */
  readonly clusterNetworks: readonly Cidr[]
  /** Networks that are granted although they are denied by default. */
  readonly allowedNetworks: readonly Cidr[]
}
