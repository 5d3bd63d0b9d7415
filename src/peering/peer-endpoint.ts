/** What one probe, or all of them, say of an endpoint. Unknown is not down. */
export type EndpointHealth = 'up' | 'down' | 'unknown'

/**
 * One endpoint of one record as its own site tells it to the others.
 *
 * All text is as in a DNSRecord. Names are lower case, without a final dot, a wildcard's `*.` kept.
 */
export interface PeerEndpoint {
  /**
   * Who owns it. A cluster: its id. A plain server: the name that its Corefile gives the site. A
   * peer that can't say (generation v1): its address, `host:port`.
   */
  readonly site: string
  /** Host of the record that the endpoint is of. */
  readonly rootHost: string
  /** At or below `rootHost` without its `*.`. */
  readonly dnsName: string
  /** Mnemonic in upper case: `A`, `CNAME`. */
  readonly recordType: string
  /** 0..2^31-1 (RFC 2181 section 8). */
  readonly ttlSeconds: number
  /** '' where the endpoint is the only one of its name and type. */
  readonly setIdentifier: string
  /** 0..2^31-1; undefined where the endpoint has none. */
  readonly weight: number | undefined
  /** `GEO-EU`, `DE`; never `*`, which is `isDefault`. */
  readonly geoCodes: readonly string[]
  readonly isDefault: boolean
  /** At least one. */
  readonly targets: readonly string[]
  readonly health: EndpointHealth
  /** Unix time of the last change of content or health, not an age: so nothing changes by itself. */
  readonly sinceSeconds: number
}

/** How a peer tells: v1 is what upstream's 2025 operator wrote, v2 tells every endpoint whole. */
export type Generation = 'v1' | 'v2'

/**
 * All that one peer told of one site and one host, and when. No endpoints: it says that the site has none, which
 * is not the same as silence.
 */
export interface SiteState {
  readonly site: string
  /** Who told it: a peer's address, `host:port`. */
  readonly exporter: string
  /** The teller is a nameserver of that site, so far as its zone says: it tells of no other one. */
  readonly isOwn: boolean
  readonly rootHost: string
  readonly endpoints: readonly PeerEndpoint[]
  /** By our own monotonic clock: when the site last said, or confirmed, just this. May be negative: before we started. */
  readonly seenMs: number
  readonly generation: Generation
}
