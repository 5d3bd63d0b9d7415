import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import { unpackRecord } from '../dnsrecord/pack.ts'
import type { Logger } from '../telemetry/log.ts'
import {
  aheadMs,
  CLOCK_AHEAD_MS,
  CLOCK_FIX,
  endpointsOfSite,
  findForeignExports,
  fixSiteName,
  printSiteConflict,
  SITE_CONFLICT_MS,
} from './foreign-exports.ts'
import type { MergedSource } from './merged-source.ts'
import type { PeerFollower } from './peer.ts'
import type { PeerEndpoint } from './peer-endpoint.ts'
import { toPeerEndpoints } from './to-peer-endpoint.ts'

/** Interval of the checks of hosts that changed, or in which a peer reports other endpoints of our site. */
const CHECK_MS = 5000

/** The part of a PeerFollower that is used here. */
export type WatchedPeer = Pick<
  PeerFollower,
  'address' | 'subscribe' | 'siteStatesOf' | 'hosts' | 'ownSite'
>

export interface SiteWatchParts {
  readonly site: string
  readonly own: Pick<MergedSource, 'recordsOf'>
  readonly peers: readonly WatchedPeer[]
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/** What a peer reports under the name of our site, and its clock. */
interface Watch {
  readonly peer: WatchedPeer
  /** Hosts to check. */
  readonly changed: Set<string>
  /** Monotonic time since which it reports other endpoints, by host. */
  readonly sinceMs: Map<string, number>
  conflict: string
  isAhead: boolean
}

/** Finds peers of a plain server that have the name of its site, and peers with another clock. */
export class SiteWatch {
  readonly #parts: SiteWatchParts
  readonly #watches: readonly Watch[]
  readonly #stops: readonly (() => void)[]

  constructor(parts: SiteWatchParts) {
    this.#parts = parts
    this.#watches = parts.peers.map((peer) => ({
      peer,
      changed: new Set(peer.hosts()),
      sinceMs: new Map(),
      conflict: '',
      isAhead: false,
    }))
    this.#stops = [
      parts.timers.every(CHECK_MS, () => this.#check()),
      ...this.#watches.map(({ peer, changed }) =>
        peer.subscribe((hosts) => {
          for (const host of hosts) changed.add(host)
        }),
      ),
    ]
  }

  /** For the ready page; '' = nothing. */
  note(): string {
    return this.#watches
      .map(({ conflict }) => conflict)
      .filter((text) => text !== '')
      .join('; ')
  }

  close(): void {
    for (const stop of this.#stops) stop()
  }

  #check(): void {
    for (const watch of this.#watches) {
      const hosts = new Set([...watch.changed, ...watch.sinceMs.keys()])
      watch.changed.clear()
      if (hosts.size > 0) this.#checkPeer(watch, hosts)
    }
  }

  #checkPeer(watch: Watch, hosts: ReadonlySet<string>): void {
    const { site, clock, log } = this.#parts
    const { peer, sinceMs } = watch
    const nowMs = clock.monotonic()
    let most = 0
    for (const host of hosts) {
      const states = peer.siteStatesOf(host)
      const reported = endpointsOfSite(states, site)
      const ours = reported.length === 0 ? [] : this.#exportsOf(host)
      // Another block of the server may have the records of a host that this one lacks.
      const isForeign = ours.length > 0 && findForeignExports(ours, reported).length > 0
      if (!isForeign) sinceMs.delete(host)
      else if (!sinceMs.has(host)) sinceMs.set(host, nowMs)
      const own = states.filter((state) => state.isOwn && state.site !== site)
      for (const { endpoints } of own) most = Math.max(most, aheadMs(endpoints, clock.now()))
    }
    const isLate = [...sinceMs.values()].some((since) => nowMs - since >= SITE_CONFLICT_MS)
    const conflict = isLate ? printSiteConflict(peer.address, site, '`site`') : ''
    if (conflict !== '' && watch.conflict === '')
      log.warning(
        `peer ${peer.address} reports other endpoints under the name of this site, ${site}: ${fixSiteName('`site`')}`,
      )
    watch.conflict = conflict
    if (most > CLOCK_AHEAD_MS && !watch.isAhead) {
      watch.isAhead = true
      log.warning(`site ${peer.ownSite} dates changes in our future: ${CLOCK_FIX}`)
    }
  }

  /** All endpoints of our own records of the host and its wildcard. */
  #exportsOf(host: string): readonly PeerEndpoint[] {
    const { site, own } = this.#parts
    const facts = { site, down: [], up: [], sinceSeconds: 0 }
    return [...own.recordsOf(host)].flatMap(({ key, packed }) => {
      return toPeerEndpoints(unpackRecord(packed), { ...facts, key })
    })
  }
}
