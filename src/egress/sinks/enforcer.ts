import type { Client } from '../agent/client.ts'
import type { Acknowledgement } from '../gate.ts'
import type { Allowance } from '../rules/allowance.ts'

export type { Allowance } from '../rules/allowance.ts'

/** A pair of addresses of one family, both in canonical form. */
export interface AddressPair {
  readonly client: string
  readonly address: string
}

/** What enforces the rules of clients: nftables, or nothing in a dry run. */
export interface Enforcer {
  /**
   * Sets the clients, and their rules for addresses that no name leads to. Removes what names
   * allowed to clients that are gone or replaced. Resolves with '' once this is in force,
   * otherwise with the reason why it is not; then it is tried again. With `isComplete` false, such as before the
   * sources are read, clients of an earlier process that are not in the list stay as they are.
   */
  setClients(clients: readonly Client[], isComplete?: boolean): Acknowledgement
  /**
   * Sets what names allow for a pair, in place of what was set before. Returns a wait: '' = it is in
   * force, otherwise the reason why it is not. Undefined = it is in force already.
   */
  allow(pair: AddressPair, allowances: readonly Allowance[]): Acknowledgement | undefined
  /**
   * Until this is called, nothing is removed that an earlier process allowed to clients that are the same. Call it
   * once all that is known of that process is set: then what a pair is set to is all that it may have. Resolves
   * with '' once it is known what the earlier process allowed, otherwise with the reason why not.
   */
  adopt(): Acknowledgement
  /** Starts no more transactions. What is in force stays. */
  close(): Promise<void>
}
