import { CHECK_FIELDS } from '../health-check.ts'

/**
 * The fields of our kinds, as in the CustomResourceDefinitions; a test compares both. `undefined`: the field has no
 * fields that are known. For a list of mappings: the fields of its items.
 */
export interface KnownFields {
  readonly [name: string]: KnownFields | undefined
}

const ENDPOINT: KnownFields = {
  dnsName: undefined,
  recordType: undefined,
  targets: undefined,
  recordTTL: undefined,
  setIdentifier: undefined,
  labels: undefined,
  providerSpecific: { name: undefined, value: undefined },
}

/** Only manifests have it: it names a command of the Corefile. */
const COMMAND_FIELD = 'command'

/** Fields of a health check that a cluster has. */
export const HEALTH_CHECK: KnownFields = {
  path: undefined,
  port: undefined,
  protocol: undefined,
  interval: undefined,
  failureThreshold: undefined,
  successThreshold: undefined,
  ...Object.fromEntries(
    CHECK_FIELDS.filter((name) => name !== COMMAND_FIELD).map((name) => [name, undefined]),
  ),
  additionalHeadersRef: { name: undefined },
}

/** The fields of `spec`, by kind. */
export const SPEC_FIELDS = {
  DNSRecord: {
    rootHost: undefined,
    ownerID: undefined,
    providerRef: { name: undefined },
    delegate: undefined,
    endpoints: ENDPOINT,
    healthCheck: { ...HEALTH_CHECK, [COMMAND_FIELD]: undefined },
  },
  DNSHealthCheckProbe: {
    hostname: undefined,
    address: undefined,
    testAddress: undefined,
    allowInsecureCertificate: undefined,
    ...HEALTH_CHECK,
    [COMMAND_FIELD]: undefined,
  },
} as const satisfies Readonly<Record<string, KnownFields>>

/** The fields of `status` of a DNSHealthCheckProbe. */
export const PROBE_STATUS_FIELDS: readonly string[] = [
  'healthy',
  'consecutiveFailures',
  'reason',
  'status',
  'observedGeneration',
]

/** The fields of every resource. */
export const RESOURCE_FIELDS: readonly string[] = [
  'apiVersion',
  'kind',
  'metadata',
  'spec',
  'status',
]

/** The fields of ObjectMeta of Kubernetes that may be written by hand. */
export const METADATA_FIELDS: readonly string[] = [
  'name',
  'generateName',
  'namespace',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'creationTimestamp',
  'deletionTimestamp',
]
