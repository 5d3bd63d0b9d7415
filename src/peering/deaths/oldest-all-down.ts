import { type RecordRank, sortRecords } from '../../records/record-order.ts'
import type { AllDownPolicy } from '../../steering/rules.ts'
import type { PeerEndpoint } from '../peer-endpoint.ts'

/** A record, or an endpoint of it: its settings, and what its age and place are. */
type Holder = Pick<PeerEndpoint, 'site' | 'createdSeconds' | 'recordId' | 'settings' | 'isUndated'>

/** Returns the `all-down` of the oldest record that has one; undefined = none has. */
export function oldestAllDown(holders: readonly Holder[]): AllDownPolicy | undefined {
  const having = holders.map(rankOf).filter(({ allDown }) => allDown !== undefined)
  const [oldest] = sortRecords(having)
  return oldest?.allDown
}

/** Without an id, the key is not known either. */
function rankOf(holder: Holder): RecordRank & { readonly allDown: AllDownPolicy | undefined } {
  const { site, createdSeconds = 0, recordId: id = '', isUndated, settings } = holder
  return { key: '', createdSeconds, site, id, isUndated, allDown: settings?.allDown }
}
