import type { Clock } from '../../base/clock.ts'
import type { ResourceRegistry } from '../../base/resource-registry.ts'
import { Stops } from '../../base/stops.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { QuorumReport } from '../../base/telemetry/status.ts'
import { systemTimers } from '../../base/timers.ts'
import { printHostPort } from '../../dns/host-port.ts'
import { printName } from '../../dns/name/name.ts'
import type { AddressHealth } from '../../health/address-health.ts'
import type { HealthTable } from '../../health/health-table.ts'
import type { RecordProbing } from '../../health/record-probing.ts'
import { PeerCache } from '../../peering/cache/peer-cache.ts'
import { EXPIRY_DEFAULT_MS } from '../../peering/expiry.ts'
import type { TargetHealth } from '../../peering/host-merge.ts'
import type { LocalExporter } from '../../peering/local-exporter.ts'
import { hostOfSiteKey, rootHostOf } from '../../peering/merged-keys.ts'
import { MergedSource } from '../../peering/merged-source.ts'
import { PeerFollower } from '../../peering/peer.ts'
import type { PeerAddress } from '../../peering/peer-address.ts'
import { bareHost, type PeerStatus, wasHeard } from '../../peering/peer-status.ts'
import { HealthQuorum, type QuorumStatus } from '../../peering/quorum/health-quorum.ts'
import { QuorumMemory } from '../../peering/quorum/quorum-memory.ts'
import { SiteWatch } from '../../peering/site-watch.ts'
import type { PeerDisputes } from '../../peering/trouble-log.ts'
import { printHost } from '../../records/print-endpoint.ts'
import type { RecordSource, StoredRecord } from '../../records/record-source.ts'
import { nameOf } from '../../sources/source-place.ts'
import type { PeerOrigin, PeersOrigin } from '../explainable.ts'
import type { PublishOptions } from '../options.ts'
import { isAllowed, serversOf } from '../zone/zone-content.ts'
import type { OwnDeathRules } from './death-rules.ts'
import { findUnsigned, type PeerKey, readPeerKey } from './peer-key.ts'
import { measureDisputes, measurePeerCache, measurePeers, measureQuorum } from './peer-metrics.ts'
import { groupsOfPeers } from './peer-problems.ts'
import { DeathMemory, SiteDeathLog } from './site-deaths.ts'

/** Maximum wait for the first answers of peers. */
const FIRST_ANSWERS_MS = 3000
/** Addresses that a status lists one by one. */
const LISTED_MAX = 1000

export interface PublisherPeersParts {
  readonly resources: ResourceRegistry
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: MetricsRegistry
  /** Own addresses that are served; empty = every address. */
  readonly listenHosts: readonly string[]
  /** Returns the own address to query a host from; '' = any. */
  readonly sourceFor: (host: string) => string
}

/** The peers whose records a publisher merges with its own. */
export class PublisherPeers {
  readonly #options: PublishOptions
  readonly #parts: PublisherPeersParts
  readonly #stops = new Stops()
  #followers: readonly PeerFollower[] = []
  #hasHeard = false
  #peerCache: PeerCache | undefined
  #merged: MergedSource | undefined
  #quorum: HealthQuorum | undefined
  #siteWatch: SiteWatch | undefined

  constructor(options: PublishOptions, parts: PublisherPeersParts) {
    this.#options = options
    this.#parts = parts
  }

