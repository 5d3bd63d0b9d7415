import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import {
  type EndpointDocument,
  type RecordDocument,
  recordDocument,
} from '../../records/record-document.ts'
import { type FieldProblem, RefusedError } from '../../records/validate/fields.ts'
import { SETTING_PREFIX } from '../../records/validate/settings.ts'
import { type ExternalDnsAnnotations, placeOf } from './external-dns-annotations.ts'
import { type OnProblem, UNNAMED_SET } from './object-kind.ts'
import { mapProviderProperties } from './provider-properties.ts'
import { recordNameOf } from './record-name.ts'
import { type ObjectSettings, readObjectSettings } from './settings-annotations.ts'
import type { PlainEndpoint } from './targets.ts'

/** The records of the hosts of one object, with the settings of its annotations in them. */
export class RecordsOfHost {
  readonly #word: string
  readonly #object: ApiObject
  readonly #settings: ObjectSettings
  readonly #ttlSeconds: number | undefined
  readonly #onProblem: OnProblem

  /** `word`: of the kind. `onProblem` receives what is ignored. Throws RefusedError if an annotation is invalid. */
  constructor(
    word: string,
    object: ApiObject,
    externalDns: ExternalDnsAnnotations,
    onProblem: OnProblem,
  ) {
    this.#word = word
    this.#object = object
    this.#settings = readObjectSettings(object, externalDns, onProblem)
    this.#ttlSeconds = externalDns.ttlSeconds()
    this.#onProblem = onProblem
  }

  /** Returns the record of a host. Throws RefusedError if a property of an annotation has no equivalent. */
  make(host: string, endpoints: readonly PlainEndpoint[]): RecordDocument {
    const { healthCheck } = this.#settings
    const annotations: Record<string, string> = { ...this.#settings.annotations }
    const documents = endpoints.map((endpoint) => this.#endpointOf(endpoint, annotations))
    return recordDocument(metadataOf(this.#word, this.#object, host, annotations), {
      rootHost: host,
      endpoints: documents,
      ...(healthCheck === undefined ? {} : { healthCheck }),
    })
  }

  /** Adds the settings that the endpoint needs to `annotations`. */
  #endpointOf(endpoint: PlainEndpoint, annotations: Record<string, string>): EndpointDocument {
    const { properties, setIdentifier, healthCheck } = this.#settings
    const hasHealthCheck = healthCheck !== undefined
    const mapped = mapProviderProperties(properties, { ...endpoint, hasHealthCheck })
    if ('refused' in mapped) {
      const { annotation } = properties[indexOf(mapped.refused)]!
      throw new RefusedError(placeOf(annotation), `${annotation}: ${mapped.refused.message}`)
    }
    for (const problem of mapped.problems) {
      const { annotation } = properties[indexOf(problem)]!
      const message = `${annotation}: ${problem.message}`
      this.#onProblem({ path: placeOf(annotation).path(), message })
    }
    for (const { name, value } of mapped.settings) annotations[SETTING_PREFIX + name] ??= value
    return {
      dnsName: endpoint.dnsName,
      recordType: mapped.recordType,
      targets: endpoint.targets,
      ...(this.#ttlSeconds === undefined ? {} : { recordTTL: this.#ttlSeconds }),
      setIdentifier: setIdentifier === '' ? UNNAMED_SET : setIdentifier,
      ...(mapped.properties.length === 0 ? {} : { providerSpecific: mapped.properties }),
    }
  }
}

/** Returns the metadata of the record of a host of an object. */
export function metadataOf(
  word: string,
  object: ApiObject,
  host: string,
  annotations: Readonly<Record<string, string>>,
): RecordDocument['metadata'] {
  const metadata = isObject(object.metadata) ? object.metadata : {}
  const creationTimestamp = textOf(metadata, 'creationTimestamp')
  return {
    name: recordNameOf(word, textOf(metadata, 'name'), host),
    namespace: textOf(metadata, 'namespace'),
    ...(creationTimestamp === '' ? {} : { creationTimestamp }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  }
}

function indexOf({ path }: FieldProblem): number {
  return Number(path[0])
}
