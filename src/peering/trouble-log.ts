import type { Logger } from '../base/telemetry/log.ts'
import { type HostTroubles, NO_TROUBLES, textsOf } from './troubles.ts'

/** Troubles that are logged one by one per interval, and those of `unserved` that are stored per host. */
const LOGGED_MAX = 20
const UNSERVED_MAX = 100

/** Counts of what peers report and this site does not serve. */
export interface PeerDisputes {
  /** Lines about endpoints that are invalid, or for which a host has no room. */
  readonly unserved: number
  /** Endpoints that were refused because the peer may not report them, by its address. */
  readonly refused: ReadonlyMap<string, number>
}

/** The troubles of all hosts. Logs each once. */
export class TroubleLog {
  readonly #log: Logger
  readonly #troubles = new Map<string, HostTroubles>()
  /** Lines since the last `endInterval`. */
  #logged = 0

  constructor(log: Logger) {
    this.#log = log
  }

  get disputes(): PeerDisputes {
    let unserved = 0
    const refused = new Map<string, number>()
    for (const troubles of this.#troubles.values()) {
      unserved += troubles.unserved.length
      for (const { peer } of troubles.refused) refused.set(peer, (refused.get(peer) ?? 0) + 1)
    }
    return { unserved, refused }
  }

  /** The troubles, with their hosts. */
  *texts(): Generator<{ readonly host: string; readonly text: string }> {
    for (const [host, troubles] of this.#troubles) {
      for (const text of textsOf(troubles)) yield { host, text }
    }
  }

  /** Replaces the troubles of a host. */
  note(host: string, { unserved, refused }: HostTroubles): void {
    const known = new Set(textsOf(this.#troubles.get(host) ?? NO_TROUBLES))
    const troubles = { unserved: unserved.slice(0, UNSERVED_MAX), refused }
    const texts = textsOf(troubles)
    if (texts.length === 0) this.#troubles.delete(host)
    else this.#troubles.set(host, troubles)
    for (const text of texts) {
      if (known.has(text)) continue
      if (this.#logged++ < LOGGED_MAX) this.#log.warning(text, 'peer-endpoint-problem')
    }
  }

  /** Logs how many lines the interval left out. */
  endInterval(): void {
    const unlogged = this.#logged - LOGGED_MAX
    if (unlogged > 0)
      this.#log.warning(
        `and ${unlogged} more problems with endpoints of other sites`,
        'peer-endpoint-problems-more',
      )
    this.#logged = 0
  }
}
