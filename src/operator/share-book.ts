import type { PeerAnswer, PeerWord } from './peers.ts'

/** What is remembered of one peer about one record. */
export interface Remembered {
  /** What it said last; undefined = it never said anything. */
  readonly word: PeerWord | undefined
  /** Why it is silent just now; '' = it isn't. */
  readonly reason: string
}

/**
 * What the peers said of each record, so that those who fall silent are still heard. What a peer said before the
 * operator started comes from the record's status.
 */
export class ShareBook {
  readonly #pages = new Map<string, Map<string, Remembered>>()

  /** True if something is remembered of that record, if only that there is nothing. */
  has(key: string): boolean {
    return this.#pages.has(key)
  }

  /** Begins the page of a record with what was remembered elsewhere, by address. */
  open(key: string, remembered: ReadonlyMap<string, Remembered>): void {
    this.#pages.set(key, new Map(remembered))
  }

  /** Notes what the peer at `address` says. The page must be open. */
  note(key: string, address: string, answer: PeerAnswer): void {
    const page = this.#pages.get(key)
    if (page === undefined || answer.kind === 'pending') return
    if (answer.kind === 'said') page.set(address, { word: answer.word, reason: '' })
    else page.set(address, { word: answer.word ?? page.get(address)?.word, reason: answer.reason })
  }

  /** By address; what is of other addresses than these is forgotten. */
  read(key: string, addresses: readonly string[]): ReadonlyMap<string, Remembered> {
    const page = this.#pages.get(key) ?? new Map<string, Remembered>()
    for (const address of page.keys()) if (!addresses.includes(address)) page.delete(address)
    return page
  }

  forget(key: string): void {
    this.#pages.delete(key)
  }
}
