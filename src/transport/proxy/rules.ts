import { lazyKey, type SharedValues } from '../../base/shared-values.ts'

/** What happens to the PROXY header of a peer. */
export const ProxyAction = {
  /** Its source is the client. */
  Use: 0,
  /** It is removed. */
  Ignore: 1,
  /** The datagram or the connection is dropped. */
  Reject: 2,
  /** It is not searched for: its octets are a part of the message. */
  Skip: 3,
} as const
export type ProxyAction = (typeof ProxyAction)[keyof typeof ProxyAction]

/** Why a datagram or a connection is dropped. */
export const ProxyFault = {
  /** Not a header of the PROXY protocol, but it starts like one. */
  Malformed: 0,
  /** The peer must not send a header. */
  Rejected: 1,
} as const
export type ProxyFault = (typeof ProxyFault)[keyof typeof ProxyFault]

/** How an address treats PROXY headers. */
export interface ProxyRules {
  /** `address`, `family`: as `Query.peerAddress`. */
  actionFor(address: Uint8Array, family: number): ProxyAction
  /** How long a header over UDP counts for datagrams without one from the same port; 0 = for its datagram only. */
  readonly trackingMs: number
  /** Most ports that are tracked per socket. */
  readonly sessionsMax: number
  /** Queries have the TLVs of the header. */
  readonly keepsTlvs: boolean
  /** Called for what is dropped. `server`: the address of the plan; `address`, `family`: those of the peer. */
  noteFault(server: string, fault: ProxyFault, address: Uint8Array, family: number): void
}

/** Set in a server block. */
export const PROXY_RULES = lazyKey('rules for PROXY headers', (): ProxyRules[] => [])

/** An address as its transport sees it: its label, and what directives of its blocks set. */
export interface ProxiedPlace {
  readonly address: string
  readonly configs: readonly { readonly shared: SharedValues }[]
}

/**
 * Returns the rules for all queries to an address; undefined = they have no headers. As in CoreDNS, those of the last
 * block count, but tracking and TLVs of any block.
 */
export function proxyRulesOf({ configs }: Pick<ProxiedPlace, 'configs'>): ProxyRules | undefined {
  const all = configs.flatMap(({ shared }) => shared.find(PROXY_RULES) ?? [])
  const last = all.at(-1)
  if (last === undefined || all.length === 1) return last
  const tracking = all.findLast(({ trackingMs }) => trackingMs > 0) ?? last
  return {
    actionFor: (address, family) => last.actionFor(address, family),
    trackingMs: tracking.trackingMs,
    sessionsMax: tracking.sessionsMax,
    keepsTlvs: all.some(({ keepsTlvs }) => keepsTlvs),
    noteFault: (...fault) => last.noteFault(...fault),
  }
}
