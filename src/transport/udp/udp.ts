import type { Listener, QueryHandler } from '../exchange.ts'

export interface UdpOptions {
  /** An IP address; '' = every address, IPv4 and IPv6. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  readonly handler: QueryHandler
  /** Size of the kernel's receive buffer; undefined = the system's default. */
  readonly receiveBufferOctets?: number
  readonly sendBufferOctets?: number
  /** Counters of the process; default: the listener has its own. */
  readonly counters?: UdpCounters
  /** How long `close` waits for queries in flight; default 5 s. */
  readonly drainMs?: number
}

export interface UdpCounters {
  /** Queries for which no exchange was free. */
  dropped: number
  /** Replies that could not be sent: the peer is unreachable, or the socket's buffer is full. */
  sendErrors: number
  /** Errors of the socket itself. */
  socketErrors: number
}

export function createUdpCounters(): UdpCounters {
  return { dropped: 0, sendErrors: 0, socketErrors: 0 }
}

export interface UdpListener extends Listener {
  readonly counters: Readonly<UdpCounters>
}

/**
 * Most octets that are read of a datagram. A query has a few hundred. The rest of a longer datagram
 * is lost, and what was read is answered: with FORMERR if a record is cut.
 */
export const QUERY_OCTETS_MAX = 4096

/** Longest reply: the maximum of `bufsize`. */
export const REPLY_OCTETS_MAX = 4096

export const DRAIN_MS_DEFAULT = 5000

/**
 * Size of the kernel's buffers of a server's socket. The kernel doubles this value, and a query
 * uses 768 octets or more (socket(7)). So some ten thousand queries may wait, and they are answered
 * within 0.1 s where answers are fast; `Backlog` bounds the wait elsewhere. The system's default
 * has room for 277, fewer than a busy resolver sends at once.
 */
export const RECEIVE_BUFFER_OCTETS = 2 ** 22
export const SEND_BUFFER_OCTETS = 2 ** 20
