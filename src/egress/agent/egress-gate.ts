import type { Observation } from '../../client/resolver/observation.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { GateResult } from '../gate.ts'
import type { Client } from './client.ts'

/** What the directive that answers the queries of clients needs from the agent. */
export interface EgressGate {
  /** `bytes[offset]` starts an address of 4 (family 1) or 16 octets (family 2). Undefined = not a client. */
  clientAt(bytes: Uint8Array, offset: number, family: number): Client | undefined
  /** All clients. */
  clients(): readonly Client[]
  /** Calls `listener` after a change of the clients, until the returned function is called. */
  onClients(listener: () => void): () => void
  /** True if the DNS rules of the client let it ask for the name. */
  mayAsk(client: Client, protocol: 'udp' | 'tcp', name: HashedName): boolean
  /**
   * Notes the addresses of a reply that the client is about to get, and allows those that its rules
   * select. Returns a wait, which ends at the latest after the agent's bound; undefined = the reply
   * need not wait. An answer to a query for HTTPS or SVCB is one observation for each family of its hints.
   */
  learn(client: Client, observed: Observation): Promise<GateResult> | undefined
}
