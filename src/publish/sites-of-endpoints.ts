import { locateEndpoints } from '../records/pack.ts'
import type { StoredRecord } from '../records/record-source.ts'

/** Returns the sites of each endpoint of a record. `site`: of the record; '' = not known. */
export function sitesOfEndpoints(
  { packed }: StoredRecord,
  site: string,
): readonly (readonly string[])[] {
  if (site === '') return []
  return locateEndpoints(packed).starts.map(() => [site])
}
