import type { Generation, SiteState } from '../peer-endpoint.ts'

/**
 * Everything that one peer reported. It is handed from one process to the next, or from one
 * follower to another.
 */
export interface CachedPeer {
  /** `host:port`, as configured. */
  readonly address: string
  /** Name of the key that signed all of it; '' = none. */
  readonly keyName: string
  readonly generation: Generation
  /**
   * Monotonic milliseconds: when the peer last confirmed anything, and when it last confirmed its
   * zone; -Infinity = never.
   */
  readonly seenMs: number
  readonly zoneSeenMs: number
  /** Serial of its zone kdrnt; undefined = not known. */
  readonly serial: number | undefined
  /**
   * The site that the peer is a nameserver of, from its zone; '' = no single site; undefined = not
   * known, because the file does not say.
   */
  readonly ownSite: string | undefined
  /** TXT rdata of its v2 zone, one character per octet, by the name behind `v2.`. */
  readonly zone: ReadonlyMap<string, ReadonlySet<string>>
  /** Its answers to queries for single hosts, by root host. */
  readonly hosts: Iterable<readonly [rootHost: string, shares: readonly SiteState[]]>
}

/**
 * Returns the identity of a peer. Unsigned data of an address and data under a key are separate.
 */
export function identityOf({ address, keyName }: Pick<CachedPeer, 'address' | 'keyName'>): string {
  return keyName === '' ? address : `${address} ${keyName}`
}
