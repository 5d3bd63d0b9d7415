import type { ApiObject } from '../../kube/api.ts'
import { endpointOctets, jsonOctets } from '../../peering/merge/endpoint-octets.ts'
import type { PeerEndpoint } from '../../peering/peer-endpoint.ts'
import { DERIVED_ENDPOINTS_MAX } from '../../records/dns-record.ts'
import { KDRNT } from '../../records/local-zone.ts'
import { SITES_ANNOTATION, type SiteFacts } from '../../records/site-facts.ts'
import { scanHost } from '../../records/validate/names.ts'
import { derivedName } from '../record/derived-name.ts'
import { type DesiredRecord, printRecord } from '../record/desired-record.ts'
import { isSame } from '../record/fields.ts'
import { LOCAL, MERGED, TYPE_LABEL, ZONE_LABEL } from '../record/labels.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { annotationsOf, composeSitesAnnotation } from '../record/sites-annotation.ts'
import type { Publishing } from './decide.ts'

/**
 * Octets of one object. etcd accepts requests up to 1.5 MiB, and the API server adds the field
 * managers (`managedFields`) to an object.
 */
const OBJECT_OCTETS_MAX = 1_300_000
/** Octets for the endpoints of other sites, once in the served record and once in the status. */
const OTHERS_OCTETS_MAX = 400_000

/**
 * Octets that the endpoints of other sites may use in addition to our own: in `merged-<name>` and
 * `status.endpoints`, and the same number again in `status.peers`. It depends only on our own data,
 * so other sites cannot push that out.
 */
export function roomForOthers({ object }: DnsRecordView, own: readonly PeerEndpoint[]): number {
  const { status: _, ...rest } = object
  const octets = own.reduce((sum, one) => sum + endpointOctets(one, 'v2'), jsonOctets(rest))
  const room = Math.floor((OBJECT_OCTETS_MAX - octets) / 2)
  return Math.max(0, Math.min(OTHERS_OCTETS_MAX, room))
}

/** The host that peers query. undefined: the host is too long to get the suffix `.kdrnt`. */
export function localHostOf(rootHost: string): string | undefined {
  const localHost = `${rootHost}.${KDRNT}`
  return scanHost(localHost) === undefined ? undefined : localHost
}

/**
 * `local-<name>`, which peers query; undefined if its host would be too long. `endpoints`: in
 * gateway-local form. Returns an error message if the record must change first.
 */
export function composeLocal(
  { record, rootHost }: Publishing,
  endpoints: readonly ApiObject[],
): DesiredRecord | string | undefined {
  const localHost = localHostOf(rootHost)
  if (localHost === undefined) return undefined
  const { providerRef } = record.spec
  const spec = {
    rootHost: localHost,
    ...(providerRef === undefined ? {} : { providerRef }),
    endpoints,
  }
  const local = composeDerived(record, { kind: LOCAL, zone: KDRNT, spec })
  return findExcess(local, endpoints.length, 'the gateway-local form') || local
}

/** `merged-<name>`, and what of its annotation had no room; '' = all has. */
interface Merged {
  readonly record: DesiredRecord
  readonly note: string
}

/**
 * `merged-<name>`: the original record with the endpoints of all sites, which is served for the
 * host. Returns an error message if it would be too large. `existing`: the present one.
 */
export function composeMerged(
  { record, zone }: Publishing,
  endpoints: readonly ApiObject[],
  facts: SiteFacts<ApiObject>,
  existing: DnsRecordView | undefined,
): Merged | string {
  const spec = { ...record.spec, endpoints }
  const merged = composeDerived(record, { kind: MERGED, zone, spec })
  const excess = findExcess(merged, endpoints.length, 'the record of all sites')
  if (excess !== '') return excess
  const { text, note } = composeSitesAnnotation(facts, endpoints, identityOf, existing)
  return { record: { ...merged, annotations: annotationsOf(text) }, note }
}

/** Endpoints of merged records are all printed alike. */
function identityOf(endpoint: ApiObject): string {
  return JSON.stringify(endpoint)
}

/** Why the API would reject the record for its size; '' = it would not. `what`: for the message. */
function findExcess(record: DesiredRecord, endpoints: number, what: string): string {
  if (endpoints > DERIVED_ENDPOINTS_MAX) {
    return `${what} has ${endpoints} endpoints, at most ${DERIVED_ENDPOINTS_MAX} are allowed; split the record`
  }
  const octets = jsonOctets(printRecord(record))
  if (octets <= OBJECT_OCTETS_MAX) return ''
  return `${what} has ${octets} octets, at most ${OBJECT_OCTETS_MAX} are allowed; split the record`
}

function composeDerived(
  owner: DnsRecordView,
  made: { readonly kind: 'local' | 'merged'; readonly zone: string; readonly spec: ApiObject },
): DesiredRecord {
  return {
    namespace: owner.namespace,
    name: derivedName(made.kind, owner.name),
    labels: { [TYPE_LABEL]: made.kind, [ZONE_LABEL]: made.zone },
    owner,
    spec: made.spec,
  }
}

/** True if applying `desired` would not change the record. */
export function isInPlace(existing: DnsRecordView | undefined, desired: DesiredRecord): boolean {
  if (existing === undefined) return false
  const { labels, annotations = {}, owner, spec } = desired
  return (
    Object.entries(labels).every(([name, value]) => existing.label(name) === value) &&
    existing.annotation(SITES_ANNOTATION) === (annotations[SITES_ANNOTATION] ?? '') &&
    (owner === undefined || existing.isOwnedBy(owner)) &&
    isSame(existing.spec, spec)
  )
}

/**
 * What prevents the apply of `desired`: nothing; an earlier object of ours, which must be deleted
 * first because a root host is immutable; or an object that is not ours.
 */
export function findObstacle(
  existing: DnsRecordView | undefined,
  { owner, spec }: DesiredRecord,
): 'none' | 'stale' | 'foreign' {
  if (existing === undefined) return 'none'
  if (existing.role !== 'derived') return 'foreign'
  const owners = existing.ownerReferences
  const hasOtherOwner = owners.length > 0 && owners.every(({ uid }) => uid !== owner?.uid)
  return existing.spec.rootHost !== spec.rootHost || hasOtherOwner ? 'stale' : 'none'
}
