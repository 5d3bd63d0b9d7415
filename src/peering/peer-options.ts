import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import type { HostBounds } from './host-poll.ts'
import type { PeerAddress } from './peer-address.ts'

/** What a `PeerFollower` needs. */
export interface PeerFollowerOptions {
  readonly peer: PeerAddress
  /** Signs all queries; replies without it are refused. */
  readonly key?: TsigKey | undefined
  /** Source address for a peer; '' = any. `host`: the peer's IP address. */
  readonly sourceFor?: (host: string) => string
  /**
   * Bounds of the interval between two queries for one host, for a peer that answers host by host;
   * absent = the default.
   */
  readonly hostBounds?: HostBounds
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Uniform over 0..1. */
  readonly random: () => number
}
