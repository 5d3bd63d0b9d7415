import type { ResourceRegistry } from '../base/resource-registry.ts'
import type { Stops } from '../base/stops.ts'
import { FaultLog } from '../base/telemetry/fault-log.ts'
import type { ProblemGroup } from '../base/telemetry/problems.ts'
import type { QuorumReport, ShiftReport } from '../base/telemetry/status.ts'
import { systemTimers } from '../base/timers.ts'
import { AddressHealth } from '../health/address-health.ts'
import type { DrainFeed } from '../health/drain/drain-schedule.ts'
import type { HealthTable, HealthView } from '../health/health-table.ts'
import type { Shifts } from '../health/shift/shifts.ts'
import { numberOf } from '../health/source-numbers.ts'
import { LocalExporter } from '../peering/local-exporter.ts'
import type { PeerStatus } from '../peering/peer-status.ts'
import { UnexportableRecords } from '../peering/unexportable.ts'
import { isLocalZone } from '../records/local-zone.ts'
import type { RecordSource, StoredRecord } from '../records/record-source.ts'
import { acquireRecords } from '../sources/open-source.ts'
import type { OwnedSource } from '../sources/owned-source.ts'
import { printRefused } from '../sources/record-rights.ts'
import { RightsSource } from '../sources/rights-source.ts'
import { bareNameOf, nameOf } from '../sources/source-place.ts'
import type { AliasSource } from './alias/alias-source.ts'
import { keyOfAliases, openAliases } from './alias/open-aliases.ts'
import {
  NAMED_MAX,
  NO_HEALTH_NOTES,
  openGroupDrains,
  openHealth,
  openShifts,
  openSlowStart,
  openTable,
} from './block-health.ts'
import type { DownReasons } from './build/down-reason.ts'
import type { ExplainableParts } from './explainable.ts'
import { type HealthOptions, NO_HEALTH } from './health-options.ts'
import type { PublishOptions } from './options.ts'
import { deathRulesOf } from './peers/death-rules.ts'
import type { PublisherPeers, PublisherPeersParts } from './peers/peers.ts'
import type { PreviewScope } from './preview/preview-index.ts'
import { recordsOfCluster, recordsOfPeers, withoutFile } from './probed-records.ts'
import type { PublisherGroup } from './publisher-group.ts'
import {
  aliasOf,
  drainsPlaceOf,
  groupOf,
  ofSource,
  probingOf,
  readsNamespacesOf,
  sharesOf,
  siteOf,
  sourceFileOf,
  zonesOf,
} from './same-source.ts'
import { sitesOfEndpoints } from './sites-of-endpoints.ts'
import { faultAt } from './source-fault.ts'
import { measureWatches } from './zone/metrics.ts'
import { isAllowed } from './zone/zone-content.ts'

interface RecordPipelineParts extends PublisherPeersParts {
  readonly resources: ResourceRegistry
  readonly group: PublisherGroup
  /** Closes everything that the pipeline opens. */
  readonly stops: Stops
}

/**
 * The records of a publisher, from their source to its zones:
 *
 *     source ─┬────────────────▶ peers ──┬──────────────────▶ zones
 *             └▶ address health ──┴──────┴▶ health table ──────▲
 */
export class RecordPipeline {
  readonly #options: PublishOptions
  readonly #parts: RecordPipelineParts
  #source: OwnedSource | undefined
  /** The source without names of other namespaces. */
  #rights: RightsSource | undefined
  /** Undefined = there are no peers, or they are not started. */
  #peers: PublisherPeers | undefined
  /** Of our own records, or of a cluster; and of ALIAS endpoints of other sites. */
  #health = NO_HEALTH_NOTES
  #peersHealth = NO_HEALTH_NOTES
  /** Undefined = the records are not open, or are in the gateway-local form. */
  #aliases: AliasSource | undefined
  /** Drains that a cluster has; empty = none, or the source was not read yet. */
  #clusterDrains: readonly DrainFeed[] = []
  /** Undefined = it is not open. */
  #table: HealthTable | undefined
  /** Undefined = no traffic is shifted. */
  #shifts: Shifts | undefined

