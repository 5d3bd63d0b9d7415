import type { DnsRecord, Endpoint } from '../dnsrecord/dns-record.ts'
import { printSteered } from '../dnsrecord/print-endpoint.ts'
import { validateEndpoint } from '../dnsrecord/validate/dns-record.ts'
import { scanHost, withoutWildcard } from '../dnsrecord/validate/names.ts'
import type { MergedEndpoint } from './merge/merged-endpoint.ts'

/** Sites of a refused endpoint, and the reason; quotes the peers' text. */
export interface RefusedEndpoint {
  readonly sites: readonly string[]
  readonly reason: string
}

export interface MergedRecord {
  readonly record: DnsRecord
  /** Sites that reported each endpoint of the record, in its order. */
  readonly sites: readonly (readonly string[])[]
  readonly refused: readonly RefusedEndpoint[]
}

/**
 * Builds a record from merged endpoints, and validates each like an endpoint of a DNSRecord. An
 * invalid one is refused alone. `rootHost`: a valid one, with its `*.`.
 */
export function buildMergedRecord(
  endpoints: readonly MergedEndpoint[],
  facts: Pick<DnsRecord, 'namespace' | 'name' | 'zoneLabel' | 'createdSeconds' | 'settings'>,
  rootHost: string,
): MergedRecord {
  const checked: Endpoint[] = []
  const sites: (readonly string[])[] = []
  const refused: RefusedEndpoint[] = []
  for (const merged of endpoints) {
    const outcome = validateEndpoint({ ...printSteered(merged) }, rootHost)
    if ('endpoint' in outcome) {
      checked.push(outcome.endpoint)
      sites.push(merged.sites)
    } else refused.push({ sites: merged.sites, reason: outcome.problem.message })
  }
  const { namespace, name, zoneLabel, createdSeconds, settings } = facts
  const record: DnsRecord = {
    namespace,
    name,
    zoneLabel,
    rootHost: withoutWildcard(scanHost(rootHost)!),
    isWildcardHost: rootHost.startsWith('*.'),
    isAggregate: true,
    createdSeconds,
    endpoints: checked,
    settings,
  }
  return { record, sites, refused }
}
