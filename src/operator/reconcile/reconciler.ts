import type { Clock } from '../../base/clock.ts'
import { thisMoment } from '../../base/moment.ts'
import type { ApiObject } from '../../kube/api.ts'
import { bareHost } from '../../peering/peer-status.ts'
import { findSiteClocks } from '../../peering/site-clocks.ts'
import type { HostShare } from '../../records/host-share.ts'
import { type ApiClock, isWrong } from '../cluster/clock-check.ts'
import type { ClusterView } from '../cluster/cluster-view.ts'
import { findConflictsOf, findPartConflicts } from '../conflicts/find-in-cluster.ts'
import { describeNotOwned, withoutForeignNames } from '../conflicts/host-rights.ts'
import { authoritativeKey } from '../delegation/authoritative-record.ts'
import { planDecided, writeAuthoritative } from '../delegation/change-authoritative.ts'
import {
  clusterFacts,
  decidedOf,
  type FollowedClusters,
  NO_CLUSTERS,
} from '../delegation/cluster-health.ts'
import { composeOwnFacts, composeReport, markPartial } from '../delegation/contribution.ts'
import { noteHeard, printSilent } from '../delegation/heard-clusters.ts'
import type { KeyedMutex } from '../delegation/keyed-mutex.ts'
import type { Owners } from '../delegation/owner-index.ts'
import { planAnnounce } from '../delegation/plan-announce.ts'
import { planDelegate } from '../delegation/plan-delegate.ts'
import { planDepartures, planFinalize } from '../delegation/plan-finalize.ts'
import { planServe } from '../delegation/plan-serve.ts'
import { StatusWriteThrottle } from '../delegation/status-write-throttle.ts'
import { departedOwners, drainEndMs, type OwnedPart, readOwnedParts } from '../delegation/whole.ts'
import { type GroupDirectory, NO_GROUPS } from '../groups/group-set.ts'
import type { HealthFacts, PeerHealth } from '../peers/peer-health.ts'
import { PeerStateStore } from '../peers/peer-state-store.ts'
import type { PeerAnswer, PeerDirectory } from '../peers/peers.ts'
import { type DelegationRole, decide, type Publishing } from '../plan/decide.ts'
import { joinNotes, type Plan, planRefuse } from '../plan/plan.ts'
import {
  type Derived,
  planDisown,
  planHandOver,
  planPublish,
  planRemove,
} from '../plan/plan-publish.ts'
import { servedElsewhere } from '../plan/served-elsewhere.ts'
import type { Write, Writer } from '../plan/write.ts'
import { derivedName } from '../record/derived-name.ts'
import { listIgnored, noteIgnored } from '../record/ignored-parts.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { failedCondition, rivalCondition } from '../status/conditions.ts'
import { countTargets } from '../status/endpoint-counts.ts'
import { type PeersForm, scanPeers } from '../status/peer-status.ts'
import { recordHealth } from '../status/record-health.ts'
import { seedFromMerged } from '../status/seed-from-merged.ts'
import { NO_ZONES, type ServedZones } from '../zones/zone-watch.ts'
import { composeContent, NO_TROUBLES, type Troubles } from './compose-content.ts'
import { type RecordDeaths, siteAt } from './record-deaths.ts'
import { drainEndsInMs, type RequeueBounds, requeueAfterMs } from './requeue.ts'
import { SiteNames } from './site-faults.ts'

/** Receives the result of each reconcile. */
export interface ReconcileListener {
  /** A record of ours was reconciled. */
  reconciled(record: DnsRecordView, plan: Plan, troubles: Troubles): void
  /** Endpoints of these owners are removed from the authoritative record: their records are gone. */
  departed(authoritative: DnsRecordView, owners: readonly string[]): void
  /** A record was deleted, or is not ours. */
  forgot(key: string): void
}

