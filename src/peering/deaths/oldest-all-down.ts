import { compareRecords, type RecordRank } from '../../dnsrecord/record-order.ts'
import type { AllDownPolicy } from '../../steering/rules.ts'
import type { PeerEndpoint } from '../peer-endpoint.ts'

/** A record, or an endpoint of it: its settings, and what its age and place are. */
type Holder = Pick<PeerEndpoint, 'site' | 'createdSeconds' | 'recordId' | 'settings' | 'isUndated'>

/** Returns the `all-down` of the oldest record that has one; undefined = none has. */
export function oldestAllDown(holders: readonly Holder[]): AllDownPolicy | undefined {
  const having = holders.filter(({ settings }) => settings?.allDown !== undefined)
  const [oldest] = having.sort((a, b) => compareRecords(rankOf(a), rankOf(b)))
  return oldest?.settings?.allDown
}

/** Without an id, the key is not known either. */
function rankOf(holder: Holder): RecordRank {
  const { site, createdSeconds = 0, recordId: id = '', isUndated } = holder
  return { key: '', createdSeconds, site, id, isUndated }
}
