import type { Clock } from '../../base/clock.ts'
import { thisMoment } from '../../base/moment.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { keyOf } from '../../kube/object-key.ts'
import type { LeftOut } from '../../peering/merge/cut-to-fit.ts'
import { dropDown } from '../../peering/merge/health.ts'
import { mergeSiteStates } from '../../peering/merge/merge-site-states.ts'
import type { MergeConflict } from '../../peering/merge/merged-endpoint.ts'
import { downTargets, sortUnique } from '../../peering/to-peer-endpoint.ts'
import { type OwnNames, screenSiteStates } from '../../peering/trust/screen-site-states.ts'
import { authoritativeKey } from '../delegation/authoritative-record.ts'
import { composeContribution } from '../delegation/contribution.ts'
import type { KeyedMutex } from '../delegation/keyed-mutex.ts'
import type { Owners } from '../delegation/owner-index.ts'
import { planAnnounce } from '../delegation/plan-announce.ts'
import { planServe } from '../delegation/plan-serve.ts'
import { planDelegate, planFinalize } from '../delegation/plan-source.ts'
import { StatusWriteThrottle } from '../delegation/status-write-throttle.ts'
import { type KnownPeers, PeerStateStore } from '../peers/peer-state-store.ts'
import type { PeerAnswer, PeerDirectory } from '../peers/peers.ts'
import {
  type DelegationRole,
  decide,
  isAuthoritative,
  isDelegating,
  type Publishing,
} from '../plan/decide.ts'
import { localHostOf, roomForOthers } from '../plan/desired.ts'
import { composeOwn, type OwnHealth } from '../plan/own.ts'
import {
  type Derived,
  joinNotes,
  type Plan,
  planHandOver,
  planPublish,
  planRefuse,
  planRemove,
} from '../plan/plan.ts'
import type { Writer } from '../plan/write.ts'
import type { ProviderSecrets } from '../provider/provider-choice.ts'
import { derivedName } from '../record/derived-name.ts'
import { printSpecEndpoint } from '../record/endpoint-text.ts'
import { isDeleting, mappingOf, metadataOf } from '../record/object.ts'
import {
  acceptedCondition,
  failedCondition,
  healthyCondition,
  rivalCondition,
} from '../status/conditions.ts'
import { type PeersForm, printPeers, scanPeers } from '../status/peer-status.ts'
import { seedFromMerged } from '../status/seed-from-merged.ts'
import { ownerIdOf } from '../status/status.ts'
import { type RequeueBounds, requeueAfterMs } from './requeue.ts'

/** The known state of the cluster, including our own writes. */
export interface ClusterView {
  /** The DNSRecord `namespace/name`. */
  record(key: string): ApiObject | undefined
  secretsOf(namespace: string): ProviderSecrets
  /** Known health of a record's own addresses. */
  healthOf(key: string): OwnHealth
  /** Names of all other records. `zones`: apexes of the record's provider. */
  namesBeside(key: string, zones: readonly string[]): OwnNames
}

/** Endpoints of several sites that are not served, with the reasons. */
export interface Troubles {
  readonly conflicts: readonly MergeConflict[]
  /** Endpoints that do not fit; `conflicts` lists them too. */
  readonly leftOut: readonly LeftOut[]
  /**
   * Reports of peers that are not valid endpoints, or that the peer may not send; one line each.
   */
  readonly refused: readonly string[]
}

const NO_TROUBLES: Troubles = { conflicts: [], leftOut: [], refused: [] }

/** Receives the result of each reconcile. */
export interface ReconcileListener {
  /** A record of ours was reconciled. */
  reconciled(record: ApiObject, plan: Plan, troubles: Troubles): void
  /** A record was deleted, or is not ours. */
  forgot(key: string): void
}

export interface ReconcilerParts {
  readonly view: ClusterView
  readonly writer: Writer
  readonly peers: PeerDirectory
  readonly clock: Clock
  readonly listener: ReconcileListener
  /** The name of this cluster among its peers. */
  readonly site: string
  readonly bounds: RequeueBounds
  /** How long the endpoints of a silent peer are kept. */
  readonly expiryMs: number
  readonly peersForm: () => PeersForm
  readonly role: DelegationRole
  /** How long the deletion of a record waits for other clusters. */
  readonly removalTimeoutMs: number
  /** Shared by all writers of authoritative records; by key. */
  readonly mutex: KeyedMutex
  readonly owners: Owners
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
  readonly #index = new PeerStateStore()
  readonly #owners = new StatusWriteThrottle()

  constructor(parts: ReconcilerParts) {
    this.#parts = parts
  }

  /**
   * Reconciles the record `namespace/name`. Resolves to the time until the next reconcile, in
   * milliseconds; undefined = at the next event. Rejects if a write fails, which is to be retried.
   */
  async reconcile(key: string): Promise<number | undefined> {
    const object = this.#parts.view.record(key)
    const shared = object === undefined ? undefined : sharedKeyOf(key, object)
    if (shared === undefined) return this.#reconcile(key)
    return this.#parts.mutex.take(shared, () => this.#reconcile(key))
  }

