import type { Moment } from '../../base/moment.ts'
import type { ApiObject } from '../../kube/api.ts'
import type { KnownPeers } from '../peers/peer-state-store.ts'
import { itemsOf, mappingOf } from '../record/object.ts'
import { scanExported } from './peer-status.ts'

/**
 * Initial peer states for a record whose status has none: an earlier operator left only the merged
 * endpoints. Each peer is assumed to have reported all of them from its address, so no endpoint is
 * removed before its peer was queried. The peer's first report replaces this state.
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

/** The reason shown for a peer with such an assumed state. */
const ADOPTED = 'not heard yet'
