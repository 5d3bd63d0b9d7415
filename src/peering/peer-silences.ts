import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/telemetry/log.ts'
import { yieldMsOf } from './merge/choose-site-states.ts'
import type { PeerFollower } from './peer.ts'
import { wasHeard } from './peer-status.ts'

/** `late`: another nameserver of its site takes precedence. `expired`: its data has expired. */
type Silence = 'none' | 'late' | 'expired'

interface PeerSilencesParts {
  readonly expiryMs: number
  /** Interval of the checks. */
  readonly checkMs: number
  readonly clock: Clock
  readonly log: Logger
}

/** How long each peer has been silent. */
export class PeerSilences {
  readonly #parts: PeerSilencesParts
  readonly #silences = new Map<PeerFollower, Silence>()

  constructor(parts: PeerSilencesParts) {
    this.#parts = parts
  }

  /** Returns false if the silence of the peer did not change. */
  check(peer: PeerFollower): boolean {
    const silence = this.#silenceOf(peer)
    if (silence === (this.#silences.get(peer) ?? 'none')) return false
    this.#silences.set(peer, silence)
    if (silence === 'expired') {
      const what = 'its endpoints that no health check covers are taken out'
      const { address } = peer.status
      this.#parts.log.warning(
        `peer ${address} silent for longer than silent-site allows: ${what}`,
        'peer-silent',
      )
    }
    return true
  }

  #silenceOf({ lastSeenMs }: PeerFollower): Silence {
    const { expiryMs, checkMs, clock } = this.#parts
    const silentMs = wasHeard(lastSeenMs) ? clock.monotonic() - lastSeenMs : 0
    if (silentMs >= expiryMs) return 'expired'
    return silentMs > yieldMsOf(expiryMs) + checkMs ? 'late' : 'none'
  }
}
