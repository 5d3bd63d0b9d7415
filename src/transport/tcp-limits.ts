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
