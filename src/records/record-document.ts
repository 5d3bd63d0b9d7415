import { API_VERSION } from './dns-record.ts'

/** An endpoint of a DNSRecord as a document has it: not validated. */
export interface EndpointDocument {
  readonly dnsName: string
  readonly recordType: string
  /** Presentation format (RFC 1035 section 5.1). */
  readonly targets: readonly string[]
  readonly recordTTL?: number
  readonly setIdentifier?: string
  readonly providerSpecific?: readonly { readonly name: string; readonly value: string }[]
}

/**
 * A DNSRecord as a document: what is made from other kinds of objects and from other formats, before `validateResource`
 * reads it. It can be printed, written to the Kubernetes API, or served.
 */
export interface RecordDocument {
  readonly apiVersion: typeof API_VERSION
  readonly kind: 'DNSRecord'
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: {
    readonly rootHost: string
    readonly endpoints: readonly EndpointDocument[]
    readonly healthCheck?: Readonly<Record<string, unknown>>
  }
}

/** Returns a DNSRecord with these parts. */
export function recordDocument(
  metadata: RecordDocument['metadata'],
  spec: RecordDocument['spec'],
): RecordDocument {
  return { apiVersion: API_VERSION, kind: 'DNSRecord', metadata, spec }
}
