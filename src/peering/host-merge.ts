import type { Clock } from '../base/clock.ts'
import type { QuorumAddress } from '../base/telemetry/status.ts'
import { type AddressHealth, type Finding, UNKNOWN_HEALTH } from '../health/address-health.ts'
import { findDownTargets } from '../health/down-targets.ts'
import { NO_DRAINS, type RecordDrains } from '../health/drain/drain.ts'
import { KDRNT } from '../records/local-zone.ts'
import { type RecordContent, unpackRecord } from '../records/pack.ts'
import { printHost, printRecordType, printTarget } from '../records/print-endpoint.ts'
import type { StoredRecord } from '../records/record-source.ts'
import type { HostOfSites } from './deaths/if-site-dies.ts'
import { oldestAllDown } from './deaths/oldest-all-down.ts'
import type { LocalExporter } from './local-exporter.ts'
import { chooseEndpoints } from './merge/choose-endpoints.ts'
import { chooseOthers } from './merge/choose-site-states.ts'
import { describeLeftOut } from './merge/cut-to-fit.ts'
import { withoutDrains } from './merge/without-drains.ts'
import { isNamesake } from './name-faults.ts'
import type { PeerFollower } from './peer.ts'
import { type PeerEndpoint, printTargets, type SiteState, targetsOf } from './peer-endpoint.ts'
import type { AddressDecision, HealthQuorum, QuorumHost } from './quorum/health-quorum.ts'
import { RecordSet } from './record-set.ts'
import { findSilentSites } from './silent-sites.ts'
import { findSiteClocks, type TimedPeer, undateStates } from './site-clocks.ts'
import { buildSiteRecords, type SiteRecord } from './site-records.ts'
import { staleMsOf } from './stale-sites.ts'
import { printProbed, toPeerEndpoints } from './to-peer-endpoint.ts'
import type { HostTroubles } from './troubles.ts'
import type { OwnHosts } from './trust/own-hosts.ts'
import type { PeerRule } from './trust/peer-rule.ts'
import { type Refused, screenSiteStates } from './trust/screen-site-states.ts'

interface HostMergeParts {
  readonly site: string
  /** Health of the addresses of our own records. */
  readonly health: AddressHealth
  /** The drains of our own records. */
  readonly drainsOf: (record: StoredRecord) => RecordDrains
  readonly exporter: LocalExporter
  readonly ownHosts: OwnHosts
  /** What a peer may report in addition to what every peer may. `address`: as in its status. */
  readonly rulesOf?: ((address: string) => readonly PeerRule[]) | undefined
  readonly expiryMs: number
  /** Decides about the health of peers' addresses. */
  readonly quorum: HealthQuorum
  readonly peers: readonly (TimedPeer & Pick<PeerFollower, 'siteStatesOf'>)[]
  readonly clock: Clock
}

/** A host without its `*.`, as records of several sites have it. */
export interface HostRecords {
  readonly text: string
  /** Our own records of the host. */
  readonly own: RecordSet
  /** The records that the zones serve for the host: our own records, and those of other sites. */
  readonly given: RecordSet
}

/** What the zones serve for a host from now on. */
export interface HostOutcome {
  readonly given: RecordSet
  /** Findings about addresses of records of other sites, by an id of our own. */
  readonly findings: ReadonlyMap<string, Finding>
  readonly troubles: HostTroubles
  /** Monotonic milliseconds at which age changes the outcome; undefined = never. */
  readonly dueMs: number | undefined
  /** Decisions of sites about addresses that changed, as text; '' = none. */
  readonly changes: string
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
  readonly mine: readonly OwnRecord[]
  readonly own: readonly PeerEndpoint[]
  readonly ownFindings: ReadonlyMap<string, 'up' | 'down'>
  readonly siteStates: readonly SiteState[]
  readonly refused: readonly Refused[]
}

/** Puts the records of other sites beside our own records of a host, and finds which of their addresses are down. */
export class HostMerge {
  readonly #parts: HostMergeParts

  constructor(parts: HostMergeParts) {
    this.#parts = parts
  }

