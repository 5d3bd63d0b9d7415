import type { Cidr } from '../../../dns/text/address.ts'

/** Settings of the controller of FQDNNetworkPolicies, from the command line. */
export interface FqdnSettings {
  readonly dns: DnsSettings
  /** How long an address is granted after it was seen last. */
  readonly ipExpirationMs: number
  /** Longest time between two lookups of a name. */
  readonly nextSyncMs: number
  /** Shortest time between two lookups of a name with an address. */
  readonly minimumSyncMs: number
  readonly skipsAaaa: boolean
  readonly maxConcurrentReconciles: number
  /** Networks of nodes, Pods and Services: never granted. */
  readonly clusterNetworks: readonly Cidr[]
  /** Networks that are granted although they are denied by default. */
  readonly allowedNetworks: readonly Cidr[]
}

/** Where the names are resolved. */
export interface DnsSettings {
  readonly overTcp: boolean
  readonly source:
    | { readonly kind: 'service'; readonly namespace: string; readonly name: string }
    | { readonly kind: 'file'; readonly path: string }
}
