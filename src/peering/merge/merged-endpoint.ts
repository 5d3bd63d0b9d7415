import type { EndpointHealth, PeerEndpoint } from '../peer-endpoint.ts'

/** An endpoint as all sites together have it. */
export interface MergedEndpoint extends Omit<PeerEndpoint, 'site' | 'rootHost' | 'sinceSeconds'> {
  /** Who told it, in order. */
  readonly sites: readonly string[]
}

/** A disagreement of sites, and how it was settled. */
export interface MergeConflict {
  /** One line; safe for a log. */
  readonly text: string
  /** Whose endpoint had to give way. */
  readonly site: string
}

/**
 * What several sites say of one address: any proof that it works counts, and who does not know says
 * nothing.
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
  const steering = [e.weight ?? -1, e.geoCodes, e.isDefault]
  return JSON.stringify([dnsName, recordType, setIdentifier, targets, steering, health])
}