export interface ReconcilerParts {
  readonly view: ClusterView
  readonly writer: Writer
  readonly peers: PeerDirectory
  readonly clock: Clock
  /** Missing = the clock of the API server is not known. */
  readonly apiClock?: Pick<ApiClock, 'fault'> | undefined
  readonly listener: ReconcileListener
  /** Undefined = what happens when a site dies is not logged. */
  readonly deaths?: RecordDeaths | undefined
  /** The name of this cluster among its peers. */
  readonly site: string
  readonly bounds: RequeueBounds
  /** How long a silent site keeps its addresses that no check finds up. */
  readonly silentMs: number
  /** Decides about the health of the addresses that peers report. */
  readonly peerHealth: Pick<PeerHealth, 'settle' | 'forget'>
  readonly peersForm: () => PeersForm
  /** Whether the installed definition has the fields of `TargetCounts`. */
  readonly hasCounts: () => boolean
  readonly role: DelegationRole
  /** Namespaces that may have hosts of others; missing = none. */
  readonly shares?: readonly HostShare[]
  /** False = this operator executes no health checks. */
  readonly isProbing: boolean
  /** How long the deletion of a record waits for other clusters. */
  readonly removalTimeoutMs: number
  /** Shared by all writers of authoritative records; by key. */
  readonly mutex: KeyedMutex
  readonly owners: Owners
  /** Missing = no other cluster delegates to this one. */
  readonly clusters?: FollowedClusters
  /** Undefined = this cluster belongs to no group. */
  readonly groups?: GroupDirectory
  /** Missing = nameservers are not asked for zones. */
  readonly zones?: ServedZones
}

/**
 * Reconciles DNSRecords:
 *
 *     record, Secret ─▶ decide ─▶ reports of the peers ─▶ merge ─▶ plan ─▶ writes, status last
 *
 * Level-based: it depends on the current state, never on events. A record is not written to if
 * nothing has changed since any operator last reconciled it.
 */
export class Reconciler {
  readonly #parts: ReconcilerParts
  readonly #groups: GroupDirectory
  readonly #zones: ServedZones
  readonly #peerStates = new PeerStateStore()
  readonly #siteNames: SiteNames
  readonly #throttle = new StatusWriteThrottle()
  readonly #startMs: number

  constructor(parts: ReconcilerParts) {
    this.#parts = parts
    this.#siteNames = new SiteNames(parts.site, parts.clock)
    this.#groups = parts.groups ?? NO_GROUPS
    this.#zones = parts.zones ?? NO_ZONES
    this.#startMs = parts.clock.monotonic()
  }

  /**
   * Reconciles the record `namespace/name`. Resolves to the time until the next reconcile, in
   * milliseconds; undefined = at the next event. Rejects if a write fails, which is to be retried.
   */
  async reconcile(key: string): Promise<number | undefined> {
    const { view, mutex } = this.#parts
    const record = view.record(key)
    const sharedKey = record === undefined ? undefined : sharedKeyOf(record)
    if (sharedKey === undefined) return this.#reconcile(key, record)
    // The view then contains what other writers have written meanwhile.
    return mutex.take(sharedKey, () => this.#reconcile(key, view.record(key)))
  }

  /** Reports in the status of the record why it can't be reconciled. */
  async reportFault(key: string, fault: string): Promise<void> {
    const { view, clock } = this.#parts
    const record = view.record(key)
    if (record === undefined || record.isDeleting) return
    await this.#carryOut(record, planRefuse(record, failedCondition(fault), clock.now()))
  }

  async #reconcile(key: string, record: DnsRecordView | undefined): Promise<number | undefined> {
    const { view, clock, role } = this.#parts
    if (record === undefined) return this.#forget(key)
    if (await this.#sweep(record)) return this.#reconcile(key, view.record(key))
    const action = decide(record, view.secretsOf(record.namespace), role)
    switch (action.kind) {
      case 'ignore':
        return this.#forget(key)
      case 'handOver':
        await this.#carryOut(record, planHandOver(record, this.#derivedOf(record)))
        return this.#forget(key)
      case 'remove':
        return this.#remove(record)
      case 'refuse':
        this.#leave(key)
        await this.#carryOut(record, planRefuse(record, action.condition, clock.now()))
        return undefined
      case 'announce':
        await this.#announce(record)
        return undefined
      case 'delegate':
        this.#leavePeers(key)
        return this.#delegate(action.publishing)
      case 'serve':
        return this.#serve(action.publishing)
      case 'publish': {
        const { publishing, texts } = this.#withoutForeign(action.publishing)
        if (texts.length > 0 && publishing.content.endpoints.length === 0)
          return this.#disown(record, texts)
        return this.#publish(publishing, texts)
      }
    }
  }

  /** Leaves out the names of other namespaces. `texts`: which ones, and why. */
  #withoutForeign(whole: Publishing): {
    readonly publishing: Publishing
    readonly texts: readonly string[]
  } {
    const { view, role, shares = [] } = this.#parts
    const { publishing, refused } = withoutForeignNames(whole, { view, role, shares })
    return { publishing, texts: describeNotOwned(refused, whole.content.namespace) }
  }

  /** All names of the record belong to other namespaces: removes what was published of it. */
  async #disown(record: DnsRecordView, notOwned: readonly string[]): Promise<undefined> {
    this.#leave(record.key)
    const plan = planDisown(record, this.#derivedOf(record), notOwned, this.#parts.clock.now())
    await this.#carryOut(record, plan, { ...NO_TROUBLES, notOwned })
  }

