import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../base/clock.ts'
import { printType } from '../dns/iana/types.ts'
import { KDRNT } from '../dnsrecord/local-zone.ts'
import { packRecord, type RecordContent, unpackRecord } from '../dnsrecord/pack.ts'
import { printHost, printTarget } from '../dnsrecord/print-endpoint.ts'
import { StoredRecord } from '../dnsrecord/record-source.ts'
import { firstSettings } from '../dnsrecord/settings.ts'
import type { AddressHealth } from '../health/address-health.ts'
import { findDownTargets } from '../health/down-targets.ts'
import type { QuorumAddress } from '../telemetry/status.ts'
import type { LocalExporter } from './local-exporter.ts'
import { dropDown } from './merge/health.ts'
import { mergeSiteStates, type OwnState } from './merge/merge-site-states.ts'
import { buildMergedRecord } from './merged-form.ts'
import { MERGED_NAMESPACE } from './merged-namespace.ts'
import { printPartlyDrained } from './partly-drained.ts'
import type { SiteState } from './peer-endpoint.ts'
import type { HealthQuorum, QuorumHost } from './quorum/health-quorum.ts'
import { RecordSet } from './record-set.ts'
import { downTargets } from './to-peer-endpoint.ts'
import type { HostTroubles } from './troubles.ts'
import type { OwnHosts } from './trust/own-hosts.ts'
import type { PeerRule } from './trust/peer-rule.ts'
import { type Refused, screenSiteStates } from './trust/screen-site-states.ts'

export interface HostMergeParts {
  readonly site: string
  /** Health of the addresses of our own records. */
  readonly health: AddressHealth
  readonly exporter: LocalExporter
  readonly ownHosts: OwnHosts
  /** What a peer may report in addition to what every peer may. `address`: as in its status. */
  readonly rulesOf?: ((address: string) => readonly PeerRule[]) | undefined
  readonly expiryMs: number
  /** Decides about the health of peers' addresses; undefined = each site decides about its own. */
  readonly quorum?: HealthQuorum | undefined
  readonly clock: Clock
}

/** A host without its `*.`, as records of several sites have it. */
export interface HostRecords {
  readonly text: string
  /** Our own records of the host. */
  readonly own: RecordSet
  /** The records that the zones serve for the host: our own records, or one merged record. */
  readonly given: RecordSet
}

/** What the zones serve for a host from now on. */
export interface HostOutcome {
  readonly given: RecordSet
  readonly troubles: HostTroubles
  /** Monotonic milliseconds at which the age of observations changes the outcome; undefined = never. */
  readonly dueMs: number | undefined
}

/** Why a target of a merged host is down, or is served although some site found it down. */
export interface TargetHealth {
  /** Owner name as in a DNSRecord, and mnemonic of the type. */
  readonly dnsName: string
  readonly recordType: string
  readonly target: string
  readonly site: string
  /** `down: its site paris reports it`; '' = our own probes know, see `recordKey`. */
  readonly reason: string
  /** Our own record that has the target; '' = none. */
  readonly recordKey: string
}

type OwnRecord = { readonly record: StoredRecord; readonly content: RecordContent }

/** What sites have of one host, after the checks of what peers may report. */
interface Gathered {
  /** Records that are served beside the merge. */
  readonly kept: readonly StoredRecord[]
  readonly mine: readonly OwnRecord[]
  readonly own: Pick<OwnState, 'endpoints'> & { readonly down: readonly string[] }
  readonly siteStates: readonly SiteState[]
  readonly refused: readonly Refused[]
}

/** Merges our own records of a host with what peers report of it. */
export class HostMerge {
  readonly #parts: HostMergeParts
  /** Sites that reported the endpoints of each merged record, in its order. */
  readonly #sites = new WeakMap<StoredRecord, readonly (readonly string[])[]>()
  /** The decisions of a quorum of sites that led to a merged record, as text. */
  readonly #decisions = new WeakMap<StoredRecord, string>()

  constructor(parts: HostMergeParts) {
    this.#parts = parts
  }

  /** Returns the sites that reported each endpoint of a record; undefined = it is our own record. */
  sitesOf(record: StoredRecord): readonly (readonly string[])[] | undefined {
    return this.#sites.get(record)
  }

  /** Returns the decisions of a quorum that made this record differ from the one before; '' = none did. */
  decisionOf(record: StoredRecord): string {
    return this.#decisions.get(record) ?? ''
  }

