import { RRType } from '../dns/iana/types.ts'
import { ALIAS_TYPE, type DnsRecord, type Endpoint } from '../records/dns-record.ts'
import type { HealthCheck } from '../records/health-check.ts'
import { packRecord } from '../records/pack.ts'
import { isSameOrigin, type RecordOrigin, StoredRecord } from '../records/record-source.ts'
import { scanHost } from '../records/validate/names.ts'
import { groupBy } from './merge/part.ts'
import { MERGED_NAMESPACE } from './merged-namespace.ts'
import type { PeerEndpoint } from './peer-endpoint.ts'
import type { RecordSet } from './record-set.ts'

/** A record of another site, and its endpoints as that site reports them. */
export interface SiteRecord {
  readonly record: StoredRecord
  readonly endpoints: readonly PeerEndpoint[]
}

interface SiteRecordOptions {
  /** Of our own record of the host. */
  readonly check?: HealthCheck | undefined
  /** The sites that are silent. */
  readonly silent?: Pick<ReadonlySet<string>, 'has'> | undefined
}

/**
 * Returns the records that other sites have of a host: one for each site and record of that site. `host`: without `*.`.
 * `known`: the records before; an unchanged one is the same object.
 */
export function buildSiteRecords(
  host: string,
  endpoints: readonly PeerEndpoint[],
  zoneLabel: string,
  known: RecordSet,
  { check, silent }: SiteRecordOptions = {},
): readonly SiteRecord[] {
  return [...groupBy(endpoints, (one) => one.site)].flatMap(([site, ofSite]) => {
    const groups = [...groupBy(ofSite, recordOf)].sort(([a], [b]) => (a < b ? -1 : 1))
    return groups.map(([, members], i): SiteRecord => {
      const name = siteRecordName(host, site, i)
      const { recordId: id = '' } = members[0]!
      const isUndated = members.some((one) => one.isUndated === true)
      const record = compose({ name, host, zoneLabel, check }, members)
      const isSilent = silent?.has(site) === true
      const origin = { site, id, ...(isUndated && { isUndated }), ...(isSilent && { isSilent }) }
      return { record: reuse(record, origin, known), endpoints: members }
    })
  })
}

/** Identifies the record of an endpoint at its site: endpoints of one record have the same age and settings. */
function recordOf({ recordId = '', createdSeconds = 0, settings }: PeerEndpoint): string {
  return JSON.stringify([createdSeconds, recordId, settings ?? null])
}

/** `app.example.com@paris`, and for further records of the host at that site `app.example.com@paris~2`. */
function siteRecordName(host: string, site: string, index: number): string {
  return `${host}@${site}${index === 0 ? '' : `~${index + 1}`}`
}

interface Described {
  readonly name: string
  readonly host: string
  readonly zoneLabel: string
  readonly check: HealthCheck | undefined
}

function compose(
  { name, host, zoneLabel, check }: Described,
  members: readonly PeerEndpoint[],
): DnsRecord {
  const { createdSeconds = 0, settings } = members[0]!
  return {
    namespace: MERGED_NAMESPACE,
    name,
    zoneLabel,
    rootHost: scanHost(host)!,
    isWildcardHost: false,
    isAggregate: true,
    createdSeconds,
    // The quorum decides where addresses of peers are probed.
    endpoints: members.map(({ endpoint }) => ({ ...endpoint, probeAt: undefined })),
    settings,
    // The quorum decides about other addresses.
    healthCheck: members.some(({ endpoint }) => mayBeAlias(endpoint)) ? check : undefined,
  }
}

/** True for an ALIAS, and for a CNAME, which acts as one at an apex. */
function mayBeAlias({ type }: Endpoint): boolean {
  return type === ALIAS_TYPE || type === RRType.CNAME
}

function reuse(record: DnsRecord, origin: RecordOrigin, known: RecordSet): StoredRecord {
  const key = `${MERGED_NAMESPACE}/${record.name}`
  const packed = packRecord(record)
  const before = known.get(key)
  const isSame = before?.packed === packed && isSameOrigin(before.origin, origin)
  return isSame ? before : new StoredRecord(key, packed, origin)
}
