import type { ZombieLimits } from '../learned/zombies.ts'

export interface AgentLimits extends ZombieLimits {
  /** Counts in place of smaller TTLs. */
  readonly minTtlSeconds: number
  /** Addresses of one name that a collection leaves; 0 = no limit. */
  readonly addressesPerName: number
  /** Addresses of all names of one client. An address of two names counts twice. */
  readonly addressesPerClient: number
  /** Addresses of names of one client that no rule selects: they are kept for a change of the rules. */
  readonly unselectedAddresses: number
  /** Addresses of all names of all clients, with zombies and names that no rule selects. */
  readonly addresses: number
  /** Addresses that one client may learn at once, if it learned none before. */
  readonly newAddresses: number
  /** Addresses that one client may learn each second. */
  readonly newAddressesPerSecond: number
}

/**
 * The minimum TTL makes an answer with a TTL of 0 usable: the client has so long to connect, with a second SYN after
 * 1 s and a third after 3 s. NPEP-133 asks for 100 addresses per name and more. An address of a name takes about 4 kB
 * with its element, so all of them fit into the memory that `deploy/node` gives. The other numbers are those of Cilium.
 */
export const AGENT_LIMITS_DEFAULT: AgentLimits = {
  minTtlSeconds: 5,
  addressesPerName: 1000,
  addressesPerClient: 12_000,
  unselectedAddresses: 1000,
  addresses: 60_000,
  newAddresses: 20_000,
  newAddressesPerSecond: 1000,
  most: 10_000,
  perName: 1000,
  idleGraceMs: 0,
  keepMs: 5 * 60_000,
}
