import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import { unpackRecord } from '../records/pack.ts'
import type { RecordChange } from '../records/record-source.ts'
import { SITE_CONFLICT_MS } from './foreign-exports.ts'
import { rootHostOf } from './merged-keys.ts'
import type { MergedSource } from './merged-source.ts'
import {
  disjointFault,
  findNameFaults,
  findRelay,
  isNamesake,
  lastingSince,
  type NamedPeer,
  type NameFault,
  namesakeSince,
} from './name-faults.ts'
import type { PeerFollower } from './peer.ts'
import type { PeerEndpoint } from './peer-endpoint.ts'
import { bareHost } from './peer-status.ts'
import {
  aheadMs,
  CLOCK_DIFFERS_MS,
  clockOfOurs,
  currentClocks,
  findSiteClocks,
  ownClocks,
  printClockAhead,
  printClockFault,
  type SiteClock,
  type TimedPeer,
} from './site-clocks.ts'
import { toPeerEndpoints } from './to-peer-endpoint.ts'

/** Interval of the checks of hosts that changed, or whose endpoints of a peer show a fault. */
const CHECK_MS = 5000

/** Hosts that are compared at most to find nameservers of our site. A nameserver of our site has nearly all hosts. */
const COMPARED_HOSTS_MAX = 100

/** The part of a PeerFollower that is used here. */
type WatchedPeer = Pick<
  PeerFollower,
  keyof TimedPeer | 'subscribe' | 'siteStatesOf' | 'hosts' | 'sites'
>

