import type { Client } from './client.ts'

/** Addresses of a name that a client has learned. Times are monotonic milliseconds. */
export interface LearnedName {
  readonly client: Client
  /** Lower case, with the final dot. */
  readonly name: string
  readonly addresses: readonly string[]
  /** `connection`: the TTL has ended, but connections to the address, or to others of the name, are open. */
  readonly source: 'lookup' | 'connection'
  /** Time of the lookup, or when a connection was last known to be open. */
  readonly lookupMs: number
  /** As in the answer; 0 for connections. */
  readonly ttlSeconds: number
  /** End of the answer; for connections the next time at which it may be removed. */
  readonly endMs: number
}

/** What the API and the metrics of a node need from the agent. */
export interface LearnedNames {
  learned(): Iterable<LearnedName>
  /** Removes the names for which `isMeant` is true, and what they allow, from all clients. Open connections stay. */
  forget(isMeant: (name: string) => boolean): void
}
