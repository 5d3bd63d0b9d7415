import type { ApiObject } from '../../../src/kube/api.ts'
import type { EndpointDocument, RecordDocument } from '../../../src/records/record-document.ts'
import {
  type ObjectKind,
  type ObjectReader,
  type ObjectRecords,
  UNNAMED_SET,
} from '../../../src/sources/objects/object-kind.ts'

/** An object with its resource. */
export interface Put {
  readonly plural: string
  readonly object: ApiObject
}

/** Returns an object as the API has it. `more`: spec, status and other fields. */
export function objectOf(
  [apiVersion, kind]: readonly [string, string],
  name: string,
  annotations: Readonly<Record<string, string>>,
  more: ApiObject,
): ApiObject {
  const metadata = {
    namespace: 'shop',
    name,
    uid: `uid-${name}`,
    creationTimestamp: '2026-11-01T00:00:00Z',
    annotations,
  }
  return { apiVersion, kind, metadata, ...more }
}

/** Prints an endpoint: `a.example A 192.0.2.1 ttl=60 id=x weight=1`. */
export function printEndpoint(endpoint: EndpointDocument): string {
  const { dnsName, recordType, targets, recordTTL, setIdentifier, providerSpecific } = endpoint
  return [
    dnsName,
    recordType,
    targets.join(','),
    ...(recordTTL === undefined ? [] : [`ttl=${recordTTL}`]),
    ...(setIdentifier === UNNAMED_SET ? [] : [`id=${setIdentifier}`]),
    ...(providerSpecific ?? []).map(({ name, value }) => `${name}=${value}`),
  ].join(' ')
}

export function printRecords(records: readonly RecordDocument[] | undefined): string[] | undefined {
  return records?.flatMap(({ spec }) => spec.endpoints.map(printEndpoint))
}

/** Returns what the objects stand for, by `namespace/name`, after one `settle`. */
export function settledOf(kind: ObjectKind, puts: readonly Put[]): Map<string, ObjectRecords> {
  const reader = kind.open()
  for (const { plural, object } of puts) reader.put(plural, object)
  return fold(new Map(), reader)
}

/** Applies the changes of a reader. */
export function fold(
  held: Map<string, ObjectRecords>,
  reader: ObjectReader,
): Map<string, ObjectRecords> {
  for (const one of reader.settle()) {
    const key = `${one.of.namespace}/${one.of.name}`
    if (one.records?.length === 0 && one.problems.length === 0) held.delete(key)
    else held.set(key, one)
  }
  return held
}

/** Prints problems as `metadata.annotations.x: why`. */
export function printProblems({ problems }: Pick<ObjectRecords, 'problems'>): string[] {
  return problems.map(({ path, message }) => `${path.join('.')}: ${message}`)
}
