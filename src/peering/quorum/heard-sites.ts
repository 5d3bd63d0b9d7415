import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { QuorumMember } from '../../base/telemetry/status.ts'
import { groupBy } from '../merge/part.ts'
import { majorityOf } from './decide.ts'
import type { SiteObservation } from './observation-codec.ts'

/**
 * Maximum silence of a site whose findings count. Peers are polled every second, so a site still counts after one
 * failed poll. The findings of a dead site end within the time that the other sites have to notice its death.
 */
export const HEARD_MS = 8000

/** Sites that one log line lists. */
const NAMED_MAX = 8

/** A peer as the quorum sees it. */
export interface QuorumPeer {
  /** `host:port`. */
  readonly address: string
  /** Monotonic milliseconds: its last answer of any kind; -Infinity = never. */
  readonly lastAnswerMs: number
  /** The site that it is a nameserver of; '' = several sites, or not known yet. */
  readonly ownSite: string
  /** Observations over all hosts. */
  readonly observationCount: number
  observationsOf(host: string): readonly SiteObservation[]
}

export interface HeardSitesParts {
  readonly site: string
  readonly peers: readonly QuorumPeer[]
  /** Sites that must find an address down; 0 = a majority of those that are heard and know. */
  readonly quorum: number
  /** Monotonic milliseconds. Silence counts from here: before, this process heard no site. */
  readonly startMs: number
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
}

/** Which sites are heard. Reports isolation. */
export class HeardSites {
  readonly #parts: HeardSitesParts
  /** The findings of a site do not count if it has been silent for longer. */
  readonly heardMs = HEARD_MS
  /** State of each peer at the last check, as one text. */
  #hearing = ''
  #isReportedIsolated = false
  #isReportedUnreachable = false
  #count = 1
  #heard = 1

  constructor(parts: HeardSitesParts) {
    this.#parts = parts
  }

  /** Number of sites, with our own. */
  get count(): number {
    return this.#count
  }

  /** Number of sites that are heard, with our own. */
  get heard(): number {
    return this.#heard
  }

  /** Number of sites that must find an address down if all of them know it. */
  get quorum(): number {
    if (this.#parts.quorum > 0) return this.#parts.quorum
    return this.#count <= 2 ? 1 : majorityOf(this.#heard)
  }

  /** A number of sites is set, and this site hears fewer, so it cannot decide. */
  get isUndecided(): boolean {
    return this.#parts.quorum > 0 && this.#heard < this.#parts.quorum
  }

  /** This site hears less than a majority of the sites. False just after the start, when no site was heard yet. */
  get isReportedIsolated(): boolean {
    return this.#isReportedIsolated
  }

  /** Returns true if what counts changed since the last check. */
  check(): boolean {
    const { peers, site, startMs, clock } = this.#parts
    const nowMs = clock.monotonic()
    const sites = new Set([site])
    const heard = new Set([site])
    let hearing = ''
    for (const peer of peers) {
      const isHeard = nowMs - peer.lastAnswerMs < this.heardMs
      const id = siteOf(peer)
      sites.add(id)
      if (isHeard) heard.add(id)
      hearing += `${id} ${isHeard}\n`
    }
    this.#count = sites.size
    this.#heard = heard.size
    this.#checkReachable()
    const isIsolated = heard.size < majorityOf(sites.size)
    const isReported = isIsolated && nowMs - startMs >= this.heardMs
    if (isReported !== this.#isReportedIsolated) {
      this.#report(isReported, [...sites].filter((one) => !heard.has(one)).sort())
    }
    const isChanged = hearing !== this.#hearing
    this.#hearing = hearing
    return isChanged
  }

  /**
   * Returns for how long a nameserver has been silent. Before the start, this process heard none. `seenMs`: when its
   * data was last confirmed.
   */
  silentMs(address: string, seenMs: number): number {
    const { peers, clock, startMs } = this.#parts
    const peer = peers.find((one) => one.address === address)
    return clock.monotonic() - Math.max(seenMs, startMs, peer?.lastAnswerMs ?? 0)
  }

  /** Returns the sites, ours first. `observations`: number of our own. */
  members(observations: number): readonly QuorumMember[] {
    const { site, peers } = this.#parts
    const state = this.#isReportedIsolated ? 'isolated' : 'this site'
    const ours: QuorumMember = { site, peers: [], state, ageSeconds: 0, observations }
    const others = groupBy(peers, siteOf)
    others.delete(site)
    const theirs = [...others].map(([id, of]) => this.#member(id, of))
    return [ours, ...theirs.sort((a, b) => (a.site < b.site ? -1 : 1))]
  }

  /** Several peers may be nameservers of one site, which only their data shows. */
  #checkReachable(): void {
    const { peers, quorum, site, log } = this.#parts
    const isUnreachable = peers.length > 0 && quorum > this.#count
    if (isUnreachable && !this.#isReportedUnreachable) {
      const most = this.#count
      log.warning(
        `quorum ${quorum} is never reached: ${site} and its peers are ${most} sites; set it to at most ${most}`,
        'quorum-unreachable',
      )
    }
    this.#isReportedUnreachable = isUnreachable
  }

  #member(site: string, peers: readonly QuorumPeer[]): QuorumMember {
    const seenMs = Math.max(...peers.map(({ lastAnswerMs }) => lastAnswerMs))
    const ageMs = this.#parts.clock.monotonic() - seenMs
    const isNever = seenMs === Number.NEGATIVE_INFINITY
    return {
      site,
      peers: peers.map(({ address }) => address),
      state: ageMs < this.heardMs ? 'heard' : isNever ? 'never heard' : 'silent',
      ageSeconds: isNever ? null : Math.round(ageMs / 100) / 10,
      observations: Math.max(...peers.map(({ observationCount }) => observationCount)),
    }
  }

  #report(isIsolated: boolean, silent: readonly string[]): void {
    this.#isReportedIsolated = isIsolated
    const { site, log } = this.#parts
    const heard = `${this.#heard} of ${this.#count} sites heard`
    const more = silent.length > NAMED_MAX ? ', …' : ''
    const names = `${silent.slice(0, NAMED_MAX).join(', ')}${more}`
    const what = this.isUndecided
      ? `${this.#parts.quorum} needed, so addresses of peers keep their last health`
      : 'its own checks decide which addresses of peers are served'
    if (isIsolated)
      log.warning(`site ${site} is isolated: ${heard}, silent: ${names}; ${what}`, 'site-isolated')
    else log.info(`site ${site} is no longer isolated: ${heard}`, 'site-not-isolated')
  }
}

/** Returns the site of a peer; its address if it has no site of its own, or none yet. */
function siteOf({ ownSite, address }: QuorumPeer): string {
  return ownSite === '' ? address : ownSite
}
