import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import type { Logger } from '../telemetry/log.ts'
import type { PeerAddress } from './peer-address.ts'

/** What a `PeerFollower` works with. */
export interface PeerFollowerOptions {
  readonly peer: PeerAddress
  /** Everything is signed with it, and nothing is taken that is not. */
  readonly key?: TsigKey | undefined
  /** Address that a peer is asked from; '' = any. `host`: its IP address. */
  readonly sourceFor?: (host: string) => string
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Uniform over 0..1. */
  readonly random: () => number
}
