import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import type { HealthObservation } from '../../health/address-health.ts'
import type { Leaf } from '../../health/record-probes.ts'
import type { EventRecorder } from '../../kube/event-recorder.ts'
import { withoutDrains } from '../../peering/merge/without-drains.ts'
import { listTargets, type PeerEndpoint, type SiteState } from '../../peering/peer-endpoint.ts'
import { bareHost } from '../../peering/peer-status.ts'
import type { DecidedBy } from '../../peering/quorum/decide.ts'
import { findForeign } from '../../peering/quorum/foreign-addresses.ts'
import { HealthQuorum, type Settled } from '../../peering/quorum/health-quorum.ts'
import type { QuorumPeer } from '../../peering/quorum/heard-sites.ts'
import { type EarlierDecisions, earlierDecisions } from '../../peering/quorum/keep-down.ts'
import { QuorumMemory } from '../../peering/quorum/quorum-memory.ts'
import { findSilentSites } from '../../peering/silent-sites.ts'
import { printProbed } from '../../peering/to-peer-endpoint.ts'
import type { Publishing } from '../plan/decide.ts'
import type { OwnHealth } from '../plan/own.ts'
import type { PeerProbing } from '../probes/peer-probing.ts'
import { subjectOf } from '../record/event-subject.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { readDown, readObserved } from './earlier-findings.ts'
import { HostChecks } from './host-checks.ts'

/** Interval of the checks which sites are heard. */
const CHECK_MS = 1000
/** Reasons in records. An address keeps its first finding while it is down, because each change is a write. */
const REASONS: Readonly<Record<DecidedBy, string>> = {
  home: 'its site reports it',
  'this site': 'this site does not reach it',
  sites: 'most sites that know it find it down',
  before: 'it was down before this site became isolated',
  start: 'it was down before the operator started',
  nothing: '',
}
export const SILENT = 'its site is silent'
/** As for our own addresses. */
const UP_EVENT = { type: 'Normal', reason: 'AddressUp' } as const
const DOWN_EVENT = { type: 'Warning', reason: 'AddressDown' } as const

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
  /** Undefined = no Events are recorded. The recorder bounds them. */
  readonly events?: Pick<EventRecorder, 'record'> | undefined
  /** The decisions about a record may have changed. */
  readonly onEvent: (key: string) => void
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly timers: Timers
  readonly log: Logger
}

/** One record, and what this site and its peers have of its host. */
export interface HealthFacts {
  readonly publishing: Publishing
  /** Nameservers of the record, or other clusters. `id`: different for each. */
  readonly followed: readonly (QuorumPeer & { readonly id: string })[]
  /** Missing = the number that is set for sites. */
  readonly quorum?: number
  /** Missing = the silence that is set for sites. */
  readonly silentMs?: number
  /**
   * True if only a health check that this operator cannot read yet holds. What the check found before counts: addresses
   * that were down are kept down, and silence removes no others.
   */
  readonly isCheckMissing?: boolean
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
  /** The part of it that this record exports: one record does it for all of its host. */
  readonly exported: readonly HealthObservation[]
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
  /** Addresses that checks had found down at `openedMs`, which is monotonic milliseconds. */
  wasDown: ReadonlySet<string>
  openedMs: number
  isCheckMissing: boolean
  /** Addresses that are down, with the reasons. */
  down: ReadonlyMap<string, string>
}

/** An address of peers that went down or up. */
interface AddressChange {
  readonly address: string
  /** The sites that have it. */
  readonly sites: readonly string[]
  readonly isDown: boolean
  /** Why it is or was down. */
  readonly reason: string
}

/** Decides about the health of the addresses that peers report, as a plain server does: see HealthQuorum. */
export class PeerHealth {
  readonly #parts: PeerHealthParts
  readonly #groups = new Map<string, Group>()
  /** By record key. */
  readonly #known = new Map<string, Known>()
  readonly #hosts: HostChecks
  readonly #stopChecks: () => void

  constructor(parts: PeerHealthParts) {
    this.#parts = parts
    this.#hosts = new HostChecks(parts.probing, parts.onEvent)
    this.#stopChecks = parts.timers.every(CHECK_MS, () => this.#check())
  }

