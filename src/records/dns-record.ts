import type { GeoCode } from '../geo/code.ts'
import type { Point } from '../geo/point.ts'
import type { HealthCheck, ProbeAt } from './health-check.ts'
import type { RecordSettings } from './settings.ts'
import type { FieldProblem } from './validate/fields.ts'

/** Group and version of the resource kinds that this server reads. */
export const API_GROUP = 'kuadrant.io'
export const API_VERSION = 'kuadrant.io/v1alpha1'

/** Bounds on one record. A record above a bound is refused, never truncated. */
export const ENDPOINTS_MAX = 1000
/**
 * Bound for a record that an operator derived. A local form has several endpoints for each original
 * one; a merged record has those of all sites.
 */
export const DERIVED_ENDPOINTS_MAX = 8 * ENDPOINTS_MAX
export const TARGETS_MAX = 256
export const GEO_CODES_MAX = 64
export const SET_IDENTIFIER_CHARACTERS_MAX = 1024
/** TTL of an endpoint without a TTL: the value that DNSPolicy uses for address records. */
export const TTL_DEFAULT_SECONDS = 60
/** RFC 2181 section 8. */
export const TTL_MAX_SECONDS = 0x7fffffff

/**
 * Type of an ALIAS endpoint, which stands for the addresses of another name: of private use (RFC 6895 section 3.1), as
 * in PowerDNS. No zone has it: it is replaced by A and AAAA endpoints.
 */
export const ALIAS_TYPE = 65_401

export { WEIGHT_MAX } from '../steering/candidate.ts'

/** A valid endpoint of a DNSRecord (external-dns's Endpoint): the unit that steering selects. */
export interface Endpoint {
  /** Lower-case wire name. */
  readonly owner: Uint8Array
  readonly type: number
  /** 0..TTL_MAX_SECONDS. */
  readonly ttlSeconds: number
  /** '' = none. */
  readonly setIdentifier: string
  /** 0..WEIGHT_MAX; undefined = no weight. */
  readonly weight: number | undefined
  /**
   * GEO codes of the clients that it serves; empty = none. `*` is not included: see `isDefault`.
   */
  readonly codes: readonly GeoCode[]
  /** True: serves clients that no GEO code of the set matches. */
  readonly isDefault: boolean
  /** Where its targets are, to choose by distance; undefined = unknown. */
  readonly point?: Point | undefined
  /** Targets as uncompressed wire rdata, at least one. Names in them are in lower case. */
  readonly rdata: readonly Uint8Array[]
  /** Undefined = its targets are probed themselves, as the health check says. */
  readonly probeAt?: ProbeAt | undefined
  /** Target of the ALIAS endpoint of the same record that it is made from; undefined = the record itself has it. */
  readonly aliasOf?: Uint8Array | undefined
}

/** A valid DNSRecord with the fields that serving needs. */
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
   * True if an operator merged the records of several clusters (label `kuadrant.io/type: merged` or
   * `kuadrant.io/authoritative-record: "true"`). Such a record has no gateway-local form of its
   * own.
   */
  readonly isAggregate: boolean
  /** metadata.creationTimestamp in seconds since the epoch; 0 = missing. */
  readonly createdSeconds: number
  readonly endpoints: readonly Endpoint[]
  /** How its addresses are probed; undefined = they are not probed. */
  readonly healthCheck?: HealthCheck | undefined
  /** Undefined = no annotation sets anything. */
  readonly settings?: RecordSettings | undefined
}

/**
 * A DNSHealthCheckProbe: reports whether an address of a record is down, or defines how to probe
 * it.
 */
export interface HealthProbe {
  readonly namespace: string
  readonly name: string
  /** Name of the DNSRecord, in the same namespace. */
  readonly recordName: string
  /** spec.address: an IP address or host name, lower case. */
  readonly address: string
  /** spec.testAddress: IP address or host name to probe in place of `address`; '' = missing. */
  readonly testAddress: string
  readonly isDown: boolean
  /** Why the address is down; '' = it is not. */
  readonly downReason: string
  /** spec.hostname: host name for the request to the address; '' = missing. */
  readonly hostname: string
  /** How to probe; undefined = another prober has set `status.healthy`. */
  readonly check: HealthCheck | undefined
}

/** A resource of another kind, or one that is being deleted: ignored. */
export interface OtherResource {
  readonly kind: 'other'
  /** Its kind; '' = it is being deleted, or the document is empty. */
  readonly name: string
  /** Set if the resource was probably meant to be one of our kinds. */
  readonly problem?: FieldProblem
}

/** Result of reading one resource of a manifest. */
export type Resource =
  | { readonly kind: 'record'; readonly record: DnsRecord }
  | { readonly kind: 'probe'; readonly probe: HealthProbe }
  | OtherResource
  /**
   * `key`: `namespace/name`, for a probe with its kind in front; '' if the resource has no
   * identity.
   */
  | { readonly kind: 'refused'; readonly key: string; readonly problem: FieldProblem }

/** Returns the identity of a record across all namespaces. */
export function recordKey(namespace: string, name: string): string {
  return `${namespace}/${name}`
}