interface SiteWatchParts {
  readonly site: string
  readonly own: Pick<MergedSource, 'recordsOf' | 'subscribe'>
  /** True if `own` has records, and no other block of this server has further ones of the site. */
  readonly isWhole: () => boolean
  readonly peers: readonly WatchedPeer[]
  /** How long a silent site keeps its addresses. */
  readonly expiryMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/** The names of sites that a peer uses, and its clock. */
interface Watch {
  readonly peer: WatchedPeer
  /** Hosts to check. */
  readonly changed: Set<string>
  /** Monotonic time since which faults last: by host, '' = the whole zone, and by their id. */
  readonly sinceMs: Map<string, ReadonlyMap<string, number>>
  /** Texts of the faults that last. */
  faults: ReadonlySet<string>
  /** '' = its clock agrees with ours. */
  clockFault: string
  /** As in `namesakeSince`, while its clock differs. */
  namesakeMs: number | undefined
  isAhead: boolean
}

/** Finds peers of a plain server that use the name of another site, and peers with another clock. */
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
      faults: new Set(),
      clockFault: '',
      namesakeMs: undefined,
      isAhead: false,
    }))
    this.#stops = [
      parts.timers.every(CHECK_MS, () => this.#check()),
      parts.own.subscribe((changes) => this.#takeOwn(changes)),
      ...this.#watches.map(({ peer, changed }) =>
        peer.subscribe((hosts) => {
          for (const host of hosts) changed.add(host)
        }),
      ),
    ]
  }

  /** For the ready page; '' = nothing. */
  note(): string {
    const clocks = this.#watches.map(({ clockFault }) => clockFault).filter((one) => one !== '')
    return [...new Set([...this.#faults, ...clocks])].sort().join('; ')
  }

  close(): void {
    for (const stop of this.#stops) stop()
  }

  get #faults(): ReadonlySet<string> {
    return new Set(this.#watches.flatMap(({ faults }) => [...faults]))
  }

  #takeOwn(changes: readonly RecordChange[]): void {
    for (const { before, after } of changes) {
      const record = (after ?? before)!
      if (record.origin !== undefined) continue
      const host = bareHost(rootHostOf(record))
      for (const { changed } of this.#watches) changed.add(host)
    }
  }

  #check(): void {
    const before = this.#faults
    for (const watch of this.#watches) {
      const hosts = new Set([...watch.changed, ...watch.sinceMs.keys()])
      watch.changed.clear()
      hosts.delete('')
      this.#checkPeer(watch, hosts)
    }
    for (const text of this.#faults)
      if (!before.has(text)) this.#parts.log.warning(text, 'peer-site-fault')
  }

  #checkPeer(watch: Watch, hosts: ReadonlySet<string>): void {
    const { site, clock } = this.#parts
    const { peer, sinceMs } = watch
    const nowMs = clock.monotonic()
    const lasting = new Set<string>()
    const note = (host: string, faults: readonly NameFault[]): void => {
      const since = lastingSince(faults, sinceMs.get(host), nowMs)
      if (since.size === 0) sinceMs.delete(host)
      else sinceMs.set(host, since)
      for (const { id, text } of faults) {
        if (nowMs - since.get(id)! >= SITE_CONFLICT_MS) lasting.add(text)
      }
    }
    note('', [...findRelay(peer), ...this.#findDisjoint(peer)])
    let most = 0
    for (const host of hosts) {
      const named = namedAt(peer, host)
      note(host, this.#faultsAt(host, named))
      const own = named.states.filter((state) => state.isOwn && state.site !== site)
      for (const { endpoints } of own) most = Math.max(most, aheadMs(endpoints, clock.now()))
    }
    watch.faults = lasting
    this.#checkClock(watch, most)
  }

  /** `most`: how far in our future the peer dates changes. */
  #checkClock(watch: Watch, most: number): void {
    const { address, ownSite } = watch.peer
    const { site, log } = this.#parts
    const known = this.#clocksOf(ownSite).find((one) => one.address === address)
    const whose = ownSite === site ? clockOfOurs(address, site) : `site ${ownSite}`
    const found = known === undefined ? '' : printClockFault(whose, known.aheadMs)
    const counts = this.#counts(watch, found)
    const fault = counts ? found : ''
    if (fault !== watch.clockFault) {
      watch.clockFault = fault
      if (fault !== '') log.warning(fault, 'peer-clock-differs')
      else if (ownSite !== '' && known === undefined)
        log.info(
          `the clock of peer ${address} of site ${ownSite} does not count: it is silent`,
          'peer-clock-ignored',
        )
      else if (ownSite !== '' && counts)
        log.info(`the clock of ${whose} agrees with ours again`, 'peer-clock-agrees')
    }
    if (fault !== '' || most <= CLOCK_DIFFERS_MS || watch.isAhead) return
    watch.isAhead = true
    log.warning(printClockAhead(ownSite), 'own-clock-ahead')
  }

  /** True if a fault of the clock of a peer counts: `found`; '' = it has none. */
  #counts(watch: Watch, found: string): boolean {
    const { site, clock } = this.#parts
    const isDecided = found === '' || watch.peer.ownSite !== site
    const nowMs = clock.monotonic()
    watch.namesakeMs = isDecided
      ? undefined
      : namesakeSince(!this.#isOurNameserver(watch.peer), watch.namesakeMs, nowMs)
    return nowMs - (watch.namesakeMs ?? Infinity) < SITE_CONFLICT_MS
  }

  #clocksOf(ownSite: string): readonly SiteClock[] {
    const { site, peers, expiryMs: silentMs, clock } = this.#parts
    const clocks = findSiteClocks(peers)
    if (ownSite !== site) return currentClocks(clocks.get(ownSite) ?? [], silentMs)
    return ownClocks(site, clocks, { namesakes: new Set(), nowMs: clock.monotonic(), silentMs })
  }

  /** True if a peer with the name of our site reports endpoints of our records for at least one host. */
  #isOurNameserver(peer: WatchedPeer): boolean {
    const { site, own } = this.#parts
    const shared = [...peer.hosts()].filter((host) => own.recordsOf(host).size > 0)
    return shared.slice(0, COMPARED_HOSTS_MAX).some((host) => {
      return !isNamesake(namedAt(peer, host), site, this.#exportsOf(host))
    })
  }

  /** A nameserver of our site has at least some of our hosts. */
  #findDisjoint(peer: WatchedPeer): readonly NameFault[] {
    const { site, own, isWhole } = this.#parts
    if (peer.ownSite !== site || !isWhole()) return []
    const hosts = [...peer.hosts()]
    const isShared = hosts.length === 0 || hosts.some((host) => own.recordsOf(host).size > 0)
    return isShared ? [] : [disjointFault(peer, site)]
  }

  #faultsAt(host: string, named: NamedPeer): readonly NameFault[] {
    const { site, peers } = this.#parts
    const twins = peers.filter(({ address, ownSite }) => {
      return ownSite !== '' && ownSite === named.ownSite && address !== named.address
    })
    const others = twins.map((peer) => namedAt(peer, host))
    const ours = (): readonly PeerEndpoint[] => this.#exportsOf(host)
    return findNameFaults(named, { site, setting: '`site`', ours, others })
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

function namedAt(peer: WatchedPeer, host: string): NamedPeer {
  const { address, ownSite, sites } = peer
  return { address, ownSite, sites, states: peer.siteStatesOf(host) }
}
