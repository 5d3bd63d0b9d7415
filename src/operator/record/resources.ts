import type { ApiResource } from '../../kube/api.ts'
import { API_GROUP, API_VERSION } from '../../records/dns-record.ts'

const VERSION = API_VERSION.slice(API_GROUP.length + 1)

export const RECORDS: ApiResource = { group: API_GROUP, version: VERSION, plural: 'dnsrecords' }
/** DNSHealthCheckProbes. */
export const PROBES: ApiResource = {
  group: API_GROUP,
  version: VERSION,
  plural: 'dnshealthcheckprobes',
}
export const SECRETS: ApiResource = { group: '', version: 'v1', plural: 'secrets' }
