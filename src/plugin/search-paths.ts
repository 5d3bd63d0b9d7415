import { lazyKey } from '../base/shared-values.ts'
import type { Transaction } from './transaction.ts'

/** The search paths of clients (resolv.conf(5), `search`). */
export interface SearchPaths {
  /** Why no path is ever found; '' = some are. */
  readonly reason: string
  /**
   * Returns the domains that the client of the query appends to names, in order and in lower-case wire form. The
   * name of the query is below the first of them. undefined = the path is unknown, or the name is elsewhere.
   */
  find(tx: Transaction): readonly Uint8Array[] | undefined
}

/** Search paths of the clients of a server block, by the directive that knows them. */
export const SEARCH_PATHS = lazyKey('search paths', () => new Map<string, SearchPaths>())
