import type { Moment } from '../base/moment.ts'
import type { Generation, SiteState } from '../peering/peer-endpoint.ts'
import type { Provider } from './provider-secret.ts'

/** What a peer said last of one host. The moment: when it said so, or confirmed it; its time of day stays with the word. */
export interface PeerState extends Moment {
  /** None: it has nothing of that host. */
  readonly siteStates: readonly SiteState[]
  readonly generation: Generation
  /** Of its zone kdrnt; undefined = not known. */
  readonly serial: number | undefined
  /** What of it is refused, and why, a line each; its text is quoted. */
  readonly problems: readonly string[]
}

/** What a peer says of one host. */
export type PeerAnswer =
  | { readonly kind: 'said'; readonly word: PeerState }
  /** It was not asked yet, or is about to answer again: what is remembered of it holds. */
  | { readonly kind: 'pending' }
  /** `word`: undefined = nothing was heard since we started. */
  | { readonly kind: 'silent'; readonly reason: string; readonly word: PeerState | undefined }

/** A nameserver that other sites are followed by. */
export interface OperatorPeer {
  /** `192.0.2.1:53`, `[2001:db8::1]:53`, `ns1.example.org:53`. */
  readonly address: string
  /** What it says of `rootHost`, a host as in `SiteState`, as far as it is known here. */
  answerFor(rootHost: string): PeerAnswer
}

/** The peers of providers. */
export interface PeerDirectory {
  /**
   * In the order of the provider's nameservers. `key` is the record that wants to know of `rootHost`: when something changes
   * there, it is looked at again.
   */
  peersFor(key: string, rootHost: string, provider: Provider): readonly OperatorPeer[]
  /** The record wants to know of nothing any more. */
  forget(key: string): void
}
