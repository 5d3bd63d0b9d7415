/** HTTP and HTTPS as upstream has them; TCP, which is ours, asks for no more than a connection. */
export type ProbeProtocol = 'HTTP' | 'HTTPS' | 'TCP'

export const PROBE_PROTOCOLS: readonly ProbeProtocol[] = ['HTTP', 'HTTPS', 'TCP']

/** How an address is probed: `spec.healthCheck` of a DNSRecord, or `spec` of a DNSHealthCheckProbe. */
export interface HealthCheck {
  readonly protocol: ProbeProtocol
  /** 1..65535. */
  readonly port: number
  /** Begins with `/` or `?`; up to `PATH_CHARACTERS_MAX`. */
  readonly path: string
  /** At least `INTERVAL_MIN_MS`. */
  readonly intervalMs: number
  /** At least 1: an address is down once it failed _more_ often than that in a row, as upstream. */
  readonly failureThreshold: number
  /** At least 1: an address that is down is up again after so many successes in a row. */
  readonly successThreshold: number
  /** Name of the Secret with headers to send, in the namespace of the record; '' = none. */
  readonly headersSecret: string
  readonly allowsInsecureCertificate: boolean
}

/** What is not given; the numbers are those of the CustomResourceDefinition. */
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

/** Shorter intervals count as this long. */
export const INTERVAL_MIN_MS = 1000
/** Longer ones as this. */
export const INTERVAL_MAX_MS = 24 * 3600 * 1000
export const PATH_CHARACTERS_MAX = 1024
/** Thresholds beyond that are slips. */
export const THRESHOLD_MAX = 1000
