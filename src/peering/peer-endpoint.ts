import type { ProbeAt } from '../dnsrecord/health-check.ts'
import type { RecordSettings } from '../dnsrecord/settings.ts'

/** Health of an endpoint by one probe or by all of them. Unknown is not down. */
export type EndpointHealth = 'up' | 'down' | 'unknown'

/**
 * One endpoint of one record as its own site exports it.
 *
 * All text is as in a DNSRecord. Names are lower case, without a final dot; a wildcard keeps its
 * `*.`.
 */
export interface PeerEndpoint {
  /**
   * The site that owns it. For a cluster, its id. For a plain server, the site name in its
   * Corefile. For a v1 peer, which cannot name its site, its address, `host:port`.
   */
  readonly site: string
  /** Host of the record that contains the endpoint. */
  readonly rootHost: string
  /** At or below `rootHost` without its `*.`. */
  readonly dnsName: string
  /** Mnemonic in upper case: `A`, `CNAME`. */
  readonly recordType: string
  /** 0..2^31-1 (RFC 2181 section 8). */
  readonly ttlSeconds: number
  /** '' if the endpoint is the only one of its name and type. */
  readonly setIdentifier: string
  /** 0..2^31-1; undefined = the endpoint has no weight. */
  readonly weight: number | undefined
  /** `GEO-EU`, `DE`; never `*`, which is `isDefault`. */
  readonly geoCodes: readonly string[]
  readonly isDefault: boolean
  /** Coordinates in hundredths of a degree: `52.52,13.40`; undefined = unknown. */
  readonly location?: string | undefined
  /** At least one. */
  readonly targets: readonly string[]
  readonly health: EndpointHealth
  /** Where its site probes the targets; missing = at the targets themselves. */
  readonly probeAt?: ProbeAt | undefined
  /**
   * Unix time of the last change of content or health. It is not an age, so that it does not change
   * by itself.
   */
  readonly sinceSeconds: number
  /** Creation time of its record, in seconds since the epoch; missing = unknown, which counts as youngest. */
  readonly createdSeconds?: number | undefined
  /** True = clocks of the sites that have the host differ, so that only the name of the site decides about it. */
  readonly isUndated?: boolean | undefined
  /** `recordId` of its record at its site; missing = unknown. */
  readonly recordId?: string | undefined
  /** Settings of its record; missing = it has none. A drain says that its site drained this endpoint. */
  readonly settings?: RecordSettings | undefined
}

/** The format of a peer's data: v1 is what upstream's 2025 operator wrote, v2 contains whole endpoints. */
export type Generation = 'v1' | 'v2'

/**
 * Everything that one peer reported of one site and one host, and when. Without endpoints it means
 * that the site has none, which differs from silence.
 */
export interface SiteState {
  readonly site: string
  /** Address of the peer that reported it, `host:port`. */
  readonly exporter: string
  /**
   * The exporter is a nameserver of that site, as far as its zone shows: it reports no other site.
   */
  readonly isOwn: boolean
  readonly rootHost: string
  readonly endpoints: readonly PeerEndpoint[]
  /**
   * Our own monotonic clock: when the site last reported or confirmed exactly this. Negative =
   * before the start of this process.
   */
  readonly seenMs: number
  readonly generation: Generation
}