  settle(facts: HealthFacts): PeerDecisions {
    const { publishing, health, siteStates, silentMs = this.#parts.silentMs } = facts
    const { isCheckMissing = false } = facts
    const { clock, probing } = this.#parts
    const { record, rootHost } = publishing
    const { key } = record
    const known = this.#open(facts)
    const { group } = known
    const ofRecord = { publishing, own: facts.own, findings: findingsOf(health) }
    const { own, findings, checkedKey, observed: before } = this.#hosts.put(ofRecord)
    const nowMs = clock.monotonic()
    if (isCheckMissing !== known.isCheckMissing) {
      known.openedMs = nowMs
      known.wasDown = foundIn(known.down)
      known.isCheckMissing = isCheckMissing
    }
    const wasOut = group.memory.outOf(key)
    const earlier = this.#earlierOf(key, known)
    if (nowMs >= earlier.heardMs) probing?.recall(key, [])
    const settled = group.quorum.settle({
      id: key,
      host: bareHost(rootHost),
      own,
      ownFindings: findings,
      // The quorum requests probes for this record; HostChecks knows which health check they use.
      checkedKey: checkedKey === '' ? '' : key,
      observed: before,
      siteStates: siteStates.map(withoutDrains),
      earlier,
    })
    const observed = this.#hosts.observationsOf(key)
    const isRecalling = observed.length + earlier.down.size > 0 && nowMs < earlier.heardMs
    const silent = findSilentSites(siteStates, nowMs, silentMs)
    // Before `heardMs`, sites that answer may not have been heard yet, nor probes have found which addresses answer.
    const isBeginning = silent.size > 0 && nowMs < earlier.heardMs
    const nextMs = Math.min(
      settled.dueMs ?? Infinity,
      isRecalling || isBeginning ? earlier.heardMs : Infinity,
      ...siteStates.map(({ seenMs }) => seenMs + silentMs).filter((ms) => ms > nowMs),
    )
    const wasDown = known.down
    const maySilence = !isBeginning && !isCheckMissing
    known.down = this.#downOf({ own, siteStates }, settled, known, { silent, maySilence })
    const changes = changesOf({ own, siteStates }, wasDown, known.down)
    this.#recordEvents(record, changes)
    const isOut = group.memory.outOf(key)
    // The quorum logs its own decisions.
    const bySilence = changes.filter(({ address }) => wasOut.has(address) === isOut.has(address))
    logSilence(group.quorum, bareHost(rootHost), bySilence, silent)
    const isExporter = checkedKey === key || checkedKey === ''
    return {
      down: known.down,
      observed,
      exported: isExporter ? observed : [],
      nextMs: nextMs === Infinity ? undefined : nextMs,
    }
  }

  /** Stops the probes for a record, and forgets what was decided. */
  forget(key: string): void {
    this.#leaveGroup(key)
    this.#known.delete(key)
    this.#hosts.remove(key)
    this.#parts.probing?.forget(key)
  }

  close(): void {
    this.#stopChecks()
    this.#parts.probing?.close()
  }

  #downOf(
    { own, siteStates }: Pick<HealthFacts, 'own' | 'siteStates'>,
    { decisions }: Settled,
    { down: before }: Known,
    {
      silent,
      maySilence,
    }: {
      readonly silent: ReturnType<typeof findSilentSites>
      /** Whether silence removes addresses that were served before. */
      readonly maySilence: boolean
    },
  ): ReadonlyMap<string, string> {
    const down = new Map<string, string>()
    for (const [address, endpoints] of findForeign({ own, siteStates })) {
      const { outcome, by } = decisions.get(address) ?? { outcome: 'unknown', by: 'nothing' }
      const reason = before.get(address) ?? SILENT
      if (outcome === 'down') down.set(address, reason === SILENT ? REASONS[by] : reason)
      if (outcome === 'down' || outcome === 'up') continue
      const isSilent = endpoints.every(({ site }) => silent.has(site))
      if (isSilent && (before.has(address) || maySilence)) down.set(address, reason)
    }
    return down
  }

