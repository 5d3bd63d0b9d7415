import type { AllDownPolicy } from '../../steering/rules.ts'
import type { PeerEndpoint } from '../peer-endpoint.ts'

/** A record, or an endpoint of it: its settings, and what its age and place are. */
type Holder = Pick<PeerEndpoint, 'site' | 'createdSeconds' | 'recordId' | 'settings'>

/** Returns the `all-down` of the oldest record that has one; undefined = none has. */
export function oldestAllDown(holders: readonly Holder[]): AllDownPolicy | undefined {
  const having = holders.filter(({ settings }) => settings?.allDown !== undefined)
  const [oldest] = having.sort(compareAge)
  return oldest?.settings?.allDown
}

/** An unknown age counts as youngest. */
function compareAge(a: Holder, b: Holder): number {
  const [ageA, ageB] = [a, b].map(({ createdSeconds }) => createdSeconds || Infinity)
  if (ageA !== ageB) return ageA! < ageB! ? -1 : 1
  return compare(a.site, b.site) || compare(a.recordId ?? '', b.recordId ?? '')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