  /** Starts to query the peers. Throws InputError if the key can't be read. */
  start(): void {
    const { log, metrics } = this.#parts
    const { peers, key: place } = this.#options.peering
    const unsigned = findUnsigned(this.#options.peering)
    if (unsigned !== undefined) log.warning(unsigned.print(), 'peer-unsigned')
    const signing = place === undefined ? undefined : readPeerKey(place)
    this.#openPeerCache()
    this.#followers = peers.map((peer) => this.#follow(peer, signing))
    this.#stops.add(measurePeers(metrics, () => this.statuses))
    const zones = this.#options.zones.map((zone) => printName(zone)).join(' ')
    const disputes = (): PeerDisputes => this.#disputes
    this.#stops.add(measureDisputes(metrics, zones, disputes, () => this.statuses))
    // Data of all peers is known, from before a reload or from the file, so no caller has to wait.
    this.#hasHeard = this.#followers.every(({ lastSeenMs }) => wasHeard(lastSeenMs))
    void this.firstAnswers()
  }

  /** Resolves once every peer has been queried once, or after FIRST_ANSWERS_MS. */
  async firstAnswers(): Promise<void> {
    const all = Promise.all(this.#followers.map((follower) => follower.answered()))
    let stop = (): void => {}
    const patience = new Promise<void>((resolve) => {
      stop = systemTimers.after(FIRST_ANSWERS_MS, resolve)
    })
    await Promise.race([all, patience])
    stop()
    this.#hasHeard = true
  }

  /**
   * Returns our own records merged with those of the peers. `isOnly`: no other block of the Corefile has records from
   * elsewhere.
   */
  async merge(
    own: RecordSource,
    isOnly: boolean,
    health: AddressHealth,
    exporter: LocalExporter,
    probing: RecordProbing | undefined,
  ): Promise<{ readonly records: RecordSource; readonly found: readonly AddressHealth[] }> {
    const { clock, log } = this.#parts
    const quorum = this.#openQuorum(probing)
    const { site, peering, zones } = this.#options
    const merged = new MergedSource({
      zones: zones.map(printHost),
      servers: zones.flatMap((apex) => serversOf(apex, this.#options)).map(printHost),
      rulesOf: (address) => peering.rules.get(address) ?? [],
      own,
      health,
      allows: (record) => isAllowed(record, this.#options),
      site,
      exporter,
      peers: this.#followers,
      expiryMs: peering.expiryMs,
      quorum,
      clock,
      timers: systemTimers,
      log,
    })
    this.#merged = merged
    const siteWatch = new SiteWatch({
      site,
      own: merged,
      isWhole: () => isOnly && hasAny(own, (record) => isAllowed(record, this.#options)),
      peers: this.#followers,
      expiryMs: peering.expiryMs,
      clock,
      timers: systemTimers,
      log,
    })
    this.#siteWatch = siteWatch
    this.#stops.add(() => siteWatch.close())
    this.#stops.add(() => merged.close())
    await merged.ready()
    return { records: merged, found: merged.found }
  }

  /** As of `MergedSource`. */
  followDrains(table: HealthTable): void {
    this.#merged?.followDrains(table)
  }

  /**
   * Returns who reports the endpoints of a record of another site; undefined = the record is our own.
   */
  originsOf(recordKey: string): PeersOrigin | undefined {
    const host = hostOfSiteKey(recordKey)
    const site = host === '' ? undefined : this.#merged?.find(recordKey)?.origin?.site
    if (site === undefined) return undefined
    const nowMs = this.#parts.clock.monotonic()
    const heard = this.#followers.filter(({ lastSeenMs }) => wasHeard(lastSeenMs))
    const reporting = heard.filter((follower) => follower.hosts().has(bareHost(host)))
    const peers = reporting.flatMap(({ status, lastSeenMs }): PeerOrigin[] => {
      if (!status.site.split(',').includes(site)) return []
      const ageSeconds = Math.round((nowMs - lastSeenMs) / 1000)
      return [{ peer: status.address, site, ageSeconds }]
    })
    return { site, peers }
  }

  /** True if every peer has answered for the host of a record, and all that was reported is served. */
  isComplete(recordKey: string): boolean {
    const merged = this.#merged
    const record = merged?.find(recordKey)
    if (merged === undefined || record === undefined || merged.isChanging) return false
    const rootHost = rootHostOf(record)
    return this.#followers.every((follower) => follower.hasAnsweredFor(rootHost))
  }

  /** As of `MergedSource`. */
  decisionOf(recordKey: string): string {
    return this.#merged?.decisionOf(recordKey) ?? ''
  }

  /** Returns the targets of the hosts at and above a name that some site found down. */
  explainHealth(name: string): readonly TargetHealth[] {
    return this.#merged?.explainHealth(name) ?? []
  }

  /** How sites agree on health; undefined = this site does not probe peers. */
  quorumReport(): QuorumReport | undefined {
    const quorum = this.#quorum
    if (quorum === undefined || !quorum.isObserving) return undefined
    const { isIsolated, heard, sites, quorum: needed } = quorum.status
    const addresses = this.#merged?.inspect(LISTED_MAX) ?? []
    const noted = [...quorum.noted.values()].reduce((sum, count) => sum + count, 0)
    return {
      zones: this.#options.zones.map((zone) => printName(zone)),
      ...{ isIsolated, heard, sites, quorum: needed },
      holdDownSeconds: quorum.holdDownMs / 1000,
      members: quorum.members(),
      addresses,
      addressesOmitted: Math.max(0, noted - addresses.length),
    }
  }

  /** Logs what happens when each site dies: now, when another site is first heard, and what changed after a reload. */
  reportDeaths(rules: OwnDeathRules): void {
    const { resources, clock, log } = this.#parts
    const merged = this.#merged!
    const { item, release } = resources.acquire(DeathMemory, this.#memoryKey, () => {
      return new DeathMemory()
    })
    const deaths = new SiteDeathLog({
      peers: this.#followers,
      hosts: () => merged.hostsOfSites(),
      ready: async () => {
        await this.firstAnswers()
        await merged.ready()
      },
      rules: () => ({ ...rules, sites: this.#quorum!.status.sites }),
      memory: item,
      clock,
      log,
    })
    this.#stops.add(release, () => deaths.close())
  }

  /** Handles a NOTIFY from that address. */
  notify(host: string): void {
    for (const follower of this.#followers) if (follower.isAt(host)) follower.notify()
  }

  unreadyReason(): string {
    return this.#hasHeard ? '' : 'peers have not answered yet'
  }

  /** What is wrong with the peers, and with what they report. `of`: name of the source. */
  problemGroups(of: string): ProblemGroup[] {
    const nowMs = this.#parts.clock.monotonic()
    const ofPeers = groupsOfPeers(of, this.statuses, this.#merged?.troubles, nowMs)
    return [...ofPeers, ...(this.#peerCache?.problems ?? [])]
  }

  /** Text for the ready page; '' = nothing. */
  note(): string {
    const notes: string[] = []
    if (this.#quorum !== undefined) notes.push(printQuorum(this.#quorum.status))
    return [...notes, this.#siteWatch?.note() ?? ''].filter((note) => note !== '').join('; ')
  }

  /** Ends the decisions before the health that they use is gone, so that the last ones are cached. */
  stopMerging(): void {
    this.#merged?.close()
  }

  close(): void {
    this.#stops.close()
  }

  #openQuorum(probing: RecordProbing | undefined): HealthQuorum {
    const { site, zones, peering } = this.#options
    const { probePeers } = peering
    const { resources, clock, log, metrics } = this.#parts
    const names = zones.map((zone) => printName(zone))
    const { item, release } = resources.acquire(QuorumMemory, this.#memoryKey, () => {
      return new QuorumMemory(clock, this.#peerCache?.earlierDown())
    })
    if (this.#peerCache !== undefined) this.#stops.add(this.#peerCache.keepDecisions(item))
    const quorum = new HealthQuorum({
      site,
      peers: this.#followers,
      quorum: probePeers?.quorum ?? 0,
      holdDownMs: probePeers?.holdDownMs ?? 0,
      memory: item,
      observer: probePeers === undefined ? undefined : probing?.openObserver(),
      clock,
      log,
    })
    this.#quorum = quorum
    this.#stops.add(release, () => quorum.close())
    this.#stops.add(measureQuorum(metrics, names.join(' '), () => quorum.status))
    return quorum
  }

  /** Identifies the block over reloads. */
  get #memoryKey(): string {
    const { source, site, zones } = this.#options
    return JSON.stringify([nameOf(source), site, zones.map((zone) => printName(zone))])
  }

  /** All publishers share the follower of a peer, and its data outlives a reload. */
  #follow(peer: PeerAddress, signing: PeerKey | undefined): PeerFollower {
    const { resources, listenHosts, sourceFor, clock, log } = this.#parts
    const key = JSON.stringify([printHostPort(peer), listenHosts, signing?.digest ?? ''])
    const { item, release } = resources.acquire(PeerFollower, key, () => {
      const parts = { sourceFor, clock, timers: systemTimers, log, random: Math.random }
      const follower = new PeerFollower({ ...parts, peer, key: signing?.key })
      this.#peerCache?.recall(follower)
      follower.start()
      return follower
    })
    this.#stops.add(release)
    if (this.#peerCache !== undefined) {
      // An address of a silent site that answers its checks is served for longer than the others.
      const keptMs = Math.max(this.#options.peering.expiryMs, EXPIRY_DEFAULT_MS)
      this.#stops.add(this.#peerCache.keep(item, keptMs))
    }
    return item
  }

  #openPeerCache(): void {
    const { site, peering } = this.#options
    const path = peering.peerCache?.path
    if (path === undefined) return
    const { resources, clock, log, metrics } = this.#parts
    const { item, release } = resources.acquire(PeerCache, `${path}\n${site}`, () => {
      return new PeerCache({ path, site, clock, log, timers: systemTimers })
    })
    this.#peerCache = item
    this.#stops.add(release, measurePeerCache(metrics, item, clock))
  }

  get #disputes(): PeerDisputes {
    return this.#merged?.troubles.disputes ?? { unserved: 0, refused: new Map() }
  }

  /** The state of each peer. */
  get statuses(): PeerStatus[] {
    return this.#followers.map((follower) => follower.status)
  }
}

/** Prints what the ready page shows about agreement on health; '' = nothing. */
function printQuorum(status: QuorumStatus): string {
  const { isIsolated, heard, sites, quorum, down, disputed } = status
  const notes: string[] = []
  if (quorum > sites) notes.push(`quorum ${quorum} is never reached: there are ${sites} sites`)
  if (isIsolated) notes.push(`isolated: ${heard} of ${sites} sites heard`)
  if (down > 0) notes.push(`${down} addresses of other sites are down`)
  if (disputed > 0) notes.push(`sites disagree about the health of ${disputed} addresses`)
  return notes.join('; ')
}

function hasAny(source: RecordSource, isWanted: (record: StoredRecord) => boolean): boolean {
  for (const record of source.records()) if (isWanted(record)) return true
  return false
}