  #recordEvents(record: DnsRecordView, changes: readonly AddressChange[]): void {
    for (const { address, sites, isDown, reason } of changes) {
      const health = isDown ? `down: ${reason}` : 'up'
      const note = `${address} of ${sites.join(', ')} is ${health}`
      const change = isDown ? DOWN_EVENT : UP_EVENT
      this.#parts.events?.record(subjectOf(record), { ...change, action: 'Decide', note })
    }
  }

  /** Finds the quorum of a record's nameservers. The first time, it recalls what is written in the cluster. */
  #open({ publishing, followed, quorum, local, merged }: HealthFacts): Known {
    const { key } = publishing.record
    const { site, probing, clock } = this.#parts
    const id = followed.map((peer) => peer.id).join('\n')
    const before = this.#known.get(key)
    if (before?.group.id === id) return before
    const down = readDown(merged, site)
    const observed =
      before === undefined ? readObserved(local, site) : (probing?.observationsOf(key) ?? [])
    this.#leaveGroup(key)
    probing?.recall(key, observed)
    const group = this.#groups.get(id) ?? this.#openGroup(id, followed, quorum)
    group.keys.add(key)
    const wasDown = foundIn(down)
    if (wasDown.size > 0) group.memory.note(key, wasDown)
    const openedMs = clock.monotonic()
    const opened = { group, down, wasDown, openedMs, isCheckMissing: false }
    this.#known.set(key, opened)
    return opened
  }

  #earlierOf(key: string, { wasDown, openedMs, isCheckMissing }: Known): EarlierDecisions {
    const check = this.#parts.probing === undefined ? undefined : this.#hosts.checkOf(key)
    const earlier = earlierDecisions(wasDown, openedMs, check)
    return isCheckMissing ? { ...earlier, probedMs: Infinity } : earlier
  }

  #openGroup(id: string, peers: HealthFacts['followed'], quorum = this.#parts.quorum): Group {
    const { site, probing, holdDownMs, clock, log } = this.#parts
    const hosts = this.#hosts
    const memory = new QuorumMemory(clock)
    const observer = probing && {
      watch: (key: string, leaves: readonly Leaf[]) => hosts.watch(key, leaves),
      close: () => {},
    }
    const parts = { site, peers, quorum, holdDownMs, memory, observer, clock, log }
    const group = { id, memory, quorum: new HealthQuorum(parts), keys: new Set<string>() }
    this.#groups.set(id, group)
    return group
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

/** Addresses of peers that went down or up, except for those that are ours too: these are served in any case. */
function changesOf(
  facts: Pick<HealthFacts, 'own' | 'siteStates'>,
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly AddressChange[] {
  if (before.size + after.size === 0) return []
  const ours = new Set(listTargets(facts.own))
  return [...findForeign(facts)].flatMap(([address, endpoints]) => {
    if (before.has(address) === after.has(address) || ours.has(address)) return []
    const sites = [...new Set(endpoints.map(({ site }) => site))].sort()
    const isDown = after.has(address)
    return [{ address, sites, isDown, reason: (isDown ? after : before).get(address)! }]
  })
}

function logSilence(
  quorum: HealthQuorum,
  host: string,
  changes: readonly AddressChange[],
  silent: ReadonlyMap<string, string>,
): void {
  for (const { address, sites, isDown, reason } of changes) {
    if (reason !== SILENT) continue
    const answering = sites.filter((site) => !silent.has(site)).join(', ')
    const why = isDown
      ? [...new Set(sites.map((site) => silent.get(site)))].join(', ')
      : answering === ''
        ? 'a health check finds it up'
        : `its site ${answering} is no longer silent`
    quorum.report(`${address} of ${host}`, isDown, why)
  }
}

/** The addresses that checks found down. The silence of a site is no finding. */
function foundIn(down: ReadonlyMap<string, string>): ReadonlySet<string> {
  const found = [...down].filter(([, reason]) => reason !== SILENT)
  return new Set(found.map(([address]) => address))
}

function findingsOf({ down, up }: OwnHealth): ReadonlyMap<string, 'up' | 'down'> {
  const found = new Map<string, 'up' | 'down'>()
  for (const address of printProbed(down)) found.set(address, 'down')
  for (const address of printProbed(up)) found.set(address, 'up')
  return found
}
