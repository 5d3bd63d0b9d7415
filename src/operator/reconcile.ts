import type { Clock } from '../base/clock.ts'
import { type ApiObject, textOf } from '../kube/api.ts'
import type { SharedEndpoint, SiteShare } from '../peering/shared-endpoint.ts'
import { adoptMerged } from './adopt.ts'
import { healthyCondition } from './conditions.ts'
import { derivedName } from './derived-name.ts'
import { printShared } from './endpoint-text.ts'
import { judge, type Publishing } from './judge.ts'
import { keyOf, mappingOf, metadataOf } from './object.ts'
import { composeOwn, type OwnHealth } from './own.ts'
import { printPeers, scanPeers } from './peer-status.ts'
import type { Peer, PeerDirectory } from './peers.ts'
import {
  type Derived,
  type Plan,
  planHandOver,
  planPublish,
  planRefuse,
  planRemove,
} from './plan.ts'
import type { ProviderSecrets } from './provider-choice.ts'
import { nextLookMs, type RequeueBounds } from './requeue.ts'
import { type Remembered, ShareBook } from './share-book.ts'
import type { Writer } from './write.ts'

/** The cluster as it is known, our own writes included. */
export interface ClusterView {
  /** The DNSRecord `namespace/name`. */
  record(key: string): ApiObject | undefined
  secretsOf(namespace: string): ProviderSecrets
  /** What is known of the health of a record's own addresses. */
  healthOf(key: string): OwnHealth
}

/** What all sites together say of a host. */
export interface Merged {
  /** Those to serve, in an order that depends on nothing but them. */
  readonly endpoints: readonly SharedEndpoint[]
  /** Disagreements of sites, a sentence each. */
  readonly conflicts: readonly string[]
}

export type Merge = (
  own: readonly SharedEndpoint[],
  shares: readonly SiteShare[],
  nowMs: number,
  expiryMs: number,
) => Merged

/** Wants to know what became of a record. */
export interface Listener {
  /** A record of ours was looked at. */
  looked(record: ApiObject, plan: Plan, conflicts: readonly string[]): void
  /** A record is gone, or not ours. */
  forgot(key: string): void
}

export interface ReconcilerParts {
  readonly view: ClusterView
  readonly writer: Writer
  readonly peers: PeerDirectory
  readonly merge: Merge
  readonly clock: Clock
  readonly listener: Listener
  /** Who we are to our peers. */
  readonly site: string
  readonly bounds: RequeueBounds
  /** How long a silent peer's endpoints are kept. */
  readonly expiryMs: number
  /** Aborted when the operator ends: questions under way are given up. */
  readonly signal: AbortSignal
}

/** Questions to peers that were put so recently, as a part of the lower bound between looks, aren't put again. */
const FRESH_PART = 0.5

/** What is remembered of a record between two looks. */
interface Memory {
  quietLooks: number
  /** Monotonic clock. */
  askedMs: number
}

/**
 * Brings one DNSRecord after another to where it should be:
 *
 *     record, Secret ─▶ judge ─▶ ask peers, all at once ─▶ shares ─▶ merge ─▶ plan ─▶ writes, status last
 *
 * Level-based: it looks at what is there, and never at what happened. A record of which nothing changed since an
 * operator, this one or another, looked at it is not written to.
 */
export class Reconciler {
  readonly #parts: ReconcilerParts
  readonly #book = new ShareBook()
  readonly #memories = new Map<string, Memory>()
  readonly #startMs: number

  constructor(parts: ReconcilerParts) {
    this.#parts = parts
    this.#startMs = parts.clock.now()
  }

  /**
   * Looks at the record `namespace/name`. Resolves to when to look again, in milliseconds; undefined = when something
   * happens. Rejects where a write failed: it is to be tried again.
   */
  async reconcile(key: string): Promise<number | undefined> {
    const { view, clock } = this.#parts
    const object = view.record(key)
    if (object === undefined) return this.#forget(key)
    const verdict = judge(object, view.secretsOf(namespaceOf(object)))
    switch (verdict.kind) {
      case 'ignore':
      case 'delegate':
        return this.#forget(key)
      case 'handOver':
        await this.#carryOut(object, planHandOver(object, this.#derivedOf(object)))
        return this.#forget(key)
      case 'remove':
        await this.#carryOut(object, planRemove(object, this.#derivedOf(object), clock.now()))
        return this.#forget(key)
      case 'refuse':
        await this.#carryOut(object, planRefuse(object, verdict.condition, clock.now()))
        return undefined
      case 'publish':
        return this.#publish(key, verdict.publishing)
    }
  }

  /** True if a look at the record asks, or has asked, about that host: for peers that tell of changes. */
  forgetAnswers(key: string): void {
    const memory = this.#memories.get(key)
    if (memory !== undefined) memory.askedMs = Number.NEGATIVE_INFINITY
  }

