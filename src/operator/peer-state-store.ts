import { keepLaterSince } from '../peering/to-peer-endpoint.ts'
import type { PeerAnswer, PeerState } from './peers.ts'

/** What is remembered of one peer about one record. */
export interface KnownPeers {
  /** What it said last; undefined = it never said anything. */
  readonly word: PeerState | undefined
  /** Why it is silent just now; '' = it isn't. */
  readonly reason: string
}

/**
 * What the peers said of each record, so that those who fall silent are still heard. What a peer said before the
 * operator started comes from the record's status.
 */
export class PeerStateStore {
  readonly #pages = new Map<string, Map<string, KnownPeers>>()

  /** True if something is remembered of that record, if only that there is nothing. */
  has(key: string): boolean {
    return this.#pages.has(key)
  }

  /** Begins the page of a record with what was remembered elsewhere, by address. */
  open(key: string, known: ReadonlyMap<string, KnownPeers>): void {
    this.#pages.set(key, new Map(known))
  }

  /** Notes what the peer at `address` says. The page must be open. */
  note(key: string, address: string, answer: PeerAnswer): void {
    const page = this.#pages.get(key)
    if (page === undefined || answer.kind === 'pending') return
    const known = page.get(address)?.word
    const word = answer.word === undefined ? known : withLaterTimes(known, answer.word)
    page.set(address, { word, reason: answer.kind === 'said' ? '' : answer.reason })
  }

  /** By address; what is of other addresses than these is forgotten. */
  read(key: string, addresses: readonly string[]): ReadonlyMap<string, KnownPeers> {
    const page = this.#pages.get(key) ?? new Map<string, KnownPeers>()
    for (const address of page.keys()) if (!addresses.includes(address)) page.delete(address)
    return page
  }

  forget(key: string): void {
    this.#pages.delete(key)
  }
}

/** A peer that was started anew tells earlier times of what is as it was: to note them would cost a write for each record. */
function withLaterTimes(known: PeerState | undefined, word: PeerState): PeerState {
  const siteStates = word.siteStates.map((siteState) => {
    const before = known?.siteStates.find((one) => one.site === siteState.site)
    if (before === undefined) return siteState
    return { ...siteState, endpoints: keepLaterSince(before.endpoints, siteState.endpoints) }
  })
  return { ...word, siteStates: siteStates }
}
