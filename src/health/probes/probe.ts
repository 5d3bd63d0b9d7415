import type { HealthCheck } from '../../records/health-check.ts'

/** One address or host name that is probed periodically. */
export interface Probe {
  /**
   * Unique; no white space. `namespace/name` of a DNSHealthCheckProbe, or the name that the
   * operator would give it.
   */
  readonly id: string
  readonly namespace: string
  /** IP address or host name, lower case. */
  readonly address: string
  /** IP address or host name that is probed in place of `address`; missing = `address` itself. */
  readonly testAddress?: string
  /** Host name for the Host header and SNI; '' = use the address. */
  readonly hostname: string
  readonly check: HealthCheck
}

/** Result of one probe attempt. A reason is short, on one line, and contains no header. */
export type ProbeOutcome =
  | { readonly kind: 'healthy' /** HTTP status; 0 = none. */; readonly httpStatus: number }
  | { readonly kind: 'unhealthy'; readonly httpStatus: number; readonly reason: string }
  /** The attempt was not made, or its failure is no evidence about the address. */
  | { readonly kind: 'skipped'; readonly reason: string }

/** Makes one attempt. Never rejects; resolves soon after `signal` aborts. */
export type Prober = (probe: Probe, signal: AbortSignal) => Promise<ProbeOutcome>
