/** Bounds on the resources that one peer, and all peers together, can use. */
export interface TcpLimits {
  /** Longest wait for the first query, and from the first octet of a message to its last. */
  readonly readMs: number
  /** Longest time that replies may wait for the peer to read them. */
  readonly writeMs: number
  /** As `writeMs` for a reply of many messages, if that is longer. */
  readonly streamWriteMs: number
  /** Longest time without a query. */
  readonly idleMs: number
  /** Queries per connection; -1 = no limit. */
  readonly queriesMax: number
  /** Queries of one connection that may wait for their answers; more are read later. */
  readonly inFlightMax: number
  /** Octets of replies that the peer may leave unread. Above this, the connection is cut. */
  readonly unsentOctetsMax: number
  /** Octets of replies that all peers together may leave unread. Above this, the connection with the most is cut. */
  readonly allUnsentOctetsMax: number
  readonly connectionsMax: number
  /** Connections of one client (see `Peer`). */
  readonly connectionsPerAddressMax: number
  /** Connections with a reply of many messages in progress; each holds an exchange until its end. */
  readonly streamsMax: number
  /** Octets of the shortest message; the first that is shorter ends the connection. */
  readonly messageOctetsMin: number
  /** Octets of the longest message; the first that is longer ends the connection before it is read. */
  readonly messageOctetsMax: number
  /** A connection counts as idle when its last query, or its start, is longer ago than this. */
  readonly sparedMs: number
  /** While closing: how long a connection must have been silent to be ended. */
  readonly quietMs: number
  /** How long `close` waits for clients to end their connections or to be silent, and for queries in flight. */
  readonly drainMs: number
}

/** CoreDNS's defaults of `timeouts`, and bounds of our own where CoreDNS has none. */
export const TCP_LIMITS_DEFAULT: TcpLimits = {
  readMs: 3000,
  writeMs: 5000,
  // Linux reports room once a third of the send buffer is free: 12 KiB/s with 4 MiB, the largest buffer without FFI.
  streamWriteMs: 120_000,
  idleMs: 10_000,
  queriesMax: -1,
  inFlightMax: 64,
  unsentOctetsMax: 1 << 20,
  // Without this limit, 2 000 connections with 1 MiB each would keep 2 GB.
  allUnsentOctetsMax: 1 << 27,
  connectionsMax: 2000,
  connectionsPerAddressMax: 100,
  streamsMax: 256,
  messageOctetsMin: 12,
  messageOctetsMax: 16_384,
  sparedMs: 500,
  quietMs: 1000,
  drainMs: 5000,
}
