import { key } from '../base/shared-values.ts'
import type { KeySource, SigningPolicy } from './zone-keys.ts'

/** A zone that `dnssec` signs. */
export interface SignedZone {
  readonly keys: KeySource
  readonly policy: SigningPolicy
  /**
   * The caller signs the zone in its zone image. So the link of `dnssec` signs nothing in it, except the proofs of
   * compact denial. Call it in `setup`, in every thread.
   */
  claim(): void
}

/** Which zones of a server block are signed. */
export interface ZoneSigning {
  /** `zone`: apex, lower-case wire form. Undefined = it is not signed. */
  of(zone: Uint8Array): SignedZone | undefined
}

/** In the shared values of a block. `dnssec` provides it in its setup, which runs before that of any source. */
export const ZONE_SIGNING = key<ZoneSigning>('signing of zones')
