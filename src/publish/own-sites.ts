import { locateEndpoints } from '../dnsrecord/pack.ts'
import type { StoredRecord } from '../dnsrecord/record-source.ts'

/** Returns the sites of each endpoint of one of our own records. `site`: our own; '' = none. */
export function ownSites({ packed }: StoredRecord, site: string): readonly (readonly string[])[] {
  if (site === '') return []
  return locateEndpoints(packed).starts.map(() => [site])
}
