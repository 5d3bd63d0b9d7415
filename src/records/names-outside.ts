import { isSubdomain } from '../dns/name/name.ts'
import type { DnsRecord } from './dns-record.ts'
import { KDRNT } from './local-zone.ts'

/** True if the record has endpoints outside of its root host. */
export function hasNamesOutside({
  zoneLabel,
  rootHost,
  endpoints,
}: Pick<DnsRecord, 'zoneLabel' | 'rootHost' | 'endpoints'>): boolean {
  return zoneLabel !== KDRNT && endpoints.some(({ owner }) => !isSubdomain(owner, rootHost))
}
