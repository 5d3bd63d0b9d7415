import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { QuorumMember } from '../../telemetry/status.ts'
import { groupBy } from '../merge/part.ts'
import { majorityOf } from './decide.ts'
import type { SiteObservation } from './observation-codec.ts'

/** Maximum silence of a site whose failures count. Longer than the interval of polls. */
const HEARD_MS = 20_000

/** A peer as the quorum sees it. */
export interface QuorumPeer {
  /** `host:port`. */
  readonly address: string
  /** Monotonic milliseconds; -Infinity = never. */
  readonly lastSeenMs: number
  /** The site that it is a nameserver of; '' = several sites, or not known yet. */
  readonly ownSite: string
  /** Observations over all hosts. */
  readonly observationCount: number
  observationsOf(host: string): readonly SiteObservation[]
}

export interface HeardSitesParts {
  readonly site: string
  readonly peers: readonly QuorumPeer[]
  /** Sites that must find an address down; 0 = a majority of all sites. */
  readonly quorum: number
  readonly holdDownMs: number
  /** Monotonic milliseconds. Silence counts from here: before, this process heard no site. */
  readonly startMs: number
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
}

/** Which sites are heard, and whether they are enough to decide. Reports isolation. */
export class HeardSites {
  readonly #parts: HeardSitesParts
  /** The failures that a site finds do not count if it has been silent for longer. */
  readonly heardMs: number
  /** State of each peer at the last check, as one text. */
  #hearing = ''
  #isIsolated = true
  #isReportedIsolated = false
  #count = 1
  #heard = 1

  constructor(parts: HeardSitesParts) {
    this.#parts = parts
    this.heardMs = Math.min(HEARD_MS, parts.holdDownMs)
  }

  /** Number of sites, with our own. */
  get count(): number {
    return this.#count
  }

  /** Number of sites that are heard, with our own. */
  get heard(): number {
    return this.#heard
  }

  /** Number of sites that must find an address down. */
  get quorum(): number {
    return this.#parts.quorum || majorityOf(this.#count)
  }

  /** This site hears too few sites to decide. */
  get isIsolated(): boolean {
    return this.#isIsolated
  }

  /** As `isIsolated`, but false just after the start, when no site was heard yet. */
  get isReportedIsolated(): boolean {
    return this.#isReportedIsolated
  }

  /** Returns true if what counts changed since the last check. */
  check(): boolean {
    const { peers, site, holdDownMs, startMs, clock } = this.#parts
    const nowMs = clock.monotonic()
    const sites = new Set([site])
    const heard = new Set([site])
    let hearing = ''
    for (const peer of peers) {
      const silentMs = this.silentMs(peer.lastSeenMs)
      const isHeard = nowMs - peer.lastSeenMs < this.heardMs
      const id = siteOf(peer)
      sites.add(id)
      if (isHeard) heard.add(id)
      hearing += `${id} ${isHeard} ${silentMs < holdDownMs}\n`
    }
    this.#count = sites.size
    this.#heard = heard.size
    this.#isIsolated = heard.size < this.quorum
    const isReported = this.#isIsolated && nowMs - startMs >= this.heardMs
    if (isReported !== this.#isReportedIsolated) this.#report(isReported)
    const isChanged = hearing !== this.#hearing
    this.#hearing = hearing
    return isChanged
  }

  /** Returns for how long a site has been silent. Before the start, this process heard no site. */
  silentMs(seenMs: number): number {
    const { clock, startMs } = this.#parts
    return clock.monotonic() - Math.max(seenMs, startMs)
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

  #member(site: string, peers: readonly QuorumPeer[]): QuorumMember {
    const seenMs = Math.max(...peers.map(({ lastSeenMs }) => lastSeenMs))
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

  #report(isIsolated: boolean): void {
    this.#isReportedIsolated = isIsolated
    const { log } = this.#parts
    const heard = `${this.#heard} of ${this.#count} sites heard, ${this.quorum} needed`
    if (isIsolated) log.warning(`site is isolated: ${heard}; no address of a peer is taken out`)
    else log.info(`site is no longer isolated: ${heard}`)
  }
}

/** Returns the site of a peer; its address if it has no site of its own, or none yet. */
function siteOf({ ownSite, address }: QuorumPeer): string {
  return ownSite === '' ? address : ownSite
}
