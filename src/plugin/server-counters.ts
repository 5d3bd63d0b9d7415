import { key } from '../base/shared-values.ts'
import type { PROTOCOL_NAMES } from '../dns/message/query.ts'

/** Counts of packets that ended before any chain, since the process started. */
export interface ServerCounters {
  /** Threads that answer queries, this one included. */
  readonly threads: number
  readonly ignored: number
  readonly panics: number
  readonly losses: Losses
  /** Keyed by listen address, `dns://:53`. */
  readonly dropped: ReadonlyMap<string, DroppedCounters>
}

interface QueryCount {
  readonly proto: (typeof PROTOCOL_NAMES)[number]
  /** 1 = IPv4, 2 = IPv6. */
  readonly family: number
  readonly count: number
}

/** Queries that the server itself answered with an error. */
export interface DroppedCounters {
  readonly formErr: number
  readonly notImp: number
  readonly badVers: number
  readonly refused: number
  /** All of these queries, by transport protocol and address family. */
  readonly queries: readonly QueryCount[]
}

/**
 * What the process dropped since it started because a limit was reached. A missing field is unknown
 * on this machine.
 */
export interface Losses {
  /** UDP queries that arrived while too many waited for their replies. */
  readonly overloaded?: number
  /** UDP queries that the kernel dropped because the buffer of their socket was full. */
  readonly unbuffered?: number
  /** UDP queries that waited longer than `-max-query-age` in the buffer of their socket. */
  readonly late?: number
  /** UDP replies that the kernel did not accept. */
  readonly unsent?: number
  /** TCP connections over a limit. */
  readonly refusedConnections?: number
  /** TCP connections cut because the peer did not send or read in time, */
  readonly timedOutConnections?: number
  /** or left too much unread, */
  readonly overrunConnections?: number
  /** or too many queries waited, */
  readonly overloadedConnections?: number
  /** or a message was shorter than a header. */
  readonly malformedConnections?: number
  /** Log lines and other texts of data threads. */
  readonly lines?: number
}

/** For directives that export these counters. */
export const SERVER_COUNTERS = key<ServerCounters>('counters of the server')
