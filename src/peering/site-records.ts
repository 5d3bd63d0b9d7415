import type { DnsRecord, Endpoint } from '../dnsrecord/dns-record.ts'
import { packRecord } from '../dnsrecord/pack.ts'
import { printSteered } from '../dnsrecord/print-endpoint.ts'
import { isSameOrigin, type RecordOrigin, StoredRecord } from '../dnsrecord/record-source.ts'
import { validateEndpoint } from '../dnsrecord/validate/dns-record.ts'
import { scanHost } from '../dnsrecord/validate/names.ts'
import { groupBy } from './merge/part.ts'
import { MERGED_NAMESPACE } from './merged-namespace.ts'
import type { PeerEndpoint } from './peer-endpoint.ts'
import type { RecordSet } from './record-set.ts'

/** A record of another site, and its endpoints as that site reports them. */
export interface SiteRecord {
  readonly record: StoredRecord
  readonly endpoints: readonly PeerEndpoint[]
}

/** An endpoint that is not valid here, and the reason; quotes the peer's text. */
interface RefusedByValidation {
  readonly site: string
  readonly reason: string
}

/**
 * Returns the records that other sites have of a host: one for each site and record of that site. Each endpoint is
 * validated like an endpoint of a DNSRecord; an invalid one is refused alone. `host`: without `*.`. `known`: the
 * records before; an unchanged one is the same object.
 */
export function buildSiteRecords(
  host: string,
  endpoints: readonly PeerEndpoint[],
  zoneLabel: string,
  known: RecordSet,
): { readonly records: readonly SiteRecord[]; readonly refused: readonly RefusedByValidation[] } {
  const records: SiteRecord[] = []
  const refused: RefusedByValidation[] = []
  for (const [site, ofSite] of groupBy(endpoints, (one) => one.site)) {
    const groups = [...groupBy(ofSite, recordOf)].sort(([a], [b]) => (a < b ? -1 : 1))
    for (const [i, [, members]] of groups.entries()) {
      const valid: PeerEndpoint[] = []
      const checked: Endpoint[] = []
      for (const one of members) {
        const outcome = validateEndpoint({ ...printSteered(one) }, host)
        if ('endpoint' in outcome) {
          checked.push(outcome.endpoint)
          valid.push(one)
        } else refused.push({ site, reason: outcome.problem.message })
      }
      if (checked.length === 0) continue
      const name = siteRecordName(host, site, i)
      const record = compose({ name, host, zoneLabel }, members[0]!, checked)
      const { recordId: id = '', isUndated } = members[0]!
      const origin = { site, id, ...(isUndated && { isUndated }) }
      records.push({ record: reuse(record, origin, known), endpoints: valid })
    }
  }
  return { records, refused }
}

/** Identifies the record of an endpoint at its site: endpoints of one record have the same age and settings. */
function recordOf({ recordId = '', createdSeconds = 0, settings }: PeerEndpoint): string {
  return JSON.stringify([createdSeconds, recordId, settings ?? null])
}

/** `app.example.com@paris`, and for further records of the host at that site `app.example.com@paris~2`. */
function siteRecordName(host: string, site: string, index: number): string {
  return `${host}@${site}${index === 0 ? '' : `~${index + 1}`}`
}

function compose(
  { name, host, zoneLabel }: { name: string; host: string; zoneLabel: string },
  { createdSeconds = 0, settings }: PeerEndpoint,
  endpoints: readonly Endpoint[],
): DnsRecord {
  return {
    namespace: MERGED_NAMESPACE,
    name,
    zoneLabel,
    rootHost: scanHost(host)!,
    isWildcardHost: false,
    isAggregate: true,
    createdSeconds,
    endpoints,
    settings,
  }
}

function reuse(record: DnsRecord, origin: RecordOrigin, known: RecordSet): StoredRecord {
  const key = `${MERGED_NAMESPACE}/${record.name}`
  const packed = packRecord(record)
  const before = known.get(key)
  const isSame = before?.packed === packed && isSameOrigin(before.origin, origin)
  return isSame ? before : new StoredRecord(key, packed, origin)
}
