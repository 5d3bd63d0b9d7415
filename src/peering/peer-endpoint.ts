import type { Endpoint } from '../records/dns-record.ts'
import { packEndpoint } from '../records/pack.ts'
import { printHost, printRecordType, printTarget } from '../records/print-endpoint.ts'
import type { RecordSettings } from '../records/settings.ts'

/** Health of an endpoint by one probe or by all of them. Unknown is not down. */
export type EndpointHealth = 'up' | 'down' | 'unknown'

/**
 * One endpoint of one record as its own site exports it. The endpoint itself is valid. Its geo codes and targets are
 * there once each, in the order of their texts, so that equal endpoints have equal octets.
 */
export interface PeerEndpoint {
  readonly endpoint: Endpoint
  /**
   * The site that owns it. For a cluster, its id. For a plain server, the site name in its
   * Corefile. For a v1 peer, which cannot name its site, its address, `host:port`.
   */
  readonly site: string
  /** Host of the record that contains it, as in a DNSRecord: lower case, no final dot, perhaps with `*.`. */
  readonly rootHost: string
  readonly health: EndpointHealth
  /**
   * Unix time of the last change of content or health. It is not an age, so that it does not change
   * by itself.
   */
  readonly sinceSeconds: number
  /** Creation time of its record, in seconds since the epoch; missing = unknown, which counts as youngest. */
  readonly createdSeconds?: number | undefined
  /**
   * True = the clock that dated its record is wrong, or clocks of the sites that have the host differ: only the name of
   * the site decides about it.
   */
  readonly isUndated?: boolean | undefined
  /** `recordId` of its record at its site; missing = unknown. */
  readonly recordId?: string | undefined
  /** Settings of its record; missing = it has none. A drain says that its site drained this endpoint. */
  readonly settings?: RecordSettings | undefined
}

/** Name and type of an endpoint, and its targets, as in a DNSRecord. */
export interface TargetTexts {
  readonly dnsName: string
  readonly recordType: string
  readonly targets: readonly string[]
}

/** Prints what health, trust and messages name an endpoint by. */
export function printTargets(endpoint: Endpoint): TargetTexts {
  const { owner, type } = endpoint
  const recordType = printRecordType(type)
  return { dnsName: printHost(owner), recordType, targets: targetsOf(endpoint) }
}

/** Prints the targets alone. */
export function targetsOf({ type, rdata }: Endpoint): string[] {
  return rdata.map((target) => printTarget(type, target))
}

/** Prints the targets of all the endpoints. */
export function listTargets(endpoints: readonly PeerEndpoint[]): string[] {
  return endpoints.flatMap(({ endpoint }) => targetsOf(endpoint))
}

/** Returns a text that two endpoints share if and only if they are equal. */
export function peerEndpointKey({ endpoint, ...facts }: PeerEndpoint): string {
  return JSON.stringify([packEndpoint(endpoint), facts])
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
