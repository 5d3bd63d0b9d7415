import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import type { HealthObservation } from '../../health/address-health.ts'
import type { Leaf } from '../../health/record-probes.ts'
import { withoutDrains } from '../../peering/merge/without-drains.ts'
import type { PeerEndpoint, SiteState } from '../../peering/peer-endpoint.ts'
import type { DecidedBy } from '../../peering/quorum/decide.ts'
import { findForeign } from '../../peering/quorum/foreign-addresses.ts'
import { HealthQuorum, type Settled } from '../../peering/quorum/health-quorum.ts'
import { type EarlierDecisions, earlierDecisions } from '../../peering/quorum/keep-down.ts'
import { QuorumMemory } from '../../peering/quorum/quorum-memory.ts'
import { findSilentSites } from '../../peering/silent-sites.ts'
import { printTargets } from '../../peering/to-peer-endpoint.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Publishing } from '../plan/decide.ts'
import type { OwnHealth } from '../plan/own.ts'
import type { PeerProbing } from '../probes/peer-probing.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { readDown, readObserved } from './earlier-findings.ts'
import type { OperatorPeer } from './peers.ts'

/** Interval of the checks which sites are heard. */
const CHECK_MS = 1000
/** Reasons in records. An address keeps its first one while it is down, because each change is a write. */
const REASONS: Readonly<Record<DecidedBy, string>> = {
  home: 'its site reports it',
  'this site': 'this site does not reach it',
  sites: 'most sites that know it find it down',
  before: 'it was down before this site became isolated',
  start: 'it was down before the operator started',
  nothing: '',
}
const SILENT = 'its site is silent'

export interface PeerHealthParts {
  readonly site: string
  /** Probes addresses of peers; undefined = none are probed. */
  readonly probing: PeerProbing | undefined
  /** Sites that must find an address down; 0 = a majority of those that are heard and know. */
  readonly quorum: number
  /** How long they must have found it down; 0 = at once. */
  readonly holdDownMs: number
  /** How long a silent site keeps its addresses that no check finds up. */
  readonly silentMs: number
  /** The decisions about a record may have changed. */
  readonly onEvent: (key: string) => void
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly timers: Timers
  readonly log: Logger
}

/** One record, and what this site and its peers have of its host. */
export interface HealthFacts {
  readonly publishing: Publishing
  /** Nameservers of the record. */
  readonly followed: readonly OperatorPeer[]
  readonly own: readonly PeerEndpoint[]
  readonly health: OwnHealth
  /** Of other sites, one per site. */
  readonly siteStates: readonly SiteState[]
  /** The present derived records. */
  readonly local: DnsRecordView | undefined
  readonly merged: DnsRecordView | undefined
}

export interface PeerDecisions {
  /** Why addresses of peers are down. */
  readonly down: ReadonlyMap<string, string>
  /** What our probes found of addresses of peers. */
  readonly observed: readonly HealthObservation[]
  /** Monotonic milliseconds at which age changes the decisions; undefined = never. */
  readonly nextMs: number | undefined
}

/** Records with the same nameservers. They share one quorum. */
interface Group {
  readonly id: string
  readonly quorum: HealthQuorum
  readonly memory: QuorumMemory
  readonly keys: Set<string>
}

interface Known {
  readonly group: Group
  readonly earlier: EarlierDecisions
  /** As of the last `settle`. */
  publishing: Publishing
  /** Addresses that are down, with the reasons. */
  down: ReadonlyMap<string, string>
}

/** Decides about the health of the addresses that peers report, as a plain server does: see HealthQuorum. */
export class PeerHealth {
  readonly #parts: PeerHealthParts
  readonly #groups = new Map<string, Group>()
  /** By record key. */
  readonly #known = new Map<string, Known>()
  readonly #stopChecks: () => void

  constructor(parts: PeerHealthParts) {
    this.#parts = parts
    this.#stopChecks = parts.timers.every(CHECK_MS, () => this.#check())
  }

  settle(facts: HealthFacts): PeerDecisions {
    const { publishing, own, health, siteStates } = facts
    const { clock, probing } = this.#parts
    const { record, rootHost, content } = publishing
    const { key } = record
    const known = this.#open(facts)
    const { group, earlier } = known
    const nowMs = clock.monotonic()
    if (nowMs >= earlier.heardMs) probing?.recall(key, [])
    const settled = group.quorum.settle({
      id: key,
      host: rootHost.replace(/^\*\./, ''),
      own,
      ownFindings: findingsOf(health),
      checkedKey: content.healthCheck === undefined ? '' : key,
      observed: probing?.observationsOf(key) ?? [],
      siteStates: siteStates.map(withoutDrains),
      earlier,
    })
    const observed = probing?.observationsOf(key) ?? []
    const isRecalling = observed.length + earlier.down.size > 0 && nowMs < earlier.heardMs
    const nextMs = Math.min(
      settled.dueMs ?? Infinity,
      isRecalling ? earlier.heardMs : Infinity,
      ...this.#silencesAfter(siteStates, nowMs),
    )
    known.down = this.#downOf(facts, settled, known.down, nowMs)
    return { down: known.down, observed, nextMs: nextMs === Infinity ? undefined : nextMs }
  }

