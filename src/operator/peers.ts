import type { Generation, SiteShare } from '../peering/shared-endpoint.ts'
import type { Provider } from './provider-secret.ts'

/** What a peer says of one host. */
export type PeerAnswer =
  /** It is there. No shares: it has nothing of that host. */
  | { readonly kind: 'said'; readonly shares: readonly SiteShare[] }
  /** Nothing is known of what it would say. */
  | { readonly kind: 'silent'; readonly reason: string }

/** A nameserver that other sites are asked by. */
export interface Peer {
  /** `192.0.2.1:53`, `[2001:db8::1]:53`, `ns1.example.org:53`. */
  readonly address: string
  /** Of the last answer; '' = there was none. */
  readonly generation: Generation | ''
  /** The site whose nameserver it is; '' = it never said. */
  readonly site: string
  /** Of its zone, where that is followed. */
  readonly serial: number | undefined
  /** It tells by itself of changes: there is no need to ask again. */
  readonly isFollowed: boolean
  /** What it says of `rootHost`, a host as in `SiteShare`. Never rejects. */
  look(rootHost: string, signal: AbortSignal): Promise<PeerAnswer>
}

/** The peers of providers. */
export interface PeerDirectory {
  /** In the order of the provider's nameservers; the same objects while nothing changes. */
  peersOf(provider: Provider): readonly Peer[]
}
