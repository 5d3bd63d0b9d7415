import { isIP, type Socket } from 'node:net'
import type { CheckOf, ProbeProtocol } from '../../records/health-check.ts'
import type { ProbeOutcome } from './probe.ts'

/** One probe attempt on one IP address, with a check of these protocols. */
export interface Attempt<P extends ProbeProtocol = ProbeProtocol> {
  readonly check: CheckOf<P>
  readonly ip: string
  /** Host name for the request and SNI; '' = use the address. */
  readonly hostname: string
  readonly headers: ReadonlyMap<string, string>
  /** Program and arguments of an EXEC check; empty for other protocols. */
  readonly command: readonly string[]
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
export type Begin<P extends ProbeProtocol> = (
  attempt: Attempt<P>,
  listener: AttemptListener,
) => () => void

/** Returns the host name for a request. */
export function hostOf({ hostname, ip }: Pick<Attempt, 'hostname' | 'ip'>): string {
  if (hostname !== '') return hostname
  return isIP(ip) === 6 ? `[${ip}]` : ip
}

/** Returns the server name of TLS; '' = none. RFC 6066 section 3: SNI does not carry addresses. */
export function serverNameOf(hostname: string): string {
  return isIP(hostname) === 0 ? hostname : ''
}
