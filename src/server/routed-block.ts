import type { Handler } from '../plugin/handler.ts'
import type { Transaction } from '../plugin/transaction.ts'

/** One key of a server block, as one listening address sees it. */
export interface RoutedBlock {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Presentation form, lower case, with the final dot. */
  readonly zoneText: string
  readonly chain: Handler
  /** The block serves a query only if every filter says true; empty = always. */
  readonly filters: readonly ((tx: Transaction) => boolean)[]
  /** '' = no view. */
  readonly viewName: string
  readonly bufsizeOctets: number
  readonly debug: boolean
}
