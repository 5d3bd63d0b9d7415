import type { Clock } from '../../base/clock.ts'
import { endpointsOfSite, SITE_CONFLICT_MS } from '../../peering/foreign-exports.ts'
import {
  findNameFaults,
  findRelay,
  isNamesake,
  lastingSince,
  type NamedPeer,
  namesakeSince,
} from '../../peering/name-faults.ts'
import type { PeerEndpoint } from '../../peering/peer-endpoint.ts'
import {
  aheadMs,
  CLOCK_DIFFERS_MS,
  clockOfOurs,
  currentClocks,
  ownClocks,
  printClockAhead,
  printClockFault,
  type SiteClock,
  type SiteClocks,
} from '../../peering/site-clocks.ts'
import { sortUnique, toPeerEndpoints } from '../../peering/to-peer-endpoint.ts'
import { printHost } from '../../records/print-endpoint.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import type { KnownPeer } from '../peers/peer-state-store.ts'
import type { OperatorPeer } from '../peers/peers.ts'
import type { Publishing } from '../plan/decide.ts'
import { REASONS } from '../status/conditions.ts'

/** Faults in the names of sites that peers use, as seen from one record. */
export interface NameFaults {
  /** One line each. */
  readonly names: readonly string[]
  /** Addresses of peers that have the name of our site and are not its nameservers. */
  readonly namesakes: ReadonlySet<string>
  /** Monotonic time at which age alone changes the faults; Infinity = never. */
  readonly nextMs: number
}

/**
 * Finds peers that use the name of another site. A peer with the name of ours must report what our records have;
 * if it reports something else for SITE_CONFLICT_MS, it is not our nameserver.
 */
export class SiteNames {
  readonly #site: string
  readonly #clock: Clock
  /** By record key: monotonic time since which each fault lasts. */
  readonly #sinceMs = new Map<string, Map<string, number>>()
  /** By record key and address: as in `namesakeSince`, of the peers with the name of our site. */
  readonly #namesakeMs = new Map<string, ReadonlyMap<string, number>>()

  constructor(site: string, clock: Clock) {
    this.#site = site
    this.#clock = clock
  }