  constructor(options: PublishOptions, parts: RecordPipelineParts) {
    this.#options = options
    this.#parts = parts
  }

  /** The source; undefined = it is not open. */
  get source(): OwnedSource | undefined {
    return this.#source
  }

  /** Why the records of the source are not complete; '' = they are, or the source is not open. */
  get unreadReason(): string {
    return this.#source?.source.unreadyReason() ?? ''
  }

  /** Why data of peers is missing; '' = it is not. */
  get unheardReason(): string {
    return this.#peers?.unreadyReason() ?? ''
  }

  /** As in `PublisherPeers`; true without peers. */
  isComplete(recordKey: string): boolean {
    return this.#peers?.isComplete(recordKey) ?? true
  }

  /** The state of the peers. */
  get peers(): readonly PeerStatus[] {
    return this.#peers?.statuses ?? []
  }

  /** How sites agree on health; undefined = this site does not probe peers. */
  quorumReport(): QuorumReport | undefined {
    return this.#peers?.quorumReport()
  }

  /** The shifts of traffic of the source. */
  get shifts(): readonly ShiftReport[] {
    return this.#shifts?.reports() ?? []
  }

  /** Returns the decisions of a quorum of sites that made a merged record what it is; '' = none did. */
  decisionOf(recordKey: string): string {
    return this.#peers?.decisionOf(recordKey) ?? ''
  }

