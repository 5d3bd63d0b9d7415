import type { Moment } from '../../base/moment.ts'
import type { Generation, SiteState } from '../../peering/peer-endpoint.ts'
import type { QuorumPeer } from '../../peering/quorum/heard-sites.ts'
import type { SiteObservation } from '../../peering/quorum/observation-codec.ts'
import type { Provider } from '../provider/provider-secret.ts'

/**
 * The last report of a peer on one host. The moment: when the peer sent or confirmed it; the time
 * of day is kept with the state.
 */
export interface PeerState extends Moment {
  /** Empty = the peer has nothing for that host. */
  readonly siteStates: readonly SiteState[]
  readonly generation: Generation
  /** Serial of the peer's zone `kdrnt`; undefined = not known. */
  readonly serial: number | undefined
  /** Rejected parts and the reasons, one line each. Text from the peer is quoted. */
  readonly problems: readonly string[]
  /** What its site observed of addresses of other sites; missing = not known. Not stored. */
  readonly observations?: readonly SiteObservation[]
}

/** The current report of a peer on one host. */
export type PeerAnswer =
  | { readonly kind: 'answered'; readonly state: PeerState }
  /** It was not queried yet, or is about to answer again: its stored state is used. */
  | { readonly kind: 'pending' }
  /** `state`: undefined = the peer has not answered since the start. */
  | { readonly kind: 'silent'; readonly reason: string; readonly state: PeerState | undefined }

/** A nameserver of a peer, through which other sites are followed. */
export interface OperatorPeer extends QuorumPeer {
  /** Different for each nameserver and key. */
  readonly id: string
  /** `192.0.2.1:53`, `[2001:db8::1]:53`, `ns1.example.org:53`. */
  readonly address: string
  /** By how much its clock is ahead of ours, in milliseconds; undefined = not known. */
  readonly clockAheadMs: number | undefined
  /** As in PeerStatus. */
  readonly lastSeenMs: number
  /** The sites that its zone names. */
  readonly sites: readonly string[]
  /** The report on `rootHost`, a host as in `SiteState`, as far as it is known here. */
  answerFor(rootHost: string): PeerAnswer
}

/** The peers of providers. */
export interface PeerDirectory {
  /**
   * The peers in the order of the provider's nameservers. `key` is the record that needs
   * `rootHost`: it is reconciled when something changes there.
   */
  peersFor(key: string, rootHost: string, provider: Provider): readonly OperatorPeer[]
  /** Releases all peers of the record. */
  forget(key: string): void
}
