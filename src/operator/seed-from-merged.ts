import type { Moment } from '../base/moment.ts'
import type { ApiObject } from '../kube/api.ts'
import { itemsOf, mappingOf } from './object.ts'
import type { KnownPeers } from './peer-state-store.ts'
import { scanExported } from './peer-status.ts'

/**
 * What each peer may have said where nobody wrote it down: an operator of before left only what all said together.
 * Each is taken to have said all of that, by its address, so that nothing goes before it was asked; what it
 * says then takes that place.
 */
export function seedFromMerged(
  merged: ApiObject,
  rootHost: string,
  addresses: readonly string[],
  moment: Moment,
): ReadonlyMap<string, KnownPeers> {
  const printed = itemsOf(mappingOf(merged, 'spec'), 'endpoints')
  return new Map(
    addresses.map((address) => {
      const endpoints = printed
        .map((endpoint) => scanExported(endpoint, address, rootHost))
        .filter((endpoint) => endpoint !== undefined)
      const { seenMs } = moment
      const from = { site: address, exporter: address, isOwn: true }
      const siteState = { ...from, seenMs, generation: 'v1' as const, rootHost, endpoints }
      const about = { generation: 'v1' as const, serial: undefined, problems: [] }
      const word = { ...moment, ...about, siteStates: [siteState] }
      return [address, { word, reason: ADOPTED }]
    }),
  )
}

/** Why nothing is known of a peer whose word was adopted. */
const ADOPTED = 'not heard yet'
