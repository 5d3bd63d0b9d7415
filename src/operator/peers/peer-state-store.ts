import { keepLaterSince } from '../../peering/to-peer-endpoint.ts'
import type { PeerAnswer, PeerState } from './peers.ts'

/** The stored state of one peer for one record. */
export interface KnownPeer {
  /** The last state that it reported; undefined = it never reported any. */
  readonly state: PeerState | undefined
  /** Why it is silent just now; '' = it is not. */
  readonly reason: string
}

/**
 * The last state of each peer for each record, so that the endpoints of a silent peer are still
 * known. States from before the operator's start are loaded from the record's status.
 */
export class PeerStateStore {
  /** By record key, then by address of the peer. */
  readonly #records = new Map<string, Map<string, KnownPeer>>()

  /** True if `open` was called for that record, even if no peer has a state. */
  has(key: string): boolean {
    return this.#records.has(key)
  }

  /** Sets the initial states of a record's peers, by address. */
  open(key: string, known: ReadonlyMap<string, KnownPeer>): void {
    this.#records.set(key, new Map(known))
  }

  /** Stores the answer of the peer at `address`. `open` must have been called. */
  note(key: string, address: string, answer: PeerAnswer): void {
    const peers = this.#records.get(key)
    if (peers === undefined || answer.kind === 'pending') return
    const known = peers.get(address)?.state
    const state = answer.state === undefined ? known : withLaterTimes(known, answer.state)
    peers.set(address, { state, reason: answer.kind === 'answered' ? '' : answer.reason })
  }

  /** States by address. Those of other addresses are removed. */
  read(key: string, addresses: readonly string[]): ReadonlyMap<string, KnownPeer> {
    const peers = this.#records.get(key) ?? new Map<string, KnownPeer>()
    for (const address of peers.keys()) if (!addresses.includes(address)) peers.delete(address)
    return peers
  }

  forget(key: string): void {
    this.#records.delete(key)
  }
}

/**
 * Keeps the later time of unchanged endpoints. A peer that has restarted reports earlier times for
 * them, and to store these would cause a write for each record.
 */
function withLaterTimes(known: PeerState | undefined, state: PeerState): PeerState {
  const siteStates = state.siteStates.map((siteState) => {
    const before = known?.siteStates.find((one) => one.site === siteState.site)
    if (before === undefined) return siteState
    return { ...siteState, endpoints: keepLaterSince(before.endpoints, siteState.endpoints) }
  })
  return { ...state, siteStates }
}
