import type { DnsRecord } from '../../records/dns-record.ts'
import { printHost } from '../../records/print-endpoint.ts'
import { chooseProvider, type ProviderSecrets } from '../provider/provider-choice.ts'
import type { Provider } from '../provider/provider-secret.ts'
import { chooseZone } from '../provider/zone-choice.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import {
  type Condition,
  invalidCondition,
  noProviderCondition,
  noZoneCondition,
} from '../status/conditions.ts'

/** A valid record that is to be published, with the data that publishing needs. */
export interface Publishing {
  readonly record: DnsRecordView
  /** The validated form of `record`. */
  readonly content: DnsRecord
  /** Lower case, without the final dot; a leading `*.` is kept. */
  readonly rootHost: string
  readonly zone: string
  readonly provider: Provider
}

/** The action to take for a DNSRecord. */
export type Action =
  /** No action: the record is derived, or belongs to another provider. */
  | { readonly kind: 'ignore' }
  /** Other clusters copy its endpoints. */
  | { readonly kind: 'announce' }
  /** Its endpoints go into the authoritative record of its host. */
  | { readonly kind: 'delegate'; readonly publishing: Publishing }
  /** It is an authoritative record, which is served without change. */
  | { readonly kind: 'serve'; readonly publishing: Publishing }
  /** It was ours and now belongs to another provider: remove what was derived from it. */
  | { readonly kind: 'handOver' }
  /** It is being deleted. */
  | { readonly kind: 'remove' }
  /** It can't be published. Endpoints that are already published are kept. */
  | { readonly kind: 'refuse'; readonly condition: Condition }
  | { readonly kind: 'publish'; readonly publishing: Publishing }

/**
 * Whether this cluster holds authoritative records, or leaves its delegating records to clusters
 * that do.
 */
export type DelegationRole = 'primary' | 'secondary'

const IGNORE: Action = { kind: 'ignore' }

/** Decides on a record from its own content and the provider Secrets of its namespace. */
export function decide(
  record: DnsRecordView,
  secrets: ProviderSecrets,
  clusterRole: DelegationRole = 'primary',
): Action {
  const { role } = record
  if (role === 'derived') return IGNORE
  if (clusterRole === 'secondary') {
    if (role === 'authoritative') return IGNORE
    if (role === 'delegating') return decideAnnounced(record)
  }
  const choice = chooseProvider(record.providerName, secrets)
  const wasOurs = record.isManaged
  if (choice.kind === 'other') return wasOurs ? { kind: 'handOver' } : IGNORE
  if (record.isDeleting) {
    const isOurs = wasOurs || choice.kind === 'ours' || !choice.isMissing
    return isOurs && record.isHeld ? { kind: 'remove' } : IGNORE
  }
  if (choice.kind === 'fault') {
    return { kind: 'refuse', condition: noProviderCondition(choice.message) }
  }
  return decideContent(record, choice.provider)
}

/** Decides on a record whose zones and Secrets are in other clusters. */
function decideAnnounced(record: DnsRecordView): Action {
  if (record.isDeleting) return record.isHeld ? { kind: 'remove' } : IGNORE
  const { resource } = record
  if (resource.kind === 'refused') {
    return { kind: 'refuse', condition: invalidCondition(resource.problem.message) }
  }
  return resource.kind === 'record' ? { kind: 'announce' } : IGNORE
}

function decideContent(record: DnsRecordView, provider: Provider): Action {
  const { resource, role } = record
  if (resource.kind === 'refused') {
    return { kind: 'refuse', condition: invalidCondition(resource.problem.message) }
  }
  if (resource.kind !== 'record') return IGNORE
  const content = resource.record
  const host = printHost(content.rootHost)
  const choice = chooseZone(host, provider.zones)
  if ('problem' in choice) return { kind: 'refuse', condition: noZoneCondition(choice.problem) }
  const rootHost = content.isWildcardHost ? `*.${host}` : host
  const publishing = { record, content, rootHost, zone: choice.zone, provider }
  if (role === 'authoritative') return { kind: 'serve', publishing }
  return { kind: role === 'delegating' ? 'delegate' : 'publish', publishing }
}