  merge(host: HostRecords, states: readonly SiteState[]): HostOutcome {
    const { quorum, expiryMs, clock } = this.#parts
    const gathered = this.#gather(host, states)
    const { mine, siteStates, refused } = gathered
    if (!siteStates.some(hasEndpoints)) {
      quorum.forget(host.text)
      const troubles = { unserved: [], refused }
      return { given: host.own, findings: new Map(), troubles, dueMs: undefined, changes: '' }
    }
    const settled = quorum.settle(this.#quorumHost(host.text, gathered))
    const { endpoints, leftOut } = chooseEndpoints(gathered.own, gathered.siteStates)
    const zoneLabel = mine.find(({ content }) => content.zoneLabel !== '')?.content.zoneLabel ?? ''
    const check = checkedOf(mine)[0]?.content.healthCheck
    const nowMs = clock.monotonic()
    const silent = findSilentSites(siteStates, nowMs, staleMsOf(expiryMs))
    const options = { check, silent }
    const built = buildSiteRecords(host.text, endpoints, zoneLabel, host.given, options)
    const unserved = leftOut.map((one) => describeLeftOut(host.text, one))
    const others = built.map(({ record }) => record)
    const expired = findSilentSites(siteStates, nowMs, expiryMs)
    return {
      given: RecordSet.of([...host.own, ...others]),
      findings: findingsOf(built, settled.decisions, expired),
      troubles: { unserved, refused },
      dueMs: settled.dueMs,
      changes: settled.changes,
    }
  }

  /** Returns what sites found of addresses of peers, if some site found the address down. */
  inspect(host: HostRecords, states: readonly SiteState[]): readonly QuorumAddress[] {
    return this.#parts.quorum.inspect(this.#quorumHost(host.text, this.#gather(host, states)))
  }

  /** Returns the targets that some site found down, and those of silent sites. */
  explainHealth(host: HostRecords, states: readonly SiteState[]): readonly TargetHealth[] {
    const gathered = this.#gather(host, states)
    if (!gathered.siteStates.some(hasEndpoints)) return []
    const { site, quorum } = this.#parts
    const reports = quorum.inspect(this.#quorumHost(host.text, gathered), 'silent too')
    const reasons = new Map(reports.map(({ address, reason }) => [address, reason]))
    const found = gathered.mine.flatMap((one) => this.#ownDown(one, site))
    for (const { endpoints } of gathered.siteStates) {
      for (const { site, endpoint, health } of endpoints) {
        const { dnsName, recordType, targets } = printTargets(endpoint)
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

  /** Returns the endpoints that all sites have of a host, whatever their health, and the health check of our record. */
  sitesOf(host: HostRecords, states: readonly SiteState[]): HostOfSites {
    const { site } = this.#parts
    const gathered = this.#gather(host, states)
    const { mine } = gathered
    const own = mine.flatMap(({ record: { key }, content }) => {
      return toPeerEndpoints(content, { key, site, ...UNKNOWN_HEALTH, sinceSeconds: 0 })
    })
    const others = chooseEndpoints(gathered.own, gathered.siteStates).endpoints
    const checked = checkedOf(mine)[0]
    return {
      host: host.text,
      endpoints: [...own, ...others],
      check: checked?.content.healthCheck,
      allDown: oldestAllDown([...own, ...others]),
    }
  }

  #ownDown({ record, content }: OwnRecord, site: string): TargetHealth[] {
    const { down } = this.#parts.health.healthOf(record.key)
    const downTargets = findDownTargets(content.endpoints, down)
    return content.endpoints.flatMap(({ owner, type, rdata }, i) => {
      return [...downTargets[i]!].map((index) => ({
        dnsName: printHost(owner),
        recordType: printRecordType(type),
        target: printTarget(type, rdata[index]!),
        site,
        reason: '',
        recordKey: record.key,
      }))
    })
  }

  #gather({ text, own: records }: HostRecords, states: readonly SiteState[]): Gathered {
    const { ownHosts, rulesOf = () => [], site, peers } = this.#parts
    const mine: OwnRecord[] = []
    for (const record of records) {
      const content = unpackRecord(record.packed)
      // Aggregates that an operator assembled are not exported by a site.
      if (!content.isAggregate && content.zoneLabel !== KDRNT) mine.push({ record, content })
    }
    const own = this.#exported(mine, () => NO_DRAINS)
    const names = ownHosts.beside(
      records,
      mine.map(({ record }) => record),
    )
    const { siteStates, refused } = screenSiteStates(states, { names, own, rulesOf })
    const { expiryMs: silentMs, clock } = this.#parts
    const chosen = chooseOthers(site, siteStates, silentMs)
    const namesakes = this.#namesakesAt(text, own)
    const rules = { namesakes, nowMs: clock.monotonic(), silentMs }
    const others = undateStates(chosen, own, findSiteClocks(peers), rules)
    return { mine, own, ownFindings: this.#findingsOfOurs(mine), siteStates: others, refused }
  }

  /** Returns the addresses of peers that have the name of our site and are not its nameservers. */
  #namesakesAt(host: string, own: readonly PeerEndpoint[]): ReadonlySet<string> {
    const { site, peers } = this.#parts
    const found = peers.filter((peer) => {
      return peer.ownSite === site && isNamesake({ states: peer.siteStatesOf(host) }, site, own)
    })
    return new Set(found.map(({ address }) => address))
  }

  #exported(mine: readonly OwnRecord[], drainsOf: HostMergeParts['drainsOf']): PeerEndpoint[] {
    const { exporter, health } = this.#parts
    return mine.flatMap(({ record, content }) => {
      const state = { record, health: health.healthOf(record.key), drains: drainsOf(record) }
      return exporter.endpointsOf(state, content, undefined)
    })
  }

  #findingsOfOurs(mine: readonly OwnRecord[]): ReadonlyMap<string, 'up' | 'down'> {
    const found = new Map<string, 'up' | 'down'>()
    for (const { record } of mine) {
      const { down, up } = this.#parts.health.healthOf(record.key)
      for (const address of printProbed(down)) if (!found.has(address)) found.set(address, 'down')
      for (const address of printProbed(up)) found.set(address, 'up')
    }
    return found
  }

  #quorumHost(host: string, { own, ownFindings, mine, siteStates }: Gathered): QuorumHost {
    const { health, drainsOf } = this.#parts
    const isDrained = mine.some(({ record }) => drainsOf(record) !== NO_DRAINS)
    const checked = checkedOf(mine)
    const keys = checked.map(({ record }) => record.key)
    return {
      host,
      own: isDrained ? this.#exported(mine, drainsOf) : own,
      ownFindings,
      checkedKey: keys[0] ?? '',
      observed: keys.flatMap((key) => health.healthOf(key).observed ?? []),
      siteStates: siteStates.map(withoutDrains),
      earlier: this.#parts.quorum.earlierOf(host, checked[0]?.content.healthCheck),
    }
  }
}

/** Returns our records with a health check, by key: that of the first one holds for addresses of peers. */
function checkedOf(mine: readonly OwnRecord[]): OwnRecord[] {
  const checked = mine.filter(({ content }) => content.healthCheck !== undefined)
  return checked.sort((a, b) => (a.record.key < b.record.key ? -1 : 1))
}

export const hasEndpoints = ({ endpoints }: SiteState): boolean => endpoints.length > 0

/** `silent`: why addresses of a site that no check finds up are down, by site. */
function findingsOf(
  records: readonly SiteRecord[],
  decisions: ReadonlyMap<string, AddressDecision>,
  silent: ReadonlyMap<string, string>,
): Map<string, Finding> {
  const found = new Map<string, Finding>()
  // Nearly always nothing is down.
  const isAllUp = ![...decisions.values()].some(({ outcome }) => outcome === 'down')
  if (isAllUp && silent.size === 0) return found
  for (const { record, endpoints } of records) {
    const recordKey = record.key
    for (const { site, endpoint } of endpoints) {
      for (const address of targetsOf(endpoint)) {
        const decided = decisions.get(address)
        const silence = decided?.outcome === 'up' ? undefined : silent.get(site)
        const reason = decided?.outcome === 'down' ? decided.reason : silence
        if (reason === undefined) continue
        found.set(`${recordKey} ${address}`, { recordKey, address, health: 'down', reason })
      }
    }
  }
  return found
}