  /** The view contains what other writers have written meanwhile. */
  async #reconcile(key: string): Promise<number | undefined> {
    const { view, clock, role } = this.#parts
    const object = view.record(key)
    if (object === undefined) return this.#forget(key)
    const verdict = decide(object, view.secretsOf(namespaceOf(object)), role)
    switch (verdict.kind) {
      case 'ignore':
        return this.#forget(key)
      case 'handOver':
        await this.#carryOut(object, planHandOver(object, this.#derivedOf(object)))
        return this.#forget(key)
      case 'remove':
        return this.#remove(key, object)
      case 'refuse':
        this.#leavePeers(key)
        await this.#carryOut(object, planRefuse(object, verdict.condition, clock.now()))
        return undefined
      case 'announce':
        await this.#announce(key, object)
        return undefined
      case 'delegate':
        this.#leavePeers(key)
        return this.#delegate(key, verdict.publishing)
      case 'serve':
        this.#leavePeers(key)
        await this.#carryOut(object, planServe(verdict.publishing, clock.now()))
        return undefined
      case 'publish':
        return this.#publish(key, verdict.publishing)
    }
  }

  /** Reports in the status of the record why it can't be reconciled. */
  async reportFault(key: string, fault: string): Promise<void> {
    const { view, clock } = this.#parts
    const object = view.record(key)
    if (object === undefined || isDeleting(object)) return
    await this.#carryOut(object, planRefuse(object, failedCondition(fault), clock.now()))
  }

  async #publish(key: string, publishing: Publishing): Promise<number> {
    const { peers: directory, clock, bounds, site } = this.#parts
    const { rootHost, provider } = publishing
    const peers = directory.peersFor(key, rootHost, provider)
    const addresses = peers.map(({ address }) => address)
    this.#open(key, publishing, addresses)
    for (const peer of peers) {
      this.#index.note(key, peer.address, withoutSite(peer.answerFor(rootHost), site))
    }
    const known = this.#index.read(key, addresses)
    const nowMs = clock.monotonic()
    const { plan, troubles, nextExpiryMs } = this.#plan(publishing, addresses, known, nowMs)
    await this.#carryOut(publishing.object, plan, troubles)
    return requeueAfterMs(nextExpiryMs === undefined ? undefined : nextExpiryMs - nowMs, bounds)
  }

  async #delegate(key: string, publishing: Publishing): Promise<number> {
    const { view, clock, bounds, owners } = this.#parts
    const { object } = publishing
    const rival = owners.rivalOf(object)
    if (rival !== '') {
      const condition = rivalCondition(ownerIdOf(object), rival)
      await this.#carryOut(object, planRefuse(object, condition, clock.now()))
      return requeueAfterMs(undefined, bounds)
    }
    const health = view.healthOf(key)
    const content = {
      authoritative: this.#authoritativeOf(object),
      endpoints: composeContribution(publishing, health.down),
      healthy: healthyCondition(health.probes),
      cluster: '',
    }
    const plan = planDelegate(publishing, content, clock.now())
    const waitMs = this.#owners.judge(key, object, plan, clock.monotonic())
    await this.#carryOut(object, waitMs > 0 ? { ...plan, writes: [] } : plan)
    return requeueAfterMs(waitMs > 0 ? waitMs : undefined, bounds)
  }

  async #announce(key: string, object: ApiObject): Promise<void> {
    const { view, clock } = this.#parts
    const healthy = healthyCondition(view.healthOf(key).probes)
    await this.#carryOut(object, planAnnounce(object, healthy, clock.now()))
  }

  async #remove(key: string, object: ApiObject): Promise<number | undefined> {
    const { clock, removalTimeoutMs, bounds, owners } = this.#parts
    const nowMs = clock.now()
    if (!isDelegating(object)) {
      await this.#carryOut(object, planRemove(object, this.#derivedOf(object), nowMs))
      return this.#forget(key)
    }
    // The notes of its owner id belong to the rival.
    const hasRival = owners.rivalOf(object) !== ''
    const authoritative = hasRival ? undefined : this.#authoritativeOf(object)
    const plan = planFinalize(object, authoritative, removalTimeoutMs, nowMs)
    await this.#carryOut(object, plan)
    if (plan.againMs === undefined) return this.#forget(key)
    return requeueAfterMs(plan.againMs, bounds)
  }

  /** Loads the reports of peers from before the first reconcile of the record. */
  #open(key: string, { object, rootHost }: Publishing, addresses: readonly string[]): void {
    if (this.#index.has(key)) return
    const said = mappingOf(object, 'status').peers
    const { merged } = this.#derivedOf(object)
    const { clock } = this.#parts
    const page =
      said === undefined && merged !== undefined
        ? seedFromMerged(merged, rootHost, addresses, thisMoment(clock))
        : scanPeers(said, rootHost, clock)
    this.#index.open(key, page)
  }

  #plan(
    publishing: Publishing,
    addresses: readonly string[],
    known: ReadonlyMap<string, KnownPeers>,
    /** Monotonic. */
    nowMs: number,
  ): { plan: Plan; troubles: Troubles; nextExpiryMs: number | undefined } {
    const { view, site, expiryMs, peersForm, clock } = this.#parts
    const timeMs = clock.now()
    const derived = this.#derivedOf(publishing.object)
    const key = keyOf(publishing.object)
    const health = view.healthOf(key)
    const own = composeOwn(publishing, { site, health, before: derived.local, nowMs: timeMs })
    const { zones, rules } = publishing.provider
    const screened = screenSiteStates(
      [...known.values()].flatMap((page) => page.word?.siteStates ?? []),
      { names: view.namesBeside(key, zones), own: own.shared, rulesOf: () => rules },
    )
    const roomOctets = roomForOthers(publishing.object, own.shared)
    const down = downTargets(health.down)
    const ours = { site, endpoints: own.shared, roomOctets, down }
    const form = peersForm()
    const merge = mergeSiteStates(ours, screened.siteStates, nowMs, expiryMs)
    const refused = [
      ...listRefused(known),
      ...screened.refused.map(({ peer, text }) => `peer ${peer}: refused: ${text}`),
    ]
    const disputes = [...merge.conflicts.map(({ text }) => text), ...refused]
    const content = {
      local: own.local,
      merged: dropDown(merge.endpoints).map(printSpecEndpoint),
      peers: form === 'none' ? undefined : printPeers(addresses, known, { form, roomOctets }),
      healthy: healthyCondition(health.probes),
      accepted: acceptedCondition(disputes, merge.conflicts.length > 0),
      note: joinNotes(
        noteSilence(addresses, known),
        noteLeftOut(merge.leftOut),
        localHostOf(publishing.rootHost) === undefined ? '' : noteUnexportable(own.unexportable),
      ),
    }
    const plan = planPublish(publishing, derived, content, timeMs)
    const { conflicts, leftOut, nextExpiryMs } = merge
    return {
      plan,
      troubles: { conflicts, leftOut, refused },
      nextExpiryMs,
    }
  }

  async #carryOut(object: ApiObject, plan: Plan, troubles: Troubles = NO_TROUBLES): Promise<void> {
    for (const write of plan.writes) await this.#parts.writer.write(write)
    this.#parts.listener.reconciled(object, plan, troubles)
  }

  #derivedOf(object: ApiObject): Derived {
    const { view } = this.#parts
    const namespace = namespaceOf(object)
    const name = textOf(metadataOf(object), 'name')
    const find = (kind: 'local' | 'merged') =>
      view.record(`${namespace}/${derivedName(kind, name)}`)
    return { local: find('local'), merged: find('merged') }
  }

  #authoritativeOf(object: ApiObject): ApiObject | undefined {
    return this.#parts.view.record(authoritativeKey(object))
  }

  /**
   * Releases the peers of a record that is not published. Their reports are kept in its status, and
   * are read from there when it is published again. As after a restart, peers that were live then
   * count as seen at that time.
   */
  #leavePeers(key: string): void {
    this.#index.forget(key)
    this.#parts.peers.forget(key)
  }

  #forget(key: string): undefined {
    this.#leavePeers(key)
    this.#owners.forget(key)
    this.#parts.listener.forgot(key)
    return undefined
  }
}

function namespaceOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'namespace')
}

/**
 * A peer's report without the endpoints of `site` that it repeats. They are no news, and storing
 * them would cause a write for each of our own changes.
 */
function withoutSite(answer: PeerAnswer, site: string): PeerAnswer {
  if (answer.kind === 'pending' || answer.word === undefined) return answer
  const siteStates = answer.word.siteStates.filter((siteState) => siteState.site !== site)
  return { ...answer, word: { ...answer.word, siteStates: siteStates } }
}

/** `1 of 3 nameservers is silent: 192.0.2.1:53`; '' = none is silent. */
function noteSilence(addresses: readonly string[], known: ReadonlyMap<string, KnownPeers>): string {
  const silent = addresses.filter((address) => (known.get(address)?.reason ?? '') !== '')
  if (silent.length === 0) return ''
  const verb = silent.length === 1 ? 'is' : 'are'
  return `${silent.length} of ${addresses.length} nameservers ${verb} silent: ${silent.join(', ')}`
}

/** Without numbers: values that change by themselves cause writes. */
function noteLeftOut(leftOut: readonly LeftOut[]): string {
  if (leftOut.length === 0) return ''
  const sites = sortUnique(leftOut.map(({ site }) => site))
  return `there is no room for all endpoints of ${sites.join(', ')}: some are left out`
}

function noteUnexportable(unexportable: number): string {
  if (unexportable === 0) return ''
  return `${unexportable} of its endpoints are not exported to other sites in full: they or its host are too long`
}

function listRefused(known: ReadonlyMap<string, KnownPeers>): string[] {
  return [...known].flatMap(([address, { word }]) =>
    (word?.problems ?? []).map((problem) => `peer ${address}: ${problem}`),
  )
}

/** Key of the authoritative record that a reconcile of `object` may write to. */
function sharedKeyOf(key: string, object: ApiObject): string | undefined {
  if (isAuthoritative(object)) return key
  return isDelegating(object) ? authoritativeKey(object) : undefined
}
