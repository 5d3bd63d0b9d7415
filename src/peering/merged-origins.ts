import { printLatin1 } from '../base/latin1.ts'
import type { Endpoint } from '../dnsrecord/dns-record.ts'
import { unpackRecord } from '../dnsrecord/pack.ts'
import type { StoredRecord } from '../dnsrecord/record-source.ts'

/** Own records of a host that are searched for targets: an explanation must not take long. */
const OWN_RECORDS_MAX = 1024

/** Where an endpoint of a merged record comes from. */
export interface MergedOrigin {
  /** Sites that reported it; this site can be one of them. */
  readonly sites: readonly string[]
  /** Keys of our own records that have one of its targets. */
  readonly records: readonly string[]
}

/** Returns a function that finds where endpoints come from. `sites`: of each endpoint of the merged record. */
export function mergedOrigins(
  merged: StoredRecord,
  sites: readonly (readonly string[])[],
  own: Iterable<StoredRecord>,
): (endpoint: Endpoint) => MergedOrigin {
  const byEndpoint = new Map<string, readonly string[]>()
  for (const [index, endpoint] of unpackRecord(merged.packed).endpoints.entries()) {
    byEndpoint.set(identityOf(endpoint), sites[index] ?? [])
  }
  const byTarget = recordsByTarget(own)
  return (endpoint) => ({
    sites: byEndpoint.get(identityOf(endpoint)) ?? [],
    records: [
      ...new Set(targetsOf(endpoint).flatMap((target) => [...(byTarget.get(target) ?? [])])),
    ].sort(),
  })
}

function recordsByTarget(own: Iterable<StoredRecord>): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>()
  let count = 0
  for (const { key, packed } of own) {
    if (++count > OWN_RECORDS_MAX) break
    for (const target of unpackRecord(packed).endpoints.flatMap(targetsOf)) {
      const keys = found.get(target) ?? new Set()
      found.set(target, keys.add(key))
    }
  }
  return found
}

function identityOf(endpoint: Endpoint): string {
  return `${endpoint.setIdentifier}\n${targetsOf(endpoint).join('\n')}`
}

function targetsOf({ owner, type, rdata }: Endpoint): string[] {
  return rdata.map((target) => `${type} ${printLatin1(owner)} ${printLatin1(target)}`)
}
