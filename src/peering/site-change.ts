import type { Logger } from '../base/telemetry/log.ts'

/** Logs when a peer becomes a nameserver of another site than before. */
export class SiteChange {
  readonly #peer: string
  readonly #log: Logger
  /** The last site; '' = none yet. */
  #site = ''

  /** `peer`: its address. */
  constructor(peer: string, log: Logger) {
    this.#peer = peer
    this.#log = log
  }

  /** `site`: '' = it is not known now. */
  note(site: string): void {
    const old = this.#site
    if (site === '') return
    this.#site = site
    if (old === '' || old === site) return
    this.#log.warning(
      `peer ${this.#peer}: its site was ${old} and is now ${site}: endpoints of ${old} are removed`,
      'peer-site-changed',
    )
  }
}
