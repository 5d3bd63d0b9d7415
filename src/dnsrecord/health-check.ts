/**
 * HTTP and HTTPS work as upstream. The others are extensions. TCP only checks that a connection
 * succeeds. GRPC and GRPCS (with TLS) call `grpc.health.v1.Health/Check`. DNS sends a query. EXEC
 * runs a command that the server's configuration has.
 */
export const PROBE_PROTOCOLS = ['HTTP', 'HTTPS', 'TCP', 'GRPC', 'GRPCS', 'DNS', 'EXEC'] as const
export type ProbeProtocol = (typeof PROBE_PROTOCOLS)[number]

/** HTTP status codes from `first` to `last`, both included. */
export interface StatusRange {
  readonly first: number
  readonly last: number
}

/** Where the targets of an endpoint are probed. At least one field is set. */
export interface ProbeAt {
  /** IP address or host name to probe in place of each target; '' = the target itself. */
  readonly address: string
  /** 0 = the port of the health check. */
  readonly port: number
}

/** How an address is probed: `spec.healthCheck` of a DNSRecord, or `spec` of a DNSHealthCheckProbe. */
export interface HealthCheck {
  readonly protocol: ProbeProtocol
  /** 1..65535. */
  readonly port: number
  /** Begins with `/` or `?`; up to `PATH_CHARACTERS_MAX`. */
  readonly path: string
  /** At least `INTERVAL_MIN_MS`. */
  readonly intervalMs: number
  /** At least 1. As upstream, an address is down after _more_ consecutive failures than this. */
  readonly failureThreshold: number
  /** At least 1: number of consecutive successes after which an address is up again. */
  readonly successThreshold: number
  /** Name of the Secret with headers to send, in the record's namespace; '' = none. */
  readonly headersSecret: string
  readonly allowsInsecureCertificate: boolean
  /** HTTP and HTTPS: the statuses that are healthy; missing = `EXPECTED_STATUS_DEFAULT`. */
  readonly expectedStatus?: readonly StatusRange[]
  /** HTTP and HTTPS: text that the body must contain; missing = the body is not read. */
  readonly expectedBody?: string
  /** GRPC and GRPCS: the service; missing = the server as a whole. */
  readonly grpcService?: string
  /** DNS: the question. Never missing with this protocol. `name`: as `scanHost` reads it. */
  readonly query?: { readonly name: string; readonly type: number }
  /** DNS: 0..15; missing = NOERROR. */
  readonly expectedRcode?: number
  /** DNS: an IP address that the answer must contain; missing = any answer. */
  readonly expectedAddress?: string
  /** EXEC: name of the command in the Corefile. Never missing with this protocol. */
  readonly command?: string
}

/** Defaults of missing fields; the numbers are those of the CustomResourceDefinition. */
export const HEALTH_CHECK_DEFAULTS: HealthCheck = {
  protocol: 'HTTPS',
  port: 443,
  path: '/',
  intervalMs: 5 * 60_000,
  failureThreshold: 5,
  successThreshold: 1,
  headersSecret: '',
  allowsInsecureCertificate: false,
}

/** As upstream. */
export const EXPECTED_STATUS_DEFAULT: readonly StatusRange[] = [{ first: 200, last: 201 }]

/** Shorter intervals are raised to this. */
export const INTERVAL_MIN_MS = 1000
/** Longer intervals are lowered to this. */
export const INTERVAL_MAX_MS = 24 * 3600 * 1000
export const PATH_CHARACTERS_MAX = 1024
/** Bounds on one list of expected statuses, and on each of them. */
export const STATUS_RANGES_MAX = 16
export const STATUS_MIN = 200
export const STATUS_MAX = 599
/** Names of commands in a Corefile. */
export const COMMAND_NAME = /^[A-Za-z0-9][\w.-]{0,62}$/
export const BODY_CHARACTERS_MAX = 1024
/** A larger threshold is refused as a mistake. */
export const THRESHOLD_MAX = 1000

/** True if the request has a host name, which a record with a wildcard host does not have. */
export function sendsHostName({ protocol }: Pick<HealthCheck, 'protocol'>): boolean {
  return protocol !== 'TCP' && protocol !== 'DNS' && protocol !== 'EXEC'
}
