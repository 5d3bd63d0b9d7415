import { API_VERSION, type DnsRecord } from '../../dnsrecord/dns-record.ts'
import { printHost } from '../../dnsrecord/print-endpoint.ts'
import { validateResource } from '../../dnsrecord/validate/resource.ts'
import type { ApiObject } from '../../kube/api.ts'
import { chooseProvider, type ProviderSecrets } from '../provider/provider-choice.ts'
import type { Provider } from '../provider/provider-secret.ts'
import { chooseZone } from '../provider/zone-choice.ts'
import { AUTHORITATIVE_LABEL, RECORD_FINALIZER, TYPE_LABEL } from '../record/labels.ts'
import { finalizersOf, isDeleting, isManaged, labelOf, mappingOf } from '../record/object.ts'
import {
  type Condition,
  invalidCondition,
  noProviderCondition,
  noZoneCondition,
} from '../status/conditions.ts'

/** A checked record that is to be published, with the data that publishing needs. */
export interface Publishing {
  readonly object: ApiObject
  readonly record: DnsRecord
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
  | { readonly kind: 'announce'; readonly object: ApiObject }
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
  object: ApiObject,
  secrets: ProviderSecrets,
  role: DelegationRole = 'primary',
): Action {
  if (isDerived(object)) return IGNORE
  if (role === 'secondary') {
    if (isAuthoritative(object)) return IGNORE
    if (isDelegating(object)) return decideAnnounced(object)
  }
  const choice = chooseProvider(object, secrets)
  const wasOurs = isManaged(object)
  if (choice.kind === 'other') return wasOurs ? { kind: 'handOver' } : IGNORE
  if (isDeleting(object)) {
    const isOurs = wasOurs || choice.kind === 'ours' || !choice.isMissing
    const isHeld = finalizersOf(object).includes(RECORD_FINALIZER)
    return isOurs && isHeld ? { kind: 'remove' } : IGNORE
  }
  if (choice.kind === 'fault') {
    return { kind: 'refuse', condition: noProviderCondition(choice.message) }
  }
  return decideContent(object, choice.provider)
}

/**
 * True for objects that an operator derives from records. Deriving from one of these would never
 * end.
 */
export function isDerived(object: ApiObject): boolean {
  return labelOf(object, TYPE_LABEL) !== ''
}

/** True for a record that combines the endpoints of delegating records. */
export function isAuthoritative(object: ApiObject): boolean {
  return labelOf(object, AUTHORITATIVE_LABEL) === 'true'
}

/** True for a record that is published through an authoritative record. */
export function isDelegating(object: ApiObject): boolean {
  return mappingOf(object, 'spec').delegate === true && !isAuthoritative(object)
}

/** Decides on a record whose zones and Secrets are in other clusters. */
function decideAnnounced(object: ApiObject): Action {
  if (isDeleting(object)) {
    return finalizersOf(object).includes(RECORD_FINALIZER) ? { kind: 'remove' } : IGNORE
  }
  const resource = validate(object)
  if (resource.kind === 'refused') {
    return { kind: 'refuse', condition: invalidCondition(resource.problem.message) }
  }
  return resource.kind === 'record' ? { kind: 'announce', object } : IGNORE
}

function validate(object: ApiObject): ReturnType<typeof validateResource> {
  return validateResource({ ...object, apiVersion: API_VERSION, kind: 'DNSRecord' })
}

function decideContent(object: ApiObject, provider: Provider): Action {
  const resource = validate(object)
  if (resource.kind === 'refused') {
    return { kind: 'refuse', condition: invalidCondition(resource.problem.message) }
  }
  if (resource.kind !== 'record') return IGNORE
  const { record } = resource
  const host = printHost(record.rootHost)
  const choice = chooseZone(host, provider.zones)
  if ('problem' in choice) return { kind: 'refuse', condition: noZoneCondition(choice.problem) }
  const rootHost = record.isWildcardHost ? `*.${host}` : host
  const publishing = { object, record, rootHost, zone: choice.zone, provider }
  if (isAuthoritative(object)) return { kind: 'serve', publishing }
  return { kind: isDelegating(object) ? 'delegate' : 'publish', publishing }
}
