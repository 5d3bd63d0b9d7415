import { type ApiObject, textOf } from '../kube/api.ts'
import { API_VERSION, DERIVED_ENDPOINTS_MAX } from '../record/dns-record.ts'
import { KDRNT } from '../record/kdrnt.ts'
import { derivedName } from './derived-name.ts'
import { isDerived, type Publishing } from './judge.ts'
import { LOCAL, MERGED, TYPE_LABEL, ZONE_LABEL } from './labels.ts'
import { isSame, itemsOf, mappingOf, metadataOf } from './object.ts'

const ROOT_HOST_CHARACTERS_MAX = 255

/**
 * `local-<name>`: what peers ask for. `endpoints`: in gateway-local form. Returns a complaint where there is
 * no such object.
 */
export function composeLocal(
  { object, rootHost }: Publishing,
  endpoints: readonly ApiObject[],
): ApiObject | string {
  const localHost = `${rootHost}.${KDRNT}`
  if (localHost.length > ROOT_HOST_CHARACTERS_MAX) {
    return `rootHost ${rootHost} is too long for its gateway-local form, which ends with .${KDRNT}`
  }
  if (endpoints.length > DERIVED_ENDPOINTS_MAX) {
    return `its gateway-local form has ${endpoints.length} endpoints, of which a record can have ${DERIVED_ENDPOINTS_MAX}; split the record`
  }
  const { providerRef } = mappingOf(object, 'spec')
  const spec = {
    rootHost: localHost,
    ...(providerRef === undefined ? {} : { providerRef }),
    endpoints,
  }
  return composeDerived(object, { kind: LOCAL, zone: KDRNT, spec })
}

/** `merged-<name>`: what is served for the host; the original with the endpoints of all sites. */
export function composeMerged(
  { object, zone }: Publishing,
  endpoints: readonly ApiObject[],
): ApiObject | string {
  if (endpoints.length > DERIVED_ENDPOINTS_MAX) {
    return `all sites together have ${endpoints.length} endpoints, of which a record can have ${DERIVED_ENDPOINTS_MAX}`
  }
  return composeDerived(object, {
    kind: MERGED,
    zone,
    spec: { ...mappingOf(object, 'spec'), endpoints },
  })
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

/** True if applying `desired` would change nothing of what is there. */
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
 * What stands in the way of applying `desired`: nothing; an object of ours of another life, which has to go
 * first (a root host never changes); or somebody else's object.
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
