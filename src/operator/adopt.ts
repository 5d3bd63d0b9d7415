import type { ApiObject } from '../kube/api.ts'
import { itemsOf, mappingOf } from './object.ts'
import { scanPrinted } from './peer-status.ts'
import type { Peer } from './peers.ts'
import type { Remembered } from './share-book.ts'

/**
 * What each peer may have said where nobody wrote it down: an operator of before left only what all said together.
 * Each is taken to have said all of that, by its address, so that nothing goes before it has been asked; what it
 * says then takes that place.
 */
export function adoptMerged(
  merged: ApiObject,
  rootHost: string,
  peers: readonly Peer[],
  startMs: number,
): ReadonlyMap<string, Remembered> {
  const printed = itemsOf(mappingOf(merged, 'spec'), 'endpoints')
  return new Map(
    peers.map(({ address }) => {
      const endpoints = printed
        .map((endpoint) => scanPrinted(endpoint, address, rootHost))
        .filter((endpoint) => endpoint !== undefined)
      const share = {
        site: address,
        rootHost,
        endpoints,
        seenMs: startMs,
        generation: 'v1' as const,
      }
      return [address, { shares: [share], seenMs: startMs, reason: 'not asked yet' }]
    }),
  )
}
