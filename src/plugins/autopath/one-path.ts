import type { SearchPaths } from '../../plugin/search-paths.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** The same search path for all clients. */
export class OnePath implements SearchPaths {
  readonly reason = ''
  readonly #path: readonly Uint8Array[]
  readonly #first: ZoneSet

  /** `path`: at least one domain, in lower-case wire form. */
  constructor(path: readonly Uint8Array[]) {
    this.#path = path
    this.#first = new ZoneSet(path.slice(0, 1))
  }

  find({ query }: Transaction): readonly Uint8Array[] | undefined {
    const isBelow = query.qnameOctets > this.#path[0]!.length
    return isBelow && this.#first.match(query) !== -1 ? this.#path : undefined
  }
}
