import type { ApiObject } from '../kube/api.ts'
import { API_VERSION, type DnsRecord } from '../record/dns-record.ts'
import { printHost } from '../record/print-endpoint.ts'
import { validateResource } from '../record/validate/resource.ts'
import {
  type Condition,
  invalidCondition,
  noProviderCondition,
  noZoneCondition,
} from './conditions.ts'
import { AUTHORITATIVE_LABEL, RECORD_FINALIZER, TYPE_LABEL } from './labels.ts'
import { finalizersOf, isDeleting, isManaged, labelOf, mappingOf } from './object.ts'
import { chooseProvider, type ProviderSecrets } from './provider-choice.ts'
import type { Provider } from './provider-secret.ts'
import { chooseZone } from './zone-choice.ts'

/** A record that is to be published: checked, with all that its publishing needs. */
export interface Publishing {
  readonly object: ApiObject
  readonly record: DnsRecord
  /** Lower case, without a final dot; a leading `*.` kept. */
  readonly rootHost: string
  readonly zone: string
  readonly provider: Provider
}

/** What is to be done about a DNSRecord. */
export type Action =
  /** Nothing: it is derived, or somebody else's. */
  | { readonly kind: 'ignore' }
  /** Its endpoints are for other clusters to take. */
  | { readonly kind: 'announce'; readonly object: ApiObject }
  /** Its endpoints go into the authoritative record of its host. */
  | { readonly kind: 'delegate'; readonly publishing: Publishing }
  /** It is an authoritative record: it is served as it is. */
  | { readonly kind: 'serve'; readonly publishing: Publishing }
  /** It was ours, and is now another provider's: what we made of it goes. */
  | { readonly kind: 'handOver' }
  /** It is being deleted. */
  | { readonly kind: 'remove' }
  /** It can't be published; what is published of it stays as it is. */
  | { readonly kind: 'refuse'; readonly condition: Condition }
  | { readonly kind: 'publish'; readonly publishing: Publishing }

/** Whether a cluster has authoritative records, or its delegating records are for those that have. */
export type DelegationRole = 'primary' | 'secondary'

const IGNORE: Action = { kind: 'ignore' }

/** Judges a record by itself and by the provider Secrets of its namespace. */
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

/** True for the objects that an operator makes of others: one that is made of one of these would never end. */
export function isDerived(object: ApiObject): boolean {
  return labelOf(object, TYPE_LABEL) !== ''
}

/** True for what the endpoints of delegating records are put together in. */
export function isAuthoritative(object: ApiObject): boolean {
  return labelOf(object, AUTHORITATIVE_LABEL) === 'true'
}

/** True for a record that is published by way of an authoritative one. */
export function isDelegating(object: ApiObject): boolean {
  return mappingOf(object, 'spec').delegate === true && !isAuthoritative(object)
}

/** Whose zones and Secrets are other clusters'. */
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
