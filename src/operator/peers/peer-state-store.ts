import { keepLaterSince } from '../../peering/to-peer-endpoint.ts'
import type { PeerAnswer, PeerState } from './peers.ts'

/** The stored state of one peer for one record. */
export interface KnownPeers {
  /** The last state that it reported; undefined = it never reported any. */
  readonly word: PeerState | undefined
  /** Why it is silent just now; '' = it is not. */
  readonly reason: string
}

/**
 * The last state of each peer for each record, so that the endpoints of a silent peer are still
 * known. States from before the operator's start are loaded from the record's status.
 */
export class PeerStateStore {
  readonly #pages = new Map<string, Map<string, KnownPeers>>()

  /** True if `open` was called for that record, even if no peer has a state. */
  has(key: string): boolean {
    return this.#pages.has(key)
  }

  /** Sets the initial states of a record's peers, by address. */
  open(key: string, known: ReadonlyMap<string, KnownPeers>): void {
    this.#pages.set(key, new Map(known))
  }

  /** Stores the answer of the peer at `address`. `open` must have been called. */
  note(key: string, address: string, answer: PeerAnswer): void {
    const page = this.#pages.get(key)
    if (page === undefined || answer.kind === 'pending') return
    const known = page.get(address)?.word
    const word = answer.word === undefined ? known : withLaterTimes(known, answer.word)
    page.set(address, { word, reason: answer.kind === 'said' ? '' : answer.reason })
  }

  /** States by address. Those of other addresses are removed. */
  read(key: string, addresses: readonly string[]): ReadonlyMap<string, KnownPeers> {
    const page = this.#pages.get(key) ?? new Map<string, KnownPeers>()
    for (const address of page.keys()) if (!addresses.includes(address)) page.delete(address)
    return page
  }

  forget(key: string): void {
    this.#pages.delete(key)
  }
}

/**
 * Keeps the later time of unchanged endpoints. A peer that has restarted reports earlier times for
 * them, and to store these would cause a write for each record.
 */
function withLaterTimes(known: PeerState | undefined, word: PeerState): PeerState {
  const siteStates = word.siteStates.map((siteState) => {
    const before = known?.siteStates.find((one) => one.site === siteState.site)
    if (before === undefined) return siteState
    return { ...siteState, endpoints: keepLaterSince(before.endpoints, siteState.endpoints) }
  })
  return { ...word, siteStates: siteStates }
}
