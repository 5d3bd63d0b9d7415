import { type ApiObject, isObject } from '../../src/kube/api.ts'

/** A provider Secret as the API has it. */
export function secret(
  namespace: string,
  name: string,
  data: Readonly<Record<string, string>>,
  { type = 'kuadrant.io/coredns', labels = {} }: { type?: string; labels?: ApiObject } = {},
): ApiObject {
  const encoded = Object.entries(data).map(([key, value]) => [
    key,
    Buffer.from(value).toString('base64'),
  ])
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type,
    metadata: { namespace, name, labels, resourceVersion: '1' },
    data: Object.fromEntries(encoded),
  }
}

export interface RecordParts {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
  readonly metadata?: ApiObject
  readonly spec?: ApiObject
  readonly status?: ApiObject
}

/** A DNSRecord of `k.example.com`, with one address, that names the Secret `coredns`. */
export function dnsRecord(parts: RecordParts = {}): ApiObject {
  const { name = 'app', namespace = 'a', metadata = {}, spec = {}, status } = parts
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: {
      name,
      namespace,
      uid: parts.uid ?? `uid-of-${name}`,
      generation: 1,
      resourceVersion: '10',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    spec: {
      rootHost: 'k.example.com',
      providerRef: { name: 'coredns' },
      endpoints: [
        { dnsName: 'k.example.com', recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] },
      ],
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  }
}

/** `managedFields` of an object that the operator has applied something to. */
export const MANAGED: ApiObject = {
  managedFields: [{ manager: 'sextant-operator', operation: 'Apply' }],
}

/** The object's `name` of its mapping `parent`. */
export function at(object: ApiObject | undefined, ...path: readonly string[]): unknown {
  let value: unknown = object
  for (const name of path) {
    value = isObject(value as ApiObject) ? (value as ApiObject)[name] : undefined
  }
  return value
}
