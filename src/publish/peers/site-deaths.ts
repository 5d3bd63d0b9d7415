import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { DeathList } from '../../peering/deaths/death-list.ts'
import {
  type DeathRules,
  type HostOfSites,
  ifSiteDies,
  ProbeRoom,
} from '../../peering/deaths/if-site-dies.ts'
import { wasHeard } from '../../peering/peer-status.ts'

/** Lines of one report. */
const LOGGED_MAX = 20

/** What was logged, over reloads. */
export class DeathMemory {
  /** Other sites that were known at some time. */
  readonly sites = new Set<string>()
  /** The lines of the last report. */
  lines: ReadonlySet<string> = new Set()
  more = 0
  /** Addresses that are not probed. */
  unprobed = 0
}

/** A peer as a `PeerFollower`. */
interface DeathPeer {
  readonly address: string
  readonly ownSite: string
  readonly lastSeenMs: number
  subscribe(listener: () => void): () => void
}

interface SiteDeathLogParts {
  readonly peers: readonly DeathPeer[]
  readonly hosts: () => Iterable<HostOfSites>
  /** Resolves once the peers were asked and their data is merged. */
  readonly ready: () => Promise<void>
  readonly rules: () => Omit<DeathRules, 'knowsOthers'>
  readonly memory: DeathMemory
  readonly clock: Clock
  readonly log: Logger
}

/** Logs once what happens when each site dies, and again what is new when another site is first heard. */
export class SiteDeathLog {
  readonly #parts: SiteDeathLogParts
  readonly #stops: readonly (() => void)[]
  #running: Promise<void>
  #isClosed = false

  constructor(parts: SiteDeathLogParts) {
    this.#parts = parts
    this.#noteSites()
    this.#running = this.#report()
    this.#stops = parts.peers.map((peer) => peer.subscribe(() => this.#onPeer()))
  }

  /** Resolves once the reports so far are complete. */
  settled(): Promise<void> {
    return this.#running
  }

  close(): void {
    this.#isClosed = true
    for (const stop of this.#stops) stop()
  }

  #onPeer(): void {
    if (this.#noteSites()) this.#running = this.#running.then(() => this.#report())
  }

  /** Returns true if a site was not known before. */
  #noteSites(): boolean {
    const { peers, memory } = this.#parts
    const before = memory.sites.size
    for (const { lastSeenMs, ownSite, address } of peers) {
      if (wasHeard(lastSeenMs)) memory.sites.add(ownSite === '' ? address : ownSite)
    }
    return memory.sites.size > before
  }

  async #report(): Promise<void> {
    const { log, clock, ready, memory } = this.#parts
    await ready()
    await guarding(
      log,
      'Finding out what happens when a site dies',
    )(async () => {
      this.#noteSites()
      // Before any peer was heard, each host would seem to have this site alone.
      if (memory.sites.size === 0 || this.#isClosed) return
      const list = new DeathList()
      const room = new ProbeRoom()
      await runInSlices(this.#fill(list, room), clock)
      if (this.#isClosed) return
      this.#log(list)
      const { beyond, max } = room
      if (beyond > 0 && beyond !== memory.unprobed)
        log.warning(
          `addresses of peers that are not probed: ${beyond}; this site probes at most ${max}`,
          'peer-addresses-not-probed',
        )
      memory.unprobed = beyond
    })
  }

  *#fill(list: DeathList, room: ProbeRoom): Generator<void, void> {
    const rules = { room, ...this.#parts.rules(), knowsOthers: true }
    for (const host of this.#parts.hosts()) {
      if (this.#isClosed) return
      for (const death of ifSiteDies(host, rules)) list.add(death)
      yield
    }
  }

  #log(list: DeathList): void {
    const { log, memory } = this.#parts
    const lines = list.lines()
    const isNew = ({ site, text }: { site: string; text: string }): boolean => {
      return !memory.lines.has(`${site} ${text}`)
    }
    const fresh = lines.filter(isNew)
    for (const { site, text, isWarning } of fresh.slice(0, LOGGED_MAX)) {
      if (isWarning) log.warning(`if ${site} dies: ${text}`, 'site-death')
      else log.info(`if ${site} dies: ${text}`, 'site-death')
    }
    const more = Math.max(0, fresh.length - LOGGED_MAX) + Math.max(0, list.more - memory.more)
    if (more > 0) log.info(`and ${more} more lines about the death of sites`, 'site-death-more')
    memory.lines = new Set(lines.map(({ site, text }) => `${site} ${text}`))
    memory.more = list.more
  }
}
