import type { EndpointHealth, PeerEndpoint } from '../peer-endpoint.ts'

/** An endpoint as merged from all sites. */
export interface MergedEndpoint extends Omit<PeerEndpoint, 'site' | 'rootHost' | 'sinceSeconds'> {
  /** Sites that reported it, in order. */
  readonly sites: readonly string[]
}

/** A conflict between sites, and how it was resolved. */
export interface MergeConflict {
  /** One line; safe for a log. */
  readonly text: string
  /** The site whose endpoint was changed or left out. */
  readonly site: string
}

/**
 * Joins the health that several sites report for one address. `up` from any site wins, and
 * `unknown` does not count.
 */
export function joinHealth(a: EndpointHealth, b: EndpointHealth): EndpointHealth {
  if (a === 'up' || b === 'up') return 'up'
  return a === 'down' || b === 'down' ? 'down' : 'unknown'
}

export function compareMerged(a: MergedEndpoint, b: MergedEndpoint): number {
  const [keyA, keyB] = [orderKey(a), orderKey(b)]
  if (keyA === keyB) return 0
  return keyA < keyB ? -1 : 1
}

function orderKey(e: MergedEndpoint): string {
  const { dnsName, recordType, setIdentifier, targets, health } = e
  const steering = [e.weight ?? -1, e.geoCodes, e.isDefault, e.location ?? '']
  return JSON.stringify([dnsName, recordType, setIdentifier, targets, steering, health])
}