  check(
    publishing: Publishing,
    followed: readonly OperatorPeer[],
    view: Pick<ClusterView, 'recordsSharing'>,
  ): NameFaults {
    const { record, rootHost } = publishing
    const before = this.#sinceMs.get(record.key)
    const nowMs = this.#clock.monotonic()
    // What an earlier leader reported need not be confirmed for as long again.
    const wasReported = record.condition('PeersDegraded')?.reason === REASONS.siteNameConflict
    const firstMs = before === undefined && wasReported ? Number.NEGATIVE_INFINITY : nowMs
    const peers = followed.map((peer) => namedAt(peer, rootHost))
    const oursFor = ({ states }: NamedPeer): readonly PeerEndpoint[] => {
      return this.#exportsOf(publishing, endpointsOfSite(states, this.#site), view)
    }
    const faults = peers.flatMap((peer) => {
      const ours = (): readonly PeerEndpoint[] => oursFor(peer)
      const context = { site: this.#site, setting: '--site', ours, others: peers }
      return [...findRelay(peer), ...findNameFaults(peer, context)]
    })
    const known = this.#namesakeMs.get(record.key)
    const namesakeMs = new Map(
      peers
        .filter((peer) => peer.ownSite === this.#site)
        .map((peer) => {
          const isOther = isNamesake(peer, this.#site, oursFor(peer))
          return [peer.address, namesakeSince(isOther, known?.get(peer.address), nowMs)]
        }),
    )
    this.#namesakeMs.set(record.key, namesakeMs)
    const since = lastingSince(faults, before, firstMs)
    this.#sinceMs.set(record.key, since)
    const isLasting = (ms: number): boolean => nowMs - ms >= SITE_CONFLICT_MS
    const coming = [...since.values(), ...namesakeMs.values()].filter((ms) => !isLasting(ms))
    const namesakes = [...namesakeMs].filter(([, ms]) => isLasting(ms))
    const names = faults.filter(({ id }) => isLasting(since.get(id)!)).map(({ text }) => text)
    return {
      names: sortUnique(names),
      namesakes: new Set(namesakes.map(([address]) => address)),
      nextMs: coming.reduce((least, ms) => Math.min(least, ms + SITE_CONFLICT_MS), Infinity),
    }
  }

  forget(key: string): void {
    this.#sinceMs.delete(key)
    this.#namesakeMs.delete(key)
  }

  /** What our nameserver may report: the endpoints of the record, and of others with the same names. */
  #exportsOf(
    { record, content }: Publishing,
    reported: readonly PeerEndpoint[],
    view: Pick<ClusterView, 'recordsSharing'>,
  ): readonly PeerEndpoint[] {
    const names = [...new Set(reported.map(({ endpoint }) => printHost(endpoint.owner)))]
    const sharing = names.flatMap((name) => view.recordsSharing(record.key, name))
    const others = [...new Set(sharing)].flatMap(({ key, resource }) =>
      resource.kind === 'record' ? [{ key, content: resource.record }] : [],
    )
    const facts = { site: this.#site, down: [], up: [], sinceSeconds: 0 }
    return [{ key: record.key, content }, ...others].flatMap(({ key, content: one }) => {
      return toPeerEndpoints(one, { ...facts, key })
    })
  }
}

function namedAt(peer: OperatorPeer, rootHost: string): NamedPeer {
  const { address, ownSite, sites } = peer
  const answer = peer.answerFor(rootHost)
  const states = answer.kind === 'pending' ? [] : (answer.state?.siteStates ?? [])
  return { address, ownSite, sites, states }
}

interface ClockContext {
  readonly site: string
  readonly clocks: SiteClocks
  readonly nameFaults: Pick<NameFaults, 'namesakes'>
  readonly silentMs: number
  readonly timeMs: number
  /** Monotonic time. */
  readonly nowMs: number
}

/**
 * Finds the sites, and other nameservers of our site, whose clock differs from ours. Also finds the sites that are
 * heard and date their data in our future.
 */
export function findClockFaults(
  peers: ReadonlyMap<string, KnownPeer>,
  { site, clocks: measured, nameFaults, silentMs, timeMs, nowMs }: ClockContext,
): { readonly clocks: readonly string[]; readonly nextMs: number } {
  const bySite = new Map<string, number>()
  for (const { state, reason } of peers.values()) {
    if (reason !== '' || state === undefined) continue
    for (const { site: of, endpoints, isOwn } of state.siteStates) {
      if (!isOwn || of === site) continue
      bySite.set(of, Math.max(bySite.get(of) ?? 0, aheadMs(endpoints, timeMs)))
    }
    for (const one of state.observations ?? []) {
      bySite.set(one.site, Math.max(bySite.get(one.site) ?? 0, aheadMs([one], timeMs)))
    }
  }
  const others = [...measured].filter(([of]) => of !== site)
  const differing = new Map(
    others.map(([of, clocks]) => [of, printFirstFault(of, currentClocks(clocks, silentMs))]),
  )
  const ahead = [...bySite].filter(([, ms]) => ms > CLOCK_DIFFERS_MS)
  for (const [of] of ahead) if (!differing.get(of)) differing.set(of, printClockAhead(of))
  const { namesakes } = nameFaults
  const ours = ownClocks(site, measured, { namesakes, nowMs, silentMs }).map((one) => {
    return printClockFault(clockOfOurs(one.address, site), one.aheadMs)
  })
  return {
    clocks: [...differing.values(), ...ours].filter((text) => text !== '').sort(),
    nextMs: ahead.reduce((least, [, ms]) => Math.min(least, ms - CLOCK_DIFFERS_MS), Infinity),
  }
}

function printFirstFault(site: string, clocks: readonly SiteClock[]): string {
  const faults = clocks.map(({ aheadMs }) => printClockFault(`site ${site}`, aheadMs))
  return faults.find((text) => text !== '') ?? ''
}