  /** Stops the probes for a record, and forgets what was decided. */
  forget(key: string): void {
    this.#leaveGroup(key)
    this.#known.delete(key)
    this.#parts.probing?.forget(key)
  }

  close(): void {
    this.#stopChecks()
    this.#parts.probing?.close()
  }

  #downOf(
    { own, siteStates }: HealthFacts,
    { decisions }: Settled,
    before: ReadonlyMap<string, string>,
    nowMs: number,
  ): ReadonlyMap<string, string> {
    const silent = findSilentSites(siteStates, nowMs, this.#parts.silentMs)
    const down = new Map<string, string>()
    for (const [address, endpoints] of findForeign({ own, siteStates })) {
      const { outcome, by } = decisions.get(address) ?? { outcome: 'unknown', by: 'nothing' }
      if (outcome === 'down') down.set(address, before.get(address) ?? REASONS[by])
      else if (outcome !== 'up' && endpoints.every(({ site }) => silent.has(site)))
        down.set(address, before.get(address) ?? SILENT)
    }
    return down
  }

  #silencesAfter(siteStates: readonly SiteState[], nowMs: number): number[] {
    return siteStates.map(({ seenMs }) => seenMs + this.#parts.silentMs).filter((ms) => ms > nowMs)
  }

  /** Finds the quorum of a record's nameservers. The first time, it recalls what is written in the cluster. */
  #open({ publishing, followed, local, merged }: HealthFacts): Known {
    const { key } = publishing.record
    const { site, probing } = this.#parts
    const id = followed.map((peer) => peer.id).join('\n')
    const before = this.#known.get(key)
    if (before?.group.id === id) {
      before.publishing = publishing
      return before
    }
    const down = readDown(merged, site)
    const observed = before === undefined ? readObserved(local, site) : probing?.observationsOf(key)
    this.#leaveGroup(key)
    probing?.recall(key, observed ?? [])
    const group = this.#groups.get(id) ?? this.#openGroup(id, followed)
    group.keys.add(key)
    const addresses = new Set(down.keys())
    if (down.size > 0) group.memory.note(key, addresses)
    const opened = { group, publishing, down, earlier: this.#earlierOf(publishing, addresses) }
    this.#known.set(key, opened)
    return opened
  }

  #earlierOf({ content }: Publishing, down: ReadonlySet<string>): EarlierDecisions {
    const { clock, probing } = this.#parts
    const check = probing === undefined ? undefined : content.healthCheck
    return earlierDecisions(down, clock.monotonic(), check)
  }

  #openGroup(id: string, peers: readonly OperatorPeer[]): Group {
    const { site, probing, quorum, holdDownMs, clock, log } = this.#parts
    const memory = new QuorumMemory(clock)
    const observer = probing && {
      watch: (key: string, leaves: readonly Leaf[]) => this.#watch(probing, key, leaves),
      close: () => {},
    }
    const parts = { site, peers, quorum, holdDownMs, memory, observer, clock, log }
    const group = { id, memory, quorum: new HealthQuorum(parts), keys: new Set<string>() }
    this.#groups.set(id, group)
    return group
  }

  #watch(probing: PeerProbing, key: string, leaves: readonly Leaf[]): void {
    const publishing = this.#known.get(key)?.publishing
    if (publishing === undefined) return
    const { record, content } = publishing
    probing.watch({ namespace: record.namespace, name: record.name, content }, leaves)
  }

  #leaveGroup(key: string): void {
    const group = this.#known.get(key)?.group
    if (group === undefined) return
    group.quorum.forget(key)
    group.keys.delete(key)
    if (group.keys.size === 0) this.#groups.delete(group.id)
  }

  #check(): void {
    for (const { quorum, keys } of this.#groups.values()) {
      if (quorum.check()) for (const key of keys) this.#parts.onEvent(key)
    }
  }
}

function findingsOf({ down, up }: OwnHealth): ReadonlyMap<string, 'up' | 'down'> {
  const found = new Map<string, 'up' | 'down'>()
  for (const address of printTargets(down)) found.set(address, 'down')
  for (const address of printTargets(up)) found.set(address, 'up')
  return found
}
