import type { Client } from '../client.ts'

/** A part of a policy that has no effect, or another effect than it says. */
export interface ListedProblem {
  /** `CiliumNetworkPolicy a/web`; '' = a file as a whole. */
  readonly object: string
  /** `spec.egress[0].toPorts`; '' = the object as a whole. */
  readonly field: string
  readonly message: string
  /** `FILE:LINE`; '' = the object is not from a file. */
  readonly place: string
  /** The API does not have the field: `sextant check` refuses it. */
  readonly isUnknown?: true
}

/** `problems`: of all policies, not only the new ones. */
export type ClientsListener = (
  clients: readonly Client[],
  problems: readonly ListedProblem[],
) => void

/** Where clients and their rules come from. */
export interface PolicySource {
  /** Starts to read and to follow, at the first call. */
  start(): void
  /**
   * Calls `listener` with all clients when they or the problems changed, and at once if the source is
   * synced. Clients that did not change are the same objects as before. Returns a function that ends it.
   */
  onChange(listener: ClientsListener): () => void
  /** True once everything was read. Before that, listeners get nothing. It never becomes false. */
  readonly isSynced: boolean
  /** Of all policies, also before the source is synced. */
  readonly problems: readonly ListedProblem[]
  /** Why clients may be missing or out of date; '' = they are not. */
  readonly reason: string
  close(): void
}

/** Prints a problem for the log: `FILE:LINE: OBJECT: FIELD: MESSAGE`. */
export function printProblem({ place, object, field, message }: ListedProblem): string {
  return [place, object, field, message].filter((part) => part !== '').join(': ')
}