  async #publish(publishing: Publishing, notOwned: readonly string[]): Promise<number | undefined> {
    const { view, peers, clock, bounds, site, silentMs, isProbing } = this.#parts
    const { peersForm, hasCounts, peerHealth } = this.#parts
    const { record, rootHost, provider } = publishing
    const { key } = record
    const derived = this.#derivedOf(record)
    const followed = peers.peersFor(key, rootHost, provider)
    const addresses = followed.map(({ address }) => address)
    const membership = this.#groups.membershipOf(key, this.#groups.ownGroup, publishing)
    if (membership === 'pending') return undefined
    this.#open(publishing, derived, addresses)
    for (const peer of followed) {
      this.#peerStates.note(key, peer.address, withoutSite(peer.answerFor(rootHost), site))
    }
    const health = view.healthOf(key)
    const [nowMs, timeMs] = [clock.monotonic(), clock.now()]
    const known = this.#peerStates.read(key, addresses)
    const { content, troubles, siteStates, nextMs } = composeContent(publishing, {
      site,
      health,
      conflictsWith: (foreign) => findConflictsOf(publishing, this.#parts, foreign),
      notOwned,
      zone: this.#zones.stateOf(publishing),
      nameFaults: this.#siteNames.check(publishing, followed, view),
      elsewhere: servedElsewhere(publishing, this.#parts, timeMs),
      isProbing,
      membership,
      local: derived.local,
      addresses,
      peers: known,
      clocks: findSiteClocks(followed),
      isUndated: isWrong(this.#parts.apiClock),
      names: view.namesBeside(key, provider.zones),
      peersForm: peersForm(),
      hasCounts: hasCounts(),
      silentMs,
      decideHealth: (facts) => {
        return peerHealth.settle({ publishing, followed, health, ...derived, ...facts })
      },
      timeMs,
      nowMs,
    })
    const plan = planPublish(publishing, derived, content, timeMs)
    await this.#carryOut(record, plan, { ...troubles, notOwned })
    const records = () => this.#recordsOfHost(publishing)
    const sites = addresses.map((address) => siteAt(address, known))
    const isHeard = [...known.values()].some(({ state }) => state !== undefined)
    this.#parts.deaths?.note(publishing, { sites, isHeard, siteStates, records })
    return requeueAfterMs(nextMs === undefined ? undefined : nextMs - nowMs, bounds)
  }

  /** A record, and the others of this cluster that are published for its host. */
  #recordsOfHost(publishing: Publishing): readonly Publishing[] {
    const { view, role } = this.#parts
    const { record, rootHost } = publishing
    const host = bareHost(rootHost)
    const others = view.claimantsAt(host).flatMap((other): Publishing[] => {
      if (other.key === record.key) return []
      const action = decide(other, view.secretsOf(other.namespace), role)
      if (action.kind !== 'publish' || bareHost(action.publishing.rootHost) !== host) return []
      return [this.#withoutForeign(action.publishing).publishing]
    })
    return [publishing, ...others]
  }

  async #serve(whole: Publishing): Promise<number | undefined> {
    const { record } = whole
    const { view, writer, clock, hasCounts, bounds } = this.#parts
    this.#parts.peers.forget(record.key)
    this.#siteNames.forget(record.key)
    this.#groups.forget(record.key)
    const { nextMs, writes, note, peers } = this.#decideClusters(whole)
    for (const write of writes) await writer.write(write)
    if (writes.length > 0) return this.#reconcile(record.key, view.record(record.key))
    const { publishing, texts: notOwned } = this.#withoutForeign(whole)
    const found = findConflictsOf(publishing, this.#parts)
    const isWhole = found.isWhole || publishing.content.endpoints.length === 0
    const conflicts = { ...found, isWhole, texts: [...notOwned, ...found.texts] }
    const zone = this.#zones.stateOf(publishing)
    const facts = { conflicts, zone, hasCounts: hasCounts(), note, peers }
    const plan = planServe(whole, facts, clock.now())
    await this.#carryOut(record, plan, { ...NO_TROUBLES, notOwned, records: found.texts })
    return nextMs === undefined ? undefined : requeueAfterMs(nextMs - clock.monotonic(), bounds)
  }

  /** Decides about the addresses of other clusters in an authoritative record. */
  #decideClusters(whole: Publishing): {
    /** Monotonic milliseconds at which age changes the decision; undefined = never. */
    readonly nextMs: number | undefined
    readonly writes: readonly Write[]
    /** What has no room in the record; '' = nothing. */
    readonly note: string
    /** As in `ServeFacts`. */
    readonly peers: readonly ApiObject[] | undefined
  } {
    const { peerHealth, site, clock, clusters = NO_CLUSTERS, deaths, peersForm } = this.#parts
    const { record } = whole
    const [startMs, states] = [this.#startMs, this.#peerStates]
    const hearing = { ...this.#parts, clusters, states, startMs }
    const { heard, nextMs: reportMs } = noteHeard(record, hearing)
    const facts = clusterFacts(whole, { ...this.#parts, clusters, heard })
    if (facts === undefined) {
      peerHealth.forget(record.key)
      deaths?.forget(record.key)
      return { nextMs: undefined, writes: [], note: '', peers: undefined }
    }
    const { down, nextMs: ageMs = Infinity } = peerHealth.settle(facts)
    const timeMs = clock.now()
    const drainsMs = readOwnedParts(record).map((part) => drainEndMs(part) - timeMs)
    const endsMs = drainsMs.filter((ms) => ms > 0).map((ms) => clock.monotonic() + ms)
    const leastMs = Math.min(ageMs, reportMs, ...endsMs)
    const nextMs = leastMs === Infinity ? undefined : leastMs
    const peers = peersForm() === 'none' ? undefined : printSilent(heard)
    this.#noteDeaths(facts)
    const decide = (part: OwnedPart) => decidedOf(part, down, whole.rootHost)
    const plan = planDecided(record, decide, { site, timeMs })
    // Without the endpoints that have no room, their owners would add them again.
    const writes = plan.isWhole ? writeAuthoritative(record, record, plan) : []
    return { nextMs, writes, note: plan.note, peers }
  }

  #noteDeaths({ publishing, followed, siteStates }: HealthFacts): void {
    const sites = followed.map(({ ownSite }) => ownSite)
    const isHeard = followed.some(({ lastAnswerMs }) => lastAnswerMs !== -Infinity)
    const records = () => [publishing]
    this.#parts.deaths?.note(publishing, { sites, isHeard, siteStates, records })
  }

  async #delegate(publishing: Publishing): Promise<number | undefined> {
    const { view, clock, bounds, owners, site, isProbing, hasCounts } = this.#parts
    const { clusters = NO_CLUSTERS } = this.#parts
    const { record } = publishing
    const rival = owners.rivalOf(record)
    if (rival !== '') {
      const condition = rivalCondition(record.ownerId, rival)
      await this.#carryOut(record, planRefuse(record, condition, clock.now()))
      return requeueAfterMs(undefined, bounds)
    }
    const { texts: notOwned } = this.#withoutForeign(publishing)
    if (notOwned.length > 0) {
      const plan = planRefuse(record, failedCondition(notOwned.join('; ')), clock.now())
      await this.#carryOut(record, plan, { ...NO_TROUBLES, notOwned })
      return undefined
    }
    const membership = this.#groups.membershipOf(record.key, this.#groups.ownGroup, publishing)
    if (membership === 'pending') return undefined
    const health = view.healthOf(record.key)
    const findings = { health, isUndated: isWrong(this.#parts.apiClock) }
    const report = composeReport(record, site, findings)
    const timeMs = clock.now()
    const conflicts = findPartConflicts(record, site, this.#parts)
    const counts = { total: countTargets(record.endpoints), down: health.down }
    const ignored = [...listIgnored(record, publishing.content), ...conflicts.provisional]
    const authoritative = this.#authoritativeOf(record)
    const own = composeOwnFacts(publishing, site, findings)
    const facts = markPartial(own, record, authoritative, clusters)
    const delegation = {
      authoritative,
      membership,
      endpoints: record.endpoints,
      facts,
      site,
      report: report.text,
      conflicts,
      counts: hasCounts() ? counts : undefined,
      note: joinNotes(report.note, noteIgnored(ignored)),
      healthy: recordHealth(record, health.probes, isProbing),
      cluster: '',
    }
    const plan = planDelegate(publishing, delegation, timeMs)
    const waitMs = this.#throttle.waitMs(record, plan, clock.monotonic())
    const troubles = { ...NO_TROUBLES, records: conflicts.texts, ignored }
    await this.#carryOut(record, waitMs > 0 ? { ...plan, writes: [] } : plan, troubles)
    const nextMs = facts.isPartial ? bounds.minMs : drainEndsInMs(record, timeMs)
    return requeueAfterMs(waitMs > 0 ? waitMs : nextMs, bounds)
  }

  /** Removes endpoints from an authoritative record whose delegating records are gone; true = some. */
  async #sweep(authoritative: DnsRecordView): Promise<boolean> {
    const { role, owners, listener, writer, clock } = this.#parts
    if (authoritative.role !== 'authoritative' || role !== 'primary') return false
    const departed = authoritative.isDeleting ? [] : departedOwners(authoritative, owners)
    if (departed.length === 0) return false
    listener.departed(authoritative, departed)
    for (const write of planDepartures(authoritative, departed, clock.now()))
      await writer.write(write)
    return true
  }

  async #announce(record: DnsRecordView): Promise<void> {
    const { view, clock, site, isProbing, hasCounts } = this.#parts
    const health = view.healthOf(record.key)
    const isUndated = isWrong(this.#parts.apiClock)
    const report = composeReport(record, site, { health, isUndated }).text
    const counts = hasCounts() ? { down: health.down } : undefined
    const about = { group: this.#groups.ownGroup, report, counts }
    const healthy = recordHealth(record, health.probes, isProbing)
    await this.#carryOut(record, planAnnounce(record, healthy, about, clock.now()))
  }

  async #remove(record: DnsRecordView): Promise<number | undefined> {
    const { clock, removalTimeoutMs, bounds, owners } = this.#parts
    const nowMs = clock.now()
    if (record.role !== 'delegating') {
      await this.#carryOut(record, planRemove(record, this.#derivedOf(record), nowMs))
      return this.#forget(record.key)
    }
    // The registry notes of an owner id with a rival belong to the rival.
    const hasRival = owners.rivalOf(record) !== ''
    const authoritative = hasRival ? undefined : this.#authoritativeOf(record)
    const plan = planFinalize(record, authoritative, removalTimeoutMs, nowMs)
    await this.#carryOut(record, plan)
    if (plan.againMs === undefined) return this.#forget(record.key)
    return requeueAfterMs(plan.againMs, bounds)
  }

  /** Loads the reports of peers from before the first reconcile of the record. */
  #open({ record, rootHost }: Publishing, { merged }: Derived, addresses: readonly string[]): void {
    if (this.#peerStates.has(record.key)) return
    const { clock } = this.#parts
    const { peers } = record.status
    const states =
      peers === undefined && merged !== undefined
        ? seedFromMerged(merged, rootHost, addresses, thisMoment(clock))
        : scanPeers(peers, rootHost, clock)
    this.#peerStates.open(record.key, states)
  }

  async #carryOut(
    record: DnsRecordView,
    plan: Plan,
    troubles: Troubles = NO_TROUBLES,
  ): Promise<void> {
    for (const write of plan.writes) await this.#parts.writer.write(write)
    this.#parts.listener.reconciled(record, plan, troubles)
  }

  #derivedOf({ namespace, name }: DnsRecordView): Derived {
    const find = (kind: 'local' | 'merged') =>
      this.#parts.view.record(`${namespace}/${derivedName(kind, name)}`)
    return { local: find('local'), merged: find('merged') }
  }

  #authoritativeOf(record: DnsRecordView): DnsRecordView | undefined {
    return this.#parts.view.record(authoritativeKey(record))
  }

  /**
   * Releases the peers of a record that is not published. Their reports are kept in its status, and
   * are read from there when it is published again. As after a restart, peers that were live then
   * count as seen at that time.
   */
  #leavePeers(key: string): void {
    this.#leaveNameservers(key)
    this.#parts.peerHealth.forget(key)
  }

  #leaveNameservers(key: string): void {
    this.#peerStates.forget(key)
    this.#siteNames.forget(key)
    this.#parts.peers.forget(key)
  }

  #leave(key: string): void {
    this.#leavePeers(key)
    this.#groups.forget(key)
    this.#zones.forget(key)
  }

  #forget(key: string): undefined {
    this.#leave(key)
    this.#throttle.forget(key)
    this.#parts.listener.forgot(key)
    this.#parts.deaths?.forget(key)
    return undefined
  }
}

/**
 * A peer's report without the endpoints of `site` that it repeats. They are no news, and storing
 * them would cause a write for each of our own changes.
 */
function withoutSite(answer: PeerAnswer, site: string): PeerAnswer {
  if (answer.kind === 'pending' || answer.state === undefined) return answer
  const siteStates = answer.state.siteStates.filter((siteState) => siteState.site !== site)
  return { ...answer, state: { ...answer.state, siteStates } }
}

/** Key of the authoritative record that a reconcile of `record` may write to. */
function sharedKeyOf(record: DnsRecordView): string | undefined {
  if (record.role === 'authoritative') return record.key
  return record.role === 'delegating' ? authoritativeKey(record) : undefined
}
