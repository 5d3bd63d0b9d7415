import type { Moment } from '../../base/moment.ts'
import type { KnownPeer } from '../peers/peer-state-store.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { scanExported } from './peer-status.ts'

/**
 * Initial peer states for a record whose status has none: an earlier operator left only the merged
 * endpoints. Each peer is assumed to have reported all of them from its address, so no endpoint is
 * removed before its peer was queried. The peer's first report replaces this state.
 */
export function seedFromMerged(
  merged: DnsRecordView,
  rootHost: string,
  addresses: readonly string[],
  moment: Moment,
): ReadonlyMap<string, KnownPeer> {
  const printed = merged.endpointObjects
  return new Map(
    addresses.map((address) => {
      const place = { site: address, rootHost, where: merged.name }
      const { endpoints, problems } = scanExported(printed, place)
      const { seenMs } = moment
      const generation = 'v1' as const
      const source = { site: address, exporter: address, isOwn: true }
      const siteState = { ...source, seenMs, generation, rootHost, endpoints }
      const siteStates = [siteState]
      const state = { ...moment, generation, serial: undefined, problems, siteStates }
      return [address, { state, reason: ASSUMED }]
    }),
  )
}

/** The reason shown for a peer with such an assumed state. */
const ASSUMED = 'not heard yet'
