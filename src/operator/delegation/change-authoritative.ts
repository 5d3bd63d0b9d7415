import type { Write } from '../plan/write.ts'
import { ZONE_LABEL } from '../record/labels.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import type { SpecEndpoint } from '../record/spec-endpoint.ts'
import {
  authoritativeHost,
  authoritativeName,
  composeAuthoritative,
} from './authoritative-record.ts'
import { type EndpointPlan, planEndpoints } from './plan-endpoints.ts'

/** What one delegating record wants in its authoritative record. */
export interface DelegatedEndpoints {
  /** Empty = its endpoints are removed. */
  readonly endpoints: readonly SpecEndpoint[]
  /** Short id of the record's cluster; '' = this one. */
  readonly cluster: string
  /** Group of the record's cluster; '' = none. */
  readonly group: string
}

/** The endpoints of `authoritative` after `record` has contributed to it. */
export function planContribution(
  record: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  { endpoints, cluster, group }: DelegatedEndpoints,
): EndpointPlan {
  return planEndpoints(authoritative?.endpoints ?? [], {
    owner: record.ownerId,
    group,
    cluster,
    rootHost: record.rootHost,
    desired: endpoints,
    previous: record.publishedEndpoints,
  })
}

/**
 * The write that gives the authoritative record for `record` its planned endpoints, if they change.
 * Without endpoints it is deleted. `zone`: '' = unchanged.
 */
export function writeAuthoritative(
  { namespace, rootHost }: DnsRecordView,
  authoritative: DnsRecordView | undefined,
  { endpoints, isChanged }: Pick<EndpointPlan, 'endpoints' | 'isChanged'>,
  zone = '',
): Write[] {
  if (endpoints.length === 0) {
    return authoritative === undefined ? [] : [{ kind: 'drop', record: authoritative }]
  }
  if (!isChanged) return []
  const identity = {
    namespace,
    rootHost,
    provider: authoritative?.providerName ?? '',
    // Server-side apply removes fields that were ours and are missing from the new object.
    zone: zone === '' ? (authoritative?.label(ZONE_LABEL) ?? '') : zone,
  }
  return [{ kind: 'put', record: composeAuthoritative(identity, endpoints), over: authoritative }]
}

/** Why the existing object must not be written to; '' = it may be. */
export function findObstacle(
  { rootHost }: DnsRecordView,
  authoritative: DnsRecordView | undefined,
): string {
  if (authoritative === undefined) return ''
  const isAuthoritative = authoritative.role === 'authoritative'
  const isOfHost = authoritative.rootHost === authoritativeHost(rootHost)
  if (isAuthoritative && isOfHost) return ''
  const name = authoritativeName(rootHost)
  return isAuthoritative
    ? `DNSRecord ${name} belongs to the host ${authoritative.rootHost}, which has the same hash`
    : `DNSRecord ${name} exists and was not created for delegating records; rename it`
}