  async #publish(key: string, publishing: Publishing): Promise<number | undefined> {
    const { view, peers: directory, clock } = this.#parts
    const peers = directory.peersOf(publishing.provider)
    this.#open(key, publishing, peers)
    await this.#ask(key, publishing, peers)
    // While peers were asked it may have changed: then it is looked at anew, right away.
    if (view.record(key) !== publishing.object) return 0
    const remembered = this.#book.read(
      key,
      peers.map(({ address }) => address),
    )
    const nowMs = clock.now()
    const { plan, conflicts, lowestTtlSeconds } = this.#plan(publishing, peers, remembered, nowMs)
    await this.#carryOut(publishing.object, plan, conflicts)
    const memory = this.#memoryOf(key)
    memory.quietLooks = plan.isNews ? 0 : memory.quietLooks + 1
    const state = {
      isPolling: peers.some((peer) => !peer.isFollowed),
      quietLooks: memory.quietLooks,
      ttlSeconds: lowestTtlSeconds,
      expiresInMs: this.#expiresInMs(remembered, nowMs),
    }
    return nextLookMs(state, this.#parts.bounds)
  }

  #open(key: string, { object, rootHost }: Publishing, peers: readonly Peer[]): void {
    if (this.#book.has(key)) return
    const said = mappingOf(object, 'status').peers
    const page = scanPeers(said, rootHost, this.#startMs)
    const { merged } = this.#derivedOf(object)
    const isNew = said === undefined && merged !== undefined
    const nameless = isNew ? adoptMerged(merged, rootHost, peers, this.#startMs) : new Map()
    this.#book.open(key, isNew ? nameless : page)
  }

  /** Asks all peers at once, but not those that were asked just now. */
  async #ask(key: string, { rootHost }: Publishing, peers: readonly Peer[]): Promise<void> {
    const { clock, bounds, signal } = this.#parts
    const memory = this.#memoryOf(key)
    const isFresh = clock.monotonic() - memory.askedMs < bounds.minMs * FRESH_PART
    const asked = peers.filter((peer) => peer.isFollowed || !isFresh)
    const answers = await Promise.all(asked.map((peer) => peer.look(rootHost, signal)))
    if (!isFresh) memory.askedMs = clock.monotonic()
    const nowMs = clock.now()
    for (const [i, peer] of asked.entries()) {
      this.#book.note(key, peer.address, answers[i]!, nowMs)
    }
  }

  #plan(
    publishing: Publishing,
    peers: readonly Peer[],
    remembered: ReadonlyMap<string, Remembered>,
    nowMs: number,
  ): { plan: Plan; conflicts: readonly string[]; lowestTtlSeconds: number | undefined } {
    const { view, merge, site, expiryMs } = this.#parts
    const { object } = publishing
    const derived = this.#derivedOf(object)
    const health = view.healthOf(keyOf(object))
    const own = composeOwn(publishing, { site, health, before: derived.local, nowMs })
    const shares = [...remembered.values()].flatMap((page) => page.shares)
    // What our own nameserver repeats of us is no news, and may be out of date.
    const others = shares.filter((share) => share.site !== site)
    const { endpoints, conflicts } = merge(own.shared, others, nowMs, expiryMs)
    const content = {
      local: own.local,
      merged: endpoints.map(printShared),
      peers: printPeers(peers, remembered),
      healthy: healthyCondition(health.probes),
      note: noteOf(peers, remembered),
    }
    const ttls = endpoints.map(({ ttlSeconds }) => ttlSeconds)
    return {
      plan: planPublish(publishing, derived, content, nowMs),
      conflicts,
      lowestTtlSeconds: ttls.length === 0 ? undefined : Math.min(...ttls),
    }
  }

  async #carryOut(object: ApiObject, plan: Plan, conflicts: readonly string[] = []): Promise<void> {
    for (const write of plan.writes) await this.#parts.writer.write(write)
    this.#parts.listener.looked(object, plan, conflicts)
  }

  #derivedOf(object: ApiObject): Derived {
    const { view } = this.#parts
    const namespace = namespaceOf(object)
    const name = textOf(metadataOf(object), 'name')
    const find = (kind: 'local' | 'merged') =>
      view.record(`${namespace}/${derivedName(kind, name)}`)
    return { local: find('local'), merged: find('merged') }
  }

  /** Until the next share of a silent peer runs out. */
  #expiresInMs(remembered: ReadonlyMap<string, Remembered>, nowMs: number): number | undefined {
    const left = [...remembered.values()]
      .filter(({ reason, shares }) => reason !== '' && shares.some((s) => s.endpoints.length > 0))
      .map(({ seenMs }) => (seenMs ?? 0) + this.#parts.expiryMs - nowMs)
      .filter((ms) => ms > 0)
    return left.length === 0 ? undefined : Math.min(...left)
  }

  #memoryOf(key: string): Memory {
    const known = this.#memories.get(key)
    if (known !== undefined) return known
    const memory = { quietLooks: 0, askedMs: Number.NEGATIVE_INFINITY }
    this.#memories.set(key, memory)
    return memory
  }

  #forget(key: string): undefined {
    this.#book.forget(key)
    this.#memories.delete(key)
    this.#parts.listener.forgot(key)
    return undefined
  }
}

function namespaceOf(object: ApiObject): string {
  return textOf(metadataOf(object), 'namespace')
}

/** `1 of 3 nameservers is silent: 192.0.2.1:53`; '' where none is. */
function noteOf(peers: readonly Peer[], remembered: ReadonlyMap<string, Remembered>): string {
  const silent = peers
    .map(({ address }) => address)
    .filter((address) => (remembered.get(address)?.reason ?? '') !== '')
  if (silent.length === 0) return ''
  const verb = silent.length === 1 ? 'is' : 'are'
  return `${silent.length} of ${peers.length} nameservers ${verb} silent: ${silent.join(', ')}`
}
