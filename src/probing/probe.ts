import type { HealthCheck } from '../record/health-check.ts'

/** One address, or host name, that is looked at again and again. */
export interface Probe {
  /** Tells it from all others; no white space. `namespace/name` of a DNSHealthCheckProbe, or what would be that. */
  readonly id: string
  readonly namespace: string
  /** IP address or host name, lower case. */
  readonly address: string
  /** What to ask it for: Host header and SNI; '' = the address itself. */
  readonly hostname: string
  readonly check: HealthCheck
}

/** What one look at an address found. Reasons are short, on one line, and name no header. */
export type ProbeOutcome =
  | { readonly kind: 'healthy' /** HTTP status; 0 = none. */; readonly httpStatus: number }
  | { readonly kind: 'unhealthy'; readonly httpStatus: number; readonly reason: string }
  /** It was not looked at, or what went wrong says nothing of it. */
  | { readonly kind: 'skipped'; readonly reason: string }

/** Looks once. Never rejects; resolves soon after `signal` aborts. */
export type Prober = (probe: Probe, signal: AbortSignal) => Promise<ProbeOutcome>
