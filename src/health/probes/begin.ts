import type { Socket } from 'node:net'
import type { HealthCheck } from '../../dnsrecord/health-check.ts'
import type { ProbeOutcome } from './probe.ts'

/** One probe attempt on one IP address. */
export interface Attempt {
  readonly check: HealthCheck
  readonly ip: string
  /** Host name for the request and SNI; '' = use the address. */
  readonly hostname: string
  readonly headers: ReadonlyMap<string, string>
}

/** Receives the events of an attempt. Events after the first error or outcome are ignored. */
export interface AttemptListener {
  /** The connection must be established in time. */
  readonly onSocket: (socket: Socket) => void
  readonly onError: (error: Error) => void
  readonly onDone: (outcome: ProbeOutcome) => void
}

/**
 * Begins an attempt; returns the function that ends it. Calls the listener only after it returned,
 * except for `onSocket`.
 */
export type Begin = (attempt: Attempt, listener: AttemptListener) => () => void
