import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import { itemsOf } from '../object.ts'

/** An endpoint of a spec, fields that are absent or of another type filled in. */
export interface SpecEndpoint {
  /** Lower case, without a final dot. */
  readonly dnsName: string
  readonly recordType: string
  readonly setIdentifier: string
  readonly targets: readonly string[]
  /** 0 = none given. */
  readonly ttlSeconds: number
  readonly providerSpecific: readonly { readonly name: string; readonly value: string }[]
  /** As it stands in the spec. */
  readonly object: ApiObject
}

/** Names in targets of these types are compared in lower case, without a final dot. */
const NAME_TYPES: ReadonlySet<string> = new Set(['CNAME', 'NS', 'PTR'])

export function readSpecEndpoints(objects: readonly ApiObject[]): SpecEndpoint[] {
  return objects.map((object) => {
    const recordType = textOf(object, 'recordType')
    const { targets, recordTTL } = object
    const texts = Array.isArray(targets) ? targets.filter((t) => typeof t === 'string') : []
    return {
      dnsName: normalizeName(textOf(object, 'dnsName')),
      recordType,
      setIdentifier: textOf(object, 'setIdentifier'),
      targets: NAME_TYPES.has(recordType) ? texts.map(normalizeName) : texts,
      ttlSeconds: typeof recordTTL === 'number' ? recordTTL : 0,
      providerSpecific: itemsOf(object, 'providerSpecific').map((property) => {
        return { name: textOf(property, 'name'), value: textOf(property, 'value') }
      }),
      object,
    }
  })
}

/** Identity of an endpoint: external-dns's. */
export function endpointKey(
  endpoint: Pick<SpecEndpoint, 'dnsName' | 'recordType' | 'setIdentifier'>,
): string {
  const { dnsName, recordType, setIdentifier } = endpoint
  return JSON.stringify([dnsName, recordType, setIdentifier])
}

/** The endpoint as it is to stand in the spec. `owners`: for the label by which others show them. */
export function composeSpecEndpoint(endpoint: SpecEndpoint, owners: string): ApiObject {
  const { dnsName, recordType, setIdentifier, targets, ttlSeconds, providerSpecific } = endpoint
  const labels = isObject(endpoint.object.labels) ? endpoint.object.labels : {}
  return {
    dnsName,
    recordType,
    targets,
    ...(ttlSeconds === 0 ? {} : { recordTTL: ttlSeconds }),
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    labels: { ...labels, owner: owners },
    ...(providerSpecific.length === 0 ? {} : { providerSpecific }),
  }
}

export function normalizeName(text: string): string {
  return text.trim().toLowerCase().replace(/\.$/, '')
}
