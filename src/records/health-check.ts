import { type CheckKind, PORT_DEFAULT } from './checks/check-kind.ts'
import { DNS_CHECK } from './checks/dns.ts'
import { EXEC_CHECK } from './checks/exec.ts'
import { GRPC_CHECK } from './checks/grpc.ts'
import { HTTP_CHECK } from './checks/http.ts'
import { TCP_CHECK } from './checks/tcp.ts'

/** The kind of each protocol. `BEGIN` has the function that probes with it. */
export const CHECK_KINDS = {
  HTTP: HTTP_CHECK,
  HTTPS: HTTP_CHECK,
  TCP: TCP_CHECK,
  GRPC: GRPC_CHECK,
  GRPCS: GRPC_CHECK,
  DNS: DNS_CHECK,
  EXEC: EXEC_CHECK,
}
export type ProbeProtocol = keyof typeof CHECK_KINDS
export const PROBE_PROTOCOLS = Object.keys(CHECK_KINDS) as readonly ProbeProtocol[]

/** Fields of `spec` that not every kind has. */
export const CHECK_FIELDS: readonly string[] = [
  ...new Set(Object.values(CHECK_KINDS).flatMap(({ fields }) => fields)),
]

/** Where the targets of an endpoint are probed. At least one field is set. */
export interface ProbeAt {
  /** IP address or host name to probe in place of each target; '' = the target itself. */
  readonly address: string
  /** 0 = the port of the health check. */
  readonly port: number
}

/** What every health check has. */
interface CommonCheck {
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
}

type PartOf<P extends ProbeProtocol> =
  (typeof CHECK_KINDS)[P] extends CheckKind<infer Part> ? Part : never

/** The checks with these protocols. */
export type CheckOf<P extends ProbeProtocol> = {
  [Q in P]: CommonCheck & { readonly protocol: Q } & PartOf<Q>
}[P]

/** How an address is probed: `spec.healthCheck` of a DNSRecord, or `spec` of a DNSHealthCheckProbe. */
export type HealthCheck = CheckOf<ProbeProtocol>

/** Defaults of missing fields; the numbers are those of the CustomResourceDefinition. */
export const HEALTH_CHECK_DEFAULTS: CheckOf<'HTTPS'> = {
  protocol: 'HTTPS',
  port: PORT_DEFAULT,
  path: '/',
  intervalMs: 5 * 60_000,
  failureThreshold: 5,
  successThreshold: 1,
  headersSecret: '',
  allowsInsecureCertificate: false,
}

/** Shorter intervals are raised to this. */
export const INTERVAL_MIN_MS = 1000
/** Longer intervals are lowered to this. */
export const INTERVAL_MAX_MS = 24 * 3600 * 1000
export const PATH_CHARACTERS_MAX = 1024
/** A larger threshold is refused as a mistake. */
export const THRESHOLD_MAX = 1000
