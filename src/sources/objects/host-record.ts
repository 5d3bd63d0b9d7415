import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import {
  type EndpointDocument,
  type RecordDocument,
  recordDocument,
} from '../../records/record-document.ts'
import { type FieldProblem, RefusedError } from '../../records/validate/fields.ts'
import { SETTING_PREFIX } from '../../records/validate/settings.ts'
import { placeOf } from './external-dns-annotations.ts'
import { UNNAMED_SET } from './object-kind.ts'
import { mapProviderProperties } from './provider-properties.ts'
import { recordNameOf } from './record-name.ts'
import type { ObjectSettings } from './settings-annotations.ts'

/** What the record of a host is made from. */
export interface HostRecordParts {
  /** Of the kind. */
  readonly word: string
  /** The object that gives the record. */
  readonly object: ApiObject
  readonly host: string
  /** At least one. */
  readonly endpoints: readonly Pick<EndpointDocument, 'dnsName' | 'recordType' | 'targets'>[]
  /** Undefined = not given. */
  readonly ttlSeconds: number | undefined
  readonly settings: ObjectSettings
}

/**
 * Returns the record of a host, with the settings of the object in it. Throws RefusedError if a property of an
 * annotation has no equal. `onProblem` receives what is ignored.
 */
export function hostRecord(
  { word, object, host, endpoints, ttlSeconds, settings }: HostRecordParts,
  onProblem: (problem: FieldProblem) => void,
): RecordDocument {
  const { setIdentifier, healthCheck } = settings
  const annotations: Record<string, string> = { ...settings.annotations }
  const documents = endpoints.map((endpoint): EndpointDocument => {
    const hasHealthCheck = healthCheck !== undefined
    const mapped = mapProviderProperties(settings.properties, { ...endpoint, hasHealthCheck })
    if ('refused' in mapped) {
      const { annotation } = settings.properties[indexOf(mapped.refused)]!
      throw new RefusedError(placeOf(annotation), `${annotation}: ${mapped.refused.message}`)
    }
    for (const problem of mapped.problems) {
      const { annotation } = settings.properties[indexOf(problem)]!
      onProblem({ path: placeOf(annotation).path(), message: `${annotation}: ${problem.message}` })
    }
    for (const { name, value } of mapped.settings) annotations[SETTING_PREFIX + name] ??= value
    return {
      dnsName: endpoint.dnsName,
      recordType: mapped.recordType,
      targets: endpoint.targets,
      ...(ttlSeconds === undefined ? {} : { recordTTL: ttlSeconds }),
      setIdentifier: setIdentifier === '' ? UNNAMED_SET : setIdentifier,
      ...(mapped.properties.length === 0 ? {} : { providerSpecific: mapped.properties }),
    }
  })
  return recordDocument(metadataOf(word, object, host, annotations), {
    rootHost: host,
    endpoints: documents,
    ...(healthCheck === undefined ? {} : { healthCheck }),
  })
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
