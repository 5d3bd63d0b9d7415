import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import { itemsOf, textsOf } from './fields.ts'

/** An endpoint of a spec. Missing fields, and fields of another type, have defaults. */
export interface SpecEndpoint {
  /** Lower case, without the final dot. */
  readonly dnsName: string
  readonly recordType: string
  readonly setIdentifier: string
  readonly targets: readonly string[]
  /** 0 = not given. */
  readonly ttlSeconds: number
  readonly providerSpecific: readonly { readonly name: string; readonly value: string }[]
  /** The endpoint as written in the spec. */
  readonly object: ApiObject
}

/**
 * Record types whose targets are names: these are compared in lower case, without the final dot.
 */
const NAME_TYPES: ReadonlySet<string> = new Set(['CNAME', 'NS', 'PTR'])

export function readSpecEndpoints(objects: readonly ApiObject[]): SpecEndpoint[] {
  return objects.map((object) => {
    const recordType = textOf(object, 'recordType')
    const { recordTTL } = object
    const texts = textsOf(object, 'targets')
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

/** Identity of an endpoint, as external-dns defines it. */
export function endpointKey(
  endpoint: Pick<SpecEndpoint, 'dnsName' | 'recordType' | 'setIdentifier'>,
): string {
  const { dnsName, recordType, setIdentifier } = endpoint
  return JSON.stringify([dnsName, recordType, setIdentifier])
}

/** The endpoint as the spec stores it. `owners`: value of the label that lists the owners. */
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