  /** Returns what the ready page shows about the records; '' = nothing. */
  note(): string {
    const { source } = this.#source ?? {}
    const drains = this.#table?.drains.note(NAMED_MAX)
    const shifts = this.#shifts?.note(NAMED_MAX)
    const probes = [this.#health.note(), this.#peersHealth.note()]
    const notes = [source?.note(), ...probes, drains, shifts, this.#peers?.note()]
    return notes.filter((note) => note).join('; ')
  }

  /** What is wrong with the records and the peers. */
  problemGroups(): ProblemGroup[] {
    const name = nameOf(this.#options.source)
    const ofSource = this.#source?.problemGroups(name) ?? []
    const refused = this.#rights?.refused ?? []
    const { source } = this.#source ?? {}
    const problems = refused.map((one) => {
      return {
        place: source?.printPlace(one.key) ?? '',
        object: one.key,
        reason: printRefused(one),
      }
    })
    const faults = [...(this.#aliases?.faults() ?? [])]
    const ofAliases = {
      kind: 'alias',
      of: name,
      count: faults.length,
      problems: faults.map(({ key, text }) => {
        return { place: source?.printPlace(key) ?? '', object: key, reason: text }
      }),
    } as const
    const foreign = { kind: 'foreign-name', of: name, count: problems.length, problems } as const
    const ofPeers = this.#peers?.problemGroups(name) ?? []
    const ofHealth = [
      ...this.#health.problemGroups(),
      ...this.#peersHealth.problemGroups(),
      ...(this.#table?.drains.problemGroups() ?? []),
    ]
    return [...ofSource, foreign, ofAliases, ...ofPeers, ...ofHealth]
  }

  /** Where endpoints of the records come from, and why their addresses are down. */
  get provenance(): Pick<ExplainableParts, 'placeOf' | 'peersOf' | 'healthOf'> & {
    readonly downReason: DownReasons
  } {
    const source = this.#source?.source
    return {
      placeOf: source?.placeOf?.bind(source),
      peersOf: (key) => this.#peers?.originsOf(key),
      downReason: (key, address) => this.#table?.reasonOf(key, address) ?? '',
      healthOf: (name) => this.#peers?.explainHealth(name) ?? [],
    }
  }

  /** What previews of changes need; undefined = the records are not open. */
  get previewed(): Pick<PreviewScope, 'own' | 'drainsWith'> | undefined {
    const drains = this.#table?.drains
    if (drains === undefined || this.#rights === undefined) return undefined
    return { own: this.#rights, drainsWith: drains.drainsWith.bind(drains) }
  }

  /** Handles a NOTIFY for the zone kdrnt from that address. */
  notify(host: string): void {
    this.#peers?.notify(host)
  }

  /** Starts to query the peers. Throws InputError if their key can't be read. */
  async startPeers(): Promise<void> {
    if (this.#options.peering.peers.length === 0) return
    const { PublisherPeers } = await import('./peers/peers.ts')
    const peers = new PublisherPeers(this.#options, this.#parts)
    this.#parts.stops.add(() => peers.close())
    peers.start()
    this.#peers = peers
  }

  /** Opens the source and claims the zones. Throws InputError. */
  async openSource(): Promise<void> {
    const { source: place, position, zones } = this.#options
    const { resources, stops, log, clock, group } = this.#parts
    const readsNamespaces = readsNamespacesOf(place, group.options)
    const drainsPlace = drainsPlaceOf(place, group.options)
    const parts = { log, clock, timers: systemTimers, readsNamespaces, drainsPlace }
    const { item, release } = await acquireRecords(place, resources, parts).catch(faultAt(position))
    this.#source = item
    stops.add(release, item.ownership.claim(zones))
  }

  /** Resolves once the source has been read. */
  async synced(): Promise<void> {
    this.#followCluster()
    await this.#source!.source.synced()
  }

  /**
   * Returns our own records, or those of all sites, and the health that the zones serve.
   * `waitsForPeers`: the answers served now contain data of peers, which must not disappear and
   * come back.
   */
  async open(
    exporter: LocalExporter | undefined,
    waitsForPeers: boolean,
  ): Promise<{ readonly records: RecordSource; readonly health: HealthView }> {
    const { group, resources, stops, log, clock, metrics } = this.#parts
    const { source: place, health = NO_HEALTH } = this.#options
    const parts = { resources, name: nameOf(place), stops, log, clock, metrics }
    const { source } = this.#source!
    const all = group.options
    const zones = zonesOf(place, all)
    const alias = aliasOf(place, all)
    this.#rights ??= this.#openRights()
    const rights = this.#rights
    await rights.decided()
    const how = probingOf(place, all)
    if (source.probed !== undefined) {
      const open = (): AliasSource => openAliases(source, zones, alias, parts)
      const { probed: probes, health } = source
      const key = keyOfAliases(zones, alias)
      this.#health = openHealth(source, how, { open, key, probes, health }, parts)
    }
    let given: { records: RecordSource; found: readonly AddressHealth[] } = {
      records: rights,
      found: [source.health],
    }
    if (this.#peers !== undefined) {
      if (waitsForPeers) await this.#peers.firstAnswers()
      const isOnly = ofSource(place, group.options).length === group.options.length
      const { probing } = this.#health
      const peers = this.#peers
      given = await peers.merge(rights, isOnly, source.health, exporter!, probing)
      stops.add(() => peers.stopMerging())
      this.#peers.reportDeaths(deathRulesOf(this.#options, group.options))
    }
    // In the gateway-local form, no traffic is chosen, and other sites get ALIAS endpoints as they are.
    const isLocal = this.#options.zones.every(isLocalZone)
    const aliases = isLocal ? undefined : openAliases(given.records, zones, alias, parts)
    await aliases?.ready()
    this.#aliases = aliases
    const records = aliases ?? given.records
    const found = [...given.found]
    if (aliases !== undefined) found.push(...this.#probeFurther(aliases, how, parts))
    const file = sourceFileOf('drainFile', place, group.options)
    const site = siteOf(this.#options, group.options)
    const sitesOf = (record: StoredRecord): readonly (readonly string[])[] => {
      return sitesOfEndpoints(record, record.origin?.site ?? site)
    }
    const groupDrains = await openGroupDrains(records, groupOf(place, group.options), site, parts)
    const feeds = [...this.#clusterDrains, groupDrains].filter((feed) => feed !== undefined)
    const isInCluster = source.cluster !== undefined
    const drains = { file, feeds, isInCluster, site, sitesOf }
    const table = await openTable(records, aliases, found, drains, parts)
    this.#peers?.followDrains(table)
    const shiftFile = sourceFileOf('shiftFile', place, group.options)
    const shifts = isLocal ? undefined : openShifts(records, table, shiftFile, parts)
    this.#table = table
    this.#shifts = shifts
    const slowStart = await openSlowStart(records, table, health, parts)
    return { records, health: table.with({ shifts, slowStart }) }
  }

  /**
   * Probes what neither an operator nor the probes of our own records do. Returns the health that is in no other
   * table.
   */
  #probeFurther(
    aliases: AliasSource,
    how: HealthOptions,
    parts: Parameters<typeof openHealth>[3],
  ): readonly AddressHealth[] {
    const opened = { open: () => aliases, key: String(numberOf(aliases, parts.resources)) }
    const { source } = this.#source!
    if (source.probed === undefined) {
      const records = recordsOfCluster(this.#source!, opened)
      const ofCluster = { ...parts, name: bareNameOf(this.#options.source) }
      this.#health = openHealth(source, how, records, ofCluster)
      return []
    }
    if (this.#peers === undefined) return []
    const health = new AddressHealth()
    const ofPeers = { ...parts, name: `${parts.name} peers` }
    const probed = recordsOfPeers(health, opened)
    this.#peersHealth = openHealth(source, withoutFile(how), probed, ofPeers)
    return [health]
  }

  /** Returns the exporter to other sites: one for all zones of a source, also over reloads. */
  openExporter(): LocalExporter | undefined {
    const { group, resources, stops, log, clock } = this.#parts
    const site = siteOf(this.#options, group.options)
    if (site === '') return undefined
    const { source: place, allowedNamespaces, zones } = this.#options
    const name = nameOf(place)
    const exporter = resources.acquire(LocalExporter, JSON.stringify([name, site]), () => {
      return new LocalExporter(site, clock)
    })
    stops.add(exporter.release)
    if (zones.some(isLocalZone)) {
      const namespaces = allowedNamespaces === undefined ? undefined : [...allowedNamespaces].sort()
      const { source } = this.#source!
      const allows = (record: StoredRecord): boolean => isAllowed(record, this.#options)
      const key = JSON.stringify([name, site, namespaces])
      const unexportable = resources.acquire(UnexportableRecords, key, () => {
        return new UnexportableRecords({ source, allows, site, log, clock })
      })
      stops.add(unexportable.release)
    }
    return exporter.item
  }

  /** Returns the records without names of other namespaces: one for all blocks with the same rules. */
  #openRights(): RightsSource {
    const { group, resources, stops, log, clock } = this.#parts
    const { source: place, allowedNamespaces: allowed } = this.#options
    const shares = sharesOf(place, group.options)
    const rules = shares.map(({ host, namespaces }) => [host, namespaces && [...namespaces].sort()])
    const source = this.#source!
    const key = JSON.stringify([source.id, allowed && [...allowed].sort(), rules])
    const rights = resources.acquire(RightsSource, key, () => {
      const faults = new FaultLog(log, clock)
      return new RightsSource(source, {
        isServed: (record) => isAllowed(record, { allowedNamespaces: allowed }),
        shares,
        log,
        onRefused: (record, text) => {
          if (text === '') faults.clear(record)
          else faults.report(record, text)
        },
      })
    })
    stops.add(rights.release)
    return rights.item
  }

  #followCluster(): void {
    const { metrics, stops } = this.#parts
    const { cluster } = this.#source!.source
    if (cluster === undefined) return
    stops.add(measureWatches(metrics, nameOf(this.#options.source), cluster))
    this.#clusterDrains = cluster.drainFeeds
  }
}
