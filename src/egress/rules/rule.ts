import type { Cidr } from '../../dns/text/address.ts'
import type { Selector } from '../selectors/selector.ts'
import type { PortRange } from './port-range.ts'

/** A network, without parts of it. */
export interface NetworkPeer {
  readonly network: Cidr
  readonly except: readonly Cidr[]
}

/**
 * One rule of any policy language. It matches a connection to one of its networks, or to an address of
 * one of its names, on one of its ports.
 *
 *     accept  the connection is allowed by this list
 *     deny    it is dropped
 *     pass    the next tier decides
 */
export interface EgressRule {
  readonly action: 'accept' | 'deny' | 'pass'
  readonly networks: readonly NetworkPeer[]
  /** Empty unless the action is `accept`: the addresses of a name are never completely known, so none can be denied. */
  readonly names: readonly Selector[]
  /** Undefined = all ports of all protocols. */
  readonly ports: readonly PortRange[] | undefined
  /**
   * How long a name keeps an address: to the end of its TTL (NPEP-133), or as long as connections of the
   * client to an address of the name are open (Cilium).
   */
  readonly lasts: 'ttl' | 'connections'
  /** For logs: `CiliumNetworkPolicy a/web`. */
  readonly origin: string
}

/** Rules in order: the first that matches decides. */
export interface RuleTier {
  readonly rules: readonly EgressRule[]
  /** What applies to a connection that no rule matches. */
  readonly otherwise: 'deny' | 'pass'
}

/** Tiers in order. A connection that passes all of them is allowed. */
export type TierList = readonly RuleTier[]

/** Which names a client may ask for, on which ports. */
export interface DnsRule {
  /** Of udp and tcp; undefined = every port. */
  readonly ports: readonly PortRange[] | undefined
  readonly names: readonly Selector[]
}

/** What the policies of all languages say about one client. */
export interface ClientRules {
  /** A connection must be allowed by each list. */
  readonly lists: readonly TierList[]
  /** Undefined = every name may be asked for. An empty list = none. */
  readonly dns: readonly DnsRule[] | undefined
}

/** Those of a client that no policy restricts. */
export const OPEN_RULES: ClientRules = { lists: [], dns: undefined }

export function isOpen({ lists, dns }: ClientRules): boolean {
  return lists.length === 0 && dns === undefined
}
