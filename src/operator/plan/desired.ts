import { API_VERSION, DERIVED_ENDPOINTS_MAX } from '../../dnsrecord/dns-record.ts'
import { KDRNT } from '../../dnsrecord/local-zone.ts'
import { scanHost } from '../../dnsrecord/validate/names.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { endpointOctets, jsonOctets } from '../../peering/merge/endpoint-octets.ts'
import type { PeerEndpoint } from '../../peering/peer-endpoint.ts'
import { derivedName } from '../record/derived-name.ts'
import { LOCAL, MERGED, TYPE_LABEL, ZONE_LABEL } from '../record/labels.ts'
import { isSame, itemsOf, mappingOf, metadataOf } from '../record/object.ts'
import { isDerived, type Publishing } from './decide.ts'

/**
 * Octets of one object. etcd accepts requests up to 1.5 MiB, and the API server adds the field
 * managers (`managedFields`) to an object.
 */
export const OBJECT_OCTETS_MAX = 1_300_000
/** Octets for the endpoints of other sites, once in the served record and once in the status. */
const OTHERS_OCTETS_MAX = 400_000

/**
 * Octets that the endpoints of other sites may use in addition to our own: in `merged-<name>` and
 * `status.endpoints`, and the same number again in `status.peers`. It depends only on our own data,
 * so other sites cannot push that out.
 */
export function roomForOthers(object: ApiObject, own: readonly PeerEndpoint[]): number {
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
  { object, rootHost }: Publishing,
  endpoints: readonly ApiObject[],
): ApiObject | string | undefined {
  const localHost = localHostOf(rootHost)
  if (localHost === undefined) return undefined
  if (endpoints.length > DERIVED_ENDPOINTS_MAX) {
    return `its gateway-local form has ${endpoints.length} endpoints, of which a record can have ${DERIVED_ENDPOINTS_MAX}; split the record`
  }
  const { providerRef } = mappingOf(object, 'spec')
  const spec = {
    rootHost: localHost,
    ...(providerRef === undefined ? {} : { providerRef }),
    endpoints,
  }
  const local = composeDerived(object, { kind: LOCAL, zone: KDRNT, spec })
  return findExcess(local, 'its gateway-local form') || local
}

/**
 * `merged-<name>`: the original record with the endpoints of all sites, which is served for the
 * host.
 */
export function composeMerged(
  { object, zone }: Publishing,
  endpoints: readonly ApiObject[],
): ApiObject | string {
  if (endpoints.length > DERIVED_ENDPOINTS_MAX) {
    return `all sites together have ${endpoints.length} endpoints, of which a record can have ${DERIVED_ENDPOINTS_MAX}`
  }
  const spec = { ...mappingOf(object, 'spec'), endpoints }
  const merged = composeDerived(object, { kind: MERGED, zone, spec })
  return findExcess(merged, 'what all sites together have') || merged
}

/** Why the API would reject the object for its size; '' = it would not. */
function findExcess(object: ApiObject, what: string): string {
  const octets = jsonOctets(object)
  if (octets <= OBJECT_OCTETS_MAX) return ''
  return `${what} has ${octets} octets, of which an object can have ${OBJECT_OCTETS_MAX}; split the record`
}

function composeDerived(
  original: ApiObject,
  made: { readonly kind: 'local' | 'merged'; readonly zone: string; readonly spec: ApiObject },
): ApiObject {
  const metadata = metadataOf(original)
  const name = textOf(metadata, 'name')
  const owner = { apiVersion: API_VERSION, kind: 'DNSRecord', name, uid: textOf(metadata, 'uid') }
  return {
    apiVersion: API_VERSION,
    kind: 'DNSRecord',
    metadata: {
      name: derivedName(made.kind, name),
      namespace: textOf(metadata, 'namespace'),
      labels: { [TYPE_LABEL]: made.kind, [ZONE_LABEL]: made.zone },
      ownerReferences: [owner],
    },
    spec: made.spec,
  }
}

/** True if applying `desired` would not change the object. */
export function isInPlace(present: ApiObject | undefined, desired: ApiObject): boolean {
  if (present === undefined) return false
  const [now, wanted] = [metadataOf(present), metadataOf(desired)]
  const labels = mappingOf(now, 'labels')
  const owners = itemsOf(now, 'ownerReferences')
  return (
    Object.entries(mappingOf(wanted, 'labels')).every(([key, value]) => labels[key] === value) &&
    itemsOf(wanted, 'ownerReferences').every((owner) =>
      owners.some((one) => one.uid === owner.uid),
    ) &&
    isSame(present.spec, desired.spec)
  )
}

/**
 * What prevents the apply of `desired`: nothing; an earlier object of ours, which must be deleted
 * first because a root host is immutable; or an object that is not ours.
 */
export function findObstacle(
  present: ApiObject | undefined,
  desired: ApiObject,
): 'none' | 'stale' | 'foreign' {
  if (present === undefined) return 'none'
  if (!isDerived(present)) return 'foreign'
  const owners = itemsOf(metadataOf(present), 'ownerReferences')
  const [owner] = itemsOf(metadataOf(desired), 'ownerReferences')
  const hasOtherHost = mappingOf(present, 'spec').rootHost !== mappingOf(desired, 'spec').rootHost
  const hasOtherOwner = owners.length > 0 && owners.every((one) => one.uid !== owner?.uid)
  return hasOtherHost || hasOtherOwner ? 'stale' : 'none'
}
