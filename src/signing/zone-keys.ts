import type { SigningKey } from '../dns/dnssec/dnskey.ts'

/** The keys of a zone now: those that are published, and those that sign. */
export interface ZoneKeys {
  /** DNSKEY rdata, those of other providers included (RFC 8901). */
  readonly dnskeys: readonly Uint8Array[]
  readonly dnskeyTtlSeconds: number
  /** CDS rdata (RFC 7344); empty = there is no CDS RRset. */
  readonly cds: readonly Uint8Array[]
  /** CDNSKEY rdata; empty = there is no CDNSKEY RRset. */
  readonly cdnskeys: readonly Uint8Array[]
  /** They sign DNSKEY, CDS and CDNSKEY: see `signersOf`. */
  readonly keySigners: readonly SigningKey[]
  /** They sign all RRsets except DNSKEY. */
  readonly zoneSigners: readonly SigningKey[]
}

/** How a zone proves that something does not exist: NSEC, NSEC3, or compact denial (RFC 9824). */
export type DenialKind = 'nsec' | 'nsec3' | 'compact'

/** How a zone is signed. */
export interface SigningPolicy {
  readonly name: string
  readonly denial: DenialKind
  /** Leaves delegations without DS out of the NSEC3 chain (RFC 5155 section 6). */
  readonly optOut: boolean
  /** From the inception that is not moved into the past to the expiration. */
  readonly validitySeconds: number
  /** Expirations are earlier by up to this time, so that the signatures of a zone do not expire together. */
  readonly jitterSeconds: number
  /** The inception is in the past by this time, for validators whose clock is slow. */
  readonly inceptionOffsetSeconds: number
  /** A signature with less time left is made again. */
  readonly refreshSeconds: number
}

const DAY_SECONDS = 86_400

export const DEFAULT_SIGNING: SigningPolicy = {
  name: 'default',
  denial: 'nsec',
  optOut: false,
  validitySeconds: 14 * DAY_SECONDS,
  jitterSeconds: DAY_SECONDS / 2,
  inceptionOffsetSeconds: 3600,
  refreshSeconds: 5 * DAY_SECONDS,
}

/** The keys of zones. On the control thread. */
export interface KeySource {
  /** `zone`: lower-case wire form. Undefined = the zone has no usable keys yet: it is not served before it has. */
  find(zone: Uint8Array): ZoneKeys | undefined
  /** Calls `listener` with each zone whose keys change, until the returned function is called. */
  subscribe(listener: (zone: Uint8Array) => void): () => void
  /**
   * Notes that a version of the zone is served in which these keys, the object from `find`, signed everything. The
   * steps of a roll wait for it. `ttlSecondsMax`: greatest TTL of the zone, the one of negative answers included.
   */
  notePublished(zone: Uint8Array, keys: ZoneKeys, ttlSecondsMax: number): void
}
