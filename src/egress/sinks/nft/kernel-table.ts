import { removeChains } from './chain.ts'
import {
  type EgressTableOptions,
  FORM_CHAIN,
  optionsChain,
  otherOptions,
  tableStatements,
} from './egress-table.ts'
import type { TableListing } from './table-listing.ts'

/** What is known of the table in the kernel, apart from its clients and elements. */
export class KernelTable {
  readonly #options: EgressTableOptions
  /** It is not known what the kernel has. */
  isStale = true
  /** The next transaction makes the table anew. */
  mustRecreate = false
  /** The table has the options of this process. */
  #isFormed = false
  /** Chains that identify the options of another process. */
  #otherOptions: readonly string[] = []

  constructor(options: EgressTableOptions) {
    this.#options = options
  }

  /** True if a listing is that of a table with the options of this process, and no others. */
  isOurs(listing: TableListing | undefined): listing is TableListing {
    const own = optionsChain(this.#options)
    if (listing?.chains.has(FORM_CHAIN) !== true || !listing.chains.has(own)) return false
    return otherOptions(listing, own).length === 0
  }

  /** Notes what the kernel has. */
  noteListing(listing: TableListing): void {
    this.#otherOptions = otherOptions(listing, optionsChain(this.#options))
    if (!listing.chains.has(FORM_CHAIN)) this.mustRecreate = true
  }

  /** Others have changed the table, or it may not be what it is thought to be. */
  distrust(): void {
    this.isStale = true
    this.mustRecreate = true
  }

  /** The statements that create the table, or give it the options of this process. */
  statements(): string[] {
    const { table } = this.#options
    if (this.mustRecreate) {
      const removal = [`add table inet ${table}`, `delete table inet ${table}`]
      return [...removal, ...tableStatements(this.#options)]
    }
    const form = this.#isFormed ? [] : tableStatements(this.#options)
    return [...form, ...removeChains(table, this.#otherOptions)]
  }

  /** The statements are in force. */
  noteWritten(): void {
    this.#isFormed = true
    this.#otherOptions = []
    this.mustRecreate = false
  }
}
