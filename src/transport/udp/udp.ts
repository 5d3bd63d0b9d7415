import type { Listener, QueryHandler } from '../exchange.ts'

export interface UdpOptions {
  /** An IP address; '' = every address, IPv4 and IPv6. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  readonly handler: QueryHandler
  /** Kernel buffers; undefined = leave them as the system has them. */
  readonly receiveBufferOctets?: number
  readonly sendBufferOctets?: number
  /** Counts into these, of the process; default: the listener has some of its own. */
  readonly counters?: UdpCounters
  /** How long `close` waits for queries in flight; default 5 s. */
  readonly drainMs?: number
}

export interface UdpCounters {
  /** Queries that found every exchange taken. */
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
 * Opens a UDP socket and answers what comes in. Rejects with the system's error (EADDRINUSE, …) where
 * it can't be bound.
 */
export type ListenUdp = (options: UdpOptions) => Promise<UdpListener>

/**
 * Octets that are read of a datagram. A query has a few hundred; of a longer datagram the rest is lost, and what was read
 * is answered: with FORMERR if a record does not end in it.
 */
export const QUERY_OCTETS_MAX = 4096

export const DRAIN_MS_DEFAULT = 5000

/**
 * Kernel buffers of a server's socket. The kernel takes twice what is asked for, and a query takes 768
 * octets of that or more (socket(7)): some ten thousand may wait, which are answered within 0.1 s. The
 * system's own default has room for 277, fewer than a busy resolver sends at once.
 */
export const RECEIVE_BUFFER_OCTETS = 2 ** 22
export const SEND_BUFFER_OCTETS = 2 ** 20
