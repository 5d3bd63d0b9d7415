import { type ApiObject, isObject, type JsonValue, textOf } from '../../../kube/api.ts'
import { scanFqdn } from './fqdn-name.ts'
import { type FqdnPolicySpec, type FqdnRule, fqdnsOf } from './network-policy.ts'

const GKE_GROUP = 'networking.gke.io'
/** In both APIs: the annotation kept the name that it had at Google. */
const AAAA_ANNOTATION = `fqdnnetworkpolicies.${GKE_GROUP}/aaaa-lookups`

/** One of the two APIs of FQDNNetworkPolicy. */
export interface FqdnApi {
  readonly group: string
  readonly version: string
  readonly plural: 'fqdnnetworkpolicies'
  /** True if the status has a field for addresses. */
  readonly hasCache: boolean
}

export const FQDN_APIS: readonly FqdnApi[] = [
  {
    group: 'networking.delta10.nl',
    version: 'v1alpha4',
    plural: 'fqdnnetworkpolicies',
    hasCache: true,
  },
  { group: GKE_GROUP, version: 'v1alpha3', plural: 'fqdnnetworkpolicies', hasCache: false },
]

/** A FQDNNetworkPolicy. */
export interface FqdnPolicy {
  readonly api: FqdnApi
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly generation: number
  readonly isDeleting: boolean
  readonly finalizers: readonly string[]
  readonly skipsAaaa: boolean
  readonly spec: FqdnPolicySpec
  /** Wire form of each name of `spec`, by the name as written; undefined = the name is invalid. */
  readonly names: ReadonlyMap<string, Uint8Array | undefined>
  /** The valid ones. */
  readonly wires: readonly Uint8Array[]
}

/** Reads an object of the API. Fields of a wrong type count as missing. */
export function readPolicy(api: FqdnApi, object: ApiObject): FqdnPolicy {
  const metadata = metadataOf(object)
  const fields = isObject(object.spec) ? object.spec : {}
  const types = textsIn(fields.policyTypes)
  const spec: FqdnPolicySpec = {
    podSelector: isObject(fields.podSelector) ? fields.podSelector : {},
    policyTypes: types.length === 0 ? undefined : types,
    egress: rulesIn(fields.egress, 'to'),
    ingress: rulesIn(fields.ingress, 'from'),
  }
  const names = new Map([...fqdnsOf(spec)].map((fqdn) => [fqdn, scanFqdn(fqdn)]))
  return {
    api,
    namespace: textOf(metadata, 'namespace'),
    name: textOf(metadata, 'name'),
    uid: textOf(metadata, 'uid'),
    generation: typeof metadata.generation === 'number' ? metadata.generation : 0,
    isDeleting: textOf(metadata, 'deletionTimestamp') !== '',
    finalizers: textsIn(metadata.finalizers),
    skipsAaaa: textOf(metadata.annotations, AAAA_ANNOTATION) === 'skip',
    spec,
    names,
    wires: [...names.values()].filter((wire) => wire !== undefined),
  }
}

function rulesIn(value: JsonValue | undefined, peers: 'to' | 'from'): FqdnRule[] | undefined {
  if (!Array.isArray(value)) return undefined
  return value.filter(isObject).map((rule) => ({
    fqdns: objectsIn(rule[peers]).flatMap((peer) => textsIn(peer.fqdns)),
    ports: Array.isArray(rule.ports) ? objectsIn(rule.ports) : undefined,
  }))
}

export function metadataOf({ metadata }: ApiObject): ApiObject {
  return isObject(metadata) ? metadata : {}
}

export function objectsIn(value: JsonValue | undefined): readonly ApiObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function textsIn(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
