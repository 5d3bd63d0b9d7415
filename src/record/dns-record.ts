import type { GeoCode } from '../geo/code.ts'
import type { HealthCheck } from './health-check.ts'

/** Group and version of the kinds that we read. */
export const API_GROUP = 'kuadrant.io'
export const API_VERSION = 'kuadrant.io/v1alpha1'

/** Bounds on one record: what is beyond them is refused, never cut. */
export const ENDPOINTS_MAX = 1000
/** Of a record that an operator made: a local form has several for each, a merged one those of all sites. */
export const DERIVED_ENDPOINTS_MAX = 8 * ENDPOINTS_MAX
export const TARGETS_MAX = 256
export const GEO_CODES_MAX = 64
export const SET_IDENTIFIER_CHARACTERS_MAX = 1024
/** TTL of an endpoint that names none: that of the DNSPolicy's own address records. */
export const TTL_DEFAULT_SECONDS = 60
/** RFC 2181 section 8. */
export const TTL_MAX_SECONDS = 0x7fffffff

export { WEIGHT_MAX } from '../steering/candidate.ts'

/** One endpoint of a DNSRecord, checked: the unit of choice (external-dns's Endpoint). */
export interface Endpoint {
  /** Lower-case wire name. */
  readonly owner: Uint8Array
  readonly type: number
  /** 0..TTL_MAX_SECONDS. */
  readonly ttlSeconds: number
  /** '' = none. */
  readonly setIdentifier: string
  /** 0..WEIGHT_MAX; undefined = none given. */
  readonly weight: number | undefined
  /** Whom it is for; empty = no geo code. `*` is not among them: that is `isDefault`. */
  readonly codes: readonly GeoCode[]
  /** For clients that no code of the set matches. */
  readonly isDefault: boolean
  /** Targets as uncompressed wire rdata; at least one, names in them in lower case. */
  readonly rdata: readonly Uint8Array[]
}

/** A DNSRecord, checked, as far as serving it needs. */
export interface DnsRecord {
  readonly namespace: string
  readonly name: string
  /** Label kuadrant.io/coredns-zone-name, without a final dot, lower case; '' = none. */
  readonly zoneLabel: string
  /** Lower-case wire name, without a leading `*.`. */
  readonly rootHost: Uint8Array
  /** spec.rootHost has a leading `*.`. */
  readonly isWildcardHost: boolean
  /**
   * Put together by an operator out of the records of several clusters (label `kuadrant.io/type:
   * merged` or `kuadrant.io/authoritative-record: "true"`): has no gateway-local form of its own.
   */
  readonly isAggregate: boolean
  /** metadata.creationTimestamp in seconds since the epoch; 0 = none. */
  readonly createdSeconds: number
  readonly endpoints: readonly Endpoint[]
  /** How its addresses are to be probed; undefined = not at all. */
  readonly healthCheck?: HealthCheck | undefined
}

/** A DNSHealthCheckProbe: says that an address of a record is down, or that it is not, or how to find out. */
export interface HealthProbe {
  readonly namespace: string
  readonly name: string
  /** Name of the DNSRecord, in the same namespace. */
  readonly recordName: string
  /** spec.address: an IP address or host name, lower case. */
  readonly address: string
  readonly isDown: boolean
  /** spec.hostname: what to ask the address for; '' = none given. */
  readonly hostname: string
  /** How to find out; undefined = somebody else has, `status.healthy` is given. */
  readonly check: HealthCheck | undefined
}

/** Why a resource is refused, and which field of it is to blame. */
export interface FieldProblem {
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** What one resource of a manifest turned out to be. */
export type Resource =
  | { readonly kind: 'record'; readonly record: DnsRecord }
  | { readonly kind: 'probe'; readonly probe: HealthProbe }
  /** Not ours, or on its way out: nothing to serve, nothing to say. */
  | { readonly kind: 'other' }
  /** `key`: `namespace/name`, for a probe with its kind before it; '' where the resource doesn't say who it is. */
  | { readonly kind: 'refused'; readonly key: string; readonly problem: FieldProblem }

/** Identity of a record over all namespaces. */
export function recordKey(namespace: string, name: string): string {
  return `${namespace}/${name}`
}
