import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import type { Logger } from '../telemetry/log.ts'
import type { HostBounds } from './host-poll.ts'
import type { PeerAddress } from './peer-address.ts'

/** What a `PeerFollower` works with. */
export interface PeerFollowerOptions {
  readonly peer: PeerAddress
  /** Everything is signed with it, and nothing is taken that is not. */
  readonly key?: TsigKey | undefined
  /** Address that a peer is asked from; '' = any. `host`: its IP address. */
  readonly sourceFor?: (host: string) => string
  /** How often a peer that has to be asked for each host is asked for one; absent = the default. */
  readonly hostBounds?: HostBounds
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Uniform over 0..1. */
  readonly random: () => number
}