  merge(host: HostRecords, states: readonly SiteState[]): HostOutcome {
    const { quorum } = this.#parts
    const gathered = this.#gather(host.own, states)
    const { mine, siteStates, refused } = gathered
    if (!siteStates.some(hasEndpoints)) {
      quorum?.forget(host.text)
      return { given: host.own, troubles: { conflicts: [], refused }, dueMs: undefined }
    }
    const settled = quorum?.settle(this.#quorumHost(host.text, gathered))
    const agreed = settled?.siteStates ?? siteStates
    const { merged, conflicts } = this.#build(host, { ...gathered, siteStates: agreed })
    const changes = settled?.changes ?? ''
    if (changes !== '' && merged !== undefined) this.#decisions.set(merged, changes)
    const troubles = {
      conflicts: [...conflicts, ...printPartlyDrained(host.text, mine)],
      refused,
    }
    const given = merged === undefined ? host.own : RecordSet.of([...gathered.kept, merged])
    return { given, troubles, dueMs: settled?.dueMs }
  }

  /** Returns what sites found of addresses of peers, if some site found the address down. */
  inspect(host: HostRecords, states: readonly SiteState[]): readonly QuorumAddress[] {
    const { quorum } = this.#parts
    return quorum?.inspect(this.#quorumHost(host.text, this.#gather(host.own, states))) ?? []
  }

  /** Returns the targets that some site found down, and those of silent sites. */
  explainHealth(host: HostRecords, states: readonly SiteState[]): readonly TargetHealth[] {
    const gathered = this.#gather(host.own, states)
    if (!gathered.siteStates.some(hasEndpoints)) return []
    const { site, quorum } = this.#parts
    const reports = quorum?.inspect(this.#quorumHost(host.text, gathered), 'silent too') ?? []
    const reasons = new Map(reports.map(({ address, reason }) => [address, reason]))
    const found = gathered.mine.flatMap((one) => this.#ownDown(one, site))
    for (const { endpoints } of gathered.siteStates) {
      for (const { site, dnsName, recordType, health, targets } of endpoints) {
        for (const target of targets) {
          const known = health === 'down' ? `down: its site ${site} reports it` : ''
          const reason = reasons.get(target) ?? known
          const about = { dnsName, recordType, target, site, recordKey: '' }
          if (reason !== '') found.push({ ...about, reason })
        }
      }
    }
    return found
  }

  #ownDown({ record, content }: OwnRecord, site: string): TargetHealth[] {
    const { down } = this.#parts.health.healthOf(record.key)
    const downTargets = findDownTargets(content.endpoints, down)
    return content.endpoints.flatMap(({ owner, type, rdata }, i) => {
      return [...downTargets[i]!].map((index) => ({
        dnsName: printHost(owner),
        recordType: printType(type),
        target: printTarget(type, rdata[index]!),
        site,
        reason: '',
        recordKey: record.key,
      }))
    })
  }

  #gather(records: RecordSet, states: readonly SiteState[]): Gathered {
    const { exporter, health, ownHosts, rulesOf = () => [] } = this.#parts
    const kept: StoredRecord[] = []
    const mine: OwnRecord[] = []
    for (const record of records) {
      const content = unpackRecord(record.packed)
      // Aggregates that an operator assembled are not exported by a site, so they are kept beside
      // the merge.
      if (content.isAggregate || content.zoneLabel === KDRNT) kept.push(record)
      else mine.push({ record, content })
    }
    const endpoints = mine.flatMap(({ record, content }) =>
      exporter.endpointsOf({ record, health: health.healthOf(record.key) }, content, undefined),
    )
    const names = ownHosts.beside(
      records,
      mine.map(({ record }) => record),
    )
    const { siteStates, refused } = screenSiteStates(states, { names, own: endpoints, rulesOf })
    const down = downTargets(mine.flatMap(({ record }) => health.healthOf(record.key).down))
    return { kept, mine, own: { endpoints, down }, siteStates, refused }
  }

  #quorumHost(host: string, { own, mine, siteStates }: Gathered): QuorumHost {
    const { health } = this.#parts
    const checked = mine.filter(({ content }) => content.healthCheck !== undefined)
    const keys = checked.map(({ record }) => record.key).sort()
    return {
      host,
      own: own.endpoints,
      ownDown: own.down,
      checkedKey: keys[0] ?? '',
      observed: keys.flatMap((key) => health.healthOf(key).observed ?? []),
      siteStates,
    }
  }

  /** Returns the merged record; undefined = it has no endpoints. */
  #build(
    host: HostRecords,
    { own, mine, siteStates }: Gathered,
  ): { readonly merged: StoredRecord | undefined; readonly conflicts: readonly string[] } {
    const { site, clock, expiryMs } = this.#parts
    const merge = mergeSiteStates({ site, ...own }, siteStates, clock.monotonic(), expiryMs)
    const contents = mine.map(({ content }) => content)
    const facts = {
      namespace: MERGED_NAMESPACE,
      name: host.text,
      zoneLabel: contents.find(({ zoneLabel }) => zoneLabel !== '')?.zoneLabel ?? '',
      createdSeconds:
        contents.find(({ createdSeconds }) => createdSeconds > 0)?.createdSeconds ?? 0,
      settings: firstSettings(contents.map(({ settings }) => settings)),
    }
    const built = buildMergedRecord(dropDown(merge.endpoints), facts, host.text)
    const { record, sites, refused } = built
    const conflicts = [
      ...merge.conflicts.map((conflict) => conflict.text),
      ...refused.map(({ sites, reason }) => `${host.text} of ${sites.join()}: ${reason}`),
    ]
    if (record.endpoints.length === 0) return { merged: undefined, conflicts }
    const packed = packRecord(record)
    const key = `${MERGED_NAMESPACE}/${host.text}`
    const known = host.given.get(key)
    if (known?.packed === packed && isDeepStrictEqual(this.#sites.get(known), sites))
      return { merged: known, conflicts }
    const merged = new StoredRecord(key, packed)
    this.#sites.set(merged, sites)
    return { merged, conflicts }
  }
}

export const hasEndpoints = ({ endpoints }: SiteState): boolean => endpoints.length > 0
