import type { Generation, SiteState } from '../peer-endpoint.ts'

/** All that one peer told, as it goes from one process to the next, or from one follower to another. */
export interface CachedPeer {
  /** `host:port`, as configured. */
  readonly address: string
  /** Of the key that all of it was signed with; '' = none. */
  readonly keyName: string
  readonly generation: Generation
  /** Monotonic: when it last confirmed anything, and what its zone told; -Infinity = never. */
  readonly seenMs: number
  readonly zoneSeenMs: number
  /** Of its zone kdrnt; undefined = not known. */
  readonly serial: number | undefined
  /**
   * The site that it is a nameserver of, as its zone told; '' = of none in particular; undefined = it is not known, since
   * nobody wrote it down.
   */
  readonly ownSite: string | undefined
  /** What its zone told whole: TXT rdata, a character an octet, by the name behind `v2.`. */
  readonly zone: ReadonlyMap<string, ReadonlySet<string>>
  /** What it answered for hosts that it was asked for, by root host. */
  readonly hosts: Iterable<readonly [rootHost: string, shares: readonly SiteState[]]>
}

/** Who told it: what one told unsigned is not what it says under a key. */
export function identityOf({ address, keyName }: Pick<CachedPeer, 'address' | 'keyName'>): string {
  return keyName === '' ? address : `${address} ${keyName}`
}
