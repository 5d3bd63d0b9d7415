import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { printHostPort } from '../../dns/host-port.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { TokenBucket } from '../../kube/token-bucket.ts'
import { NOTIFY_GAP_MS, type PeerFollower } from '../../peering/peer.ts'
import { joinStatuses, type PeerStatus, wasHeard } from '../../peering/peer-status.ts'
import type { SiteObservation } from '../../peering/quorum/observation-codec.ts'
import type { NotifySource } from '../notify/notify-receiver.ts'
import type { HastenOutcome } from '../notify/outcome.ts'
import { keyIdOf } from '../provider/key-id.ts'
import type { Nameserver } from '../provider/nameserver.ts'
import type { Provider } from '../provider/provider-secret.ts'
import type { OperatorPeer, PeerAnswer, PeerDirectory, PeerState } from './peers.ts'

/**
 * A peer that was heard within this time does not count as silent. One lost packet is no outage,
 * and reporting it causes writes.
 */
const SILENT_AFTER_MS = 30_000

/** Returns the silence after which a peer is reported as silent, if its endpoints are kept for `expiryMs`. */
export function reportedAfterMs(expiryMs: number): number {
  return Math.min(SILENT_AFTER_MS, expiryMs / 2)
}

const CHECK_MS = 1000
/** Polls that NOTIFYs cause, for all peers together: at once, and per second. */
const HASTENED_MAX = 100

/** The part of a PeerFollower that is used here. */
export type PeerFollowerView = Pick<
  PeerFollower,
  | 'start'
  | 'close'
  | 'notify'
  | 'isAt'
  | 'want'
  | 'forget'
  | 'subscribe'
  | 'siteStatesOf'
  | 'observationsOf'
  | 'observationCount'
  | 'ownSite'
  | 'clockAheadMs'
  | 'sites'
  | 'lastAnswerMs'
  | 'problemsOf'
  | 'hasAnsweredFor'
  | 'generation'
  | 'lastSeenMs'
  | 'lastSeenTimeMs'
  | 'serial'
  | 'error'
  | 'status'
>

interface PeerSetParts {
  readonly follow: (nameserver: Nameserver, key: TsigKey | undefined) => PeerFollowerView
  /** A peer has new data for that record, or has become silent or live. */
  readonly onEvent: (key: string) => void
  /**
   * How long the endpoints of a silent peer are kept. The peer is reported as silent before this
   * time is over, and as live again afterwards.
   */
  readonly expiryMs: number
  readonly clock: Clock
  readonly timers: Timers
}

/** Whether a peer is live. */
type Presence = 'new' | 'live' | 'silent'

/** All peers of all providers. Each is followed once, while at least one record needs it. */
export class PeerSet implements PeerDirectory {
  readonly #parts: PeerSetParts
  readonly #entries = new Map<string, FollowedPeer>()
  readonly #byRecord = new Map<string, readonly FollowedPeer[]>()
  readonly #hastened: TokenBucket
  readonly #stopChecks: () => void

  constructor(parts: PeerSetParts) {
    this.#parts = parts
    this.#hastened = new TokenBucket(parts.clock, HASTENED_MAX, 1000 / HASTENED_MAX)
    this.#stopChecks = parts.timers.every(CHECK_MS, () => this.#check())
  }

  peersFor(key: string, rootHost: string, provider: Provider): readonly OperatorPeer[] {
    const { nameservers, tsigKey } = provider
    const before = this.#byRecord.get(key) ?? []
    const peers = nameservers.map((nameserver) => this.#follow(nameserver, tsigKey))
    for (const peer of peers) peer.attach(key, rootHost)
    this.#byRecord.set(key, peers)
    for (const peer of before) if (!peers.includes(peer)) this.#detach(peer, key)
    return peers
  }

  forget(key: string): void {
    for (const peer of this.#byRecord.get(key) ?? []) this.#detach(peer, key)
    this.#byRecord.delete(key)
  }

  /** Polls at once the peers that a NOTIFY may concern. */
  hasten({ host, keyId, isAllowed }: NotifySource): HastenOutcome {
    const isSigned = keyId !== ''
    let [found, hastened] = [0, 0]
    for (const peer of this.#entries.values()) {
      const isSelected = isSigned ? peer.keyId === keyId : isAllowed || peer.isAt(host)
      if (!isSelected) continue
      found++
      if (peer.hasten(this.#hastened)) hastened++
    }
    if (found === 0 && !isSigned && !isAllowed) return 'stranger'
    return hastened === found ? 'hastened' : 'limited'
  }

  /** For metrics: one status for each address and key name. */
  statuses(): readonly PeerStatus[] {
    return joinStatuses([...this.#entries.values()].map((peer) => peer.status))
  }

  close(): void {
    this.#stopChecks()
    for (const peer of this.#entries.values()) peer.close()
    this.#entries.clear()
    this.#byRecord.clear()
  }

  #follow(nameserver: Nameserver, key: TsigKey | undefined): FollowedPeer {
    const id = identify(nameserver, key)
    const known = this.#entries.get(id)
    if (known !== undefined) return known
    const follower = this.#parts.follow(nameserver, key)
    const place = { id, address: printHostPort(nameserver), keyId: keyIdOrNone(key) }
    const peer = new FollowedPeer(place, follower, this.#parts)
    this.#entries.set(id, peer)
    follower.start()
    return peer
  }

  #detach(peer: FollowedPeer, key: string): void {
    if (peer.detach(key) > 0) return
    this.#entries.delete(peer.id)
    peer.close()
  }

  #check(): void {
    for (const peer of this.#entries.values()) peer.check()
  }
}

/** One nameserver, and the records that need it. */
class FollowedPeer implements OperatorPeer {
  readonly id: string
  readonly address: string
  /** '' = no key. */
  readonly keyId: string
  readonly #follower: PeerFollowerView
  readonly #parts: PeerSetParts
  readonly #startMs: number
  readonly #unsubscribe: () => void
  /** Root hosts by record key, and record keys by host without `*.`. */
  readonly #hosts = new Map<string, string>()
  readonly #keys = new Map<string, Set<string>>()
  #presence: Presence = 'new'
  #hastenedMs = Number.NEGATIVE_INFINITY

  constructor(
    { id, address, keyId }: Pick<FollowedPeer, 'id' | 'address' | 'keyId'>,
    follower: PeerFollowerView,
    parts: PeerSetParts,
  ) {
    this.id = id
    this.address = address
    this.keyId = keyId
    this.#follower = follower
    this.#parts = parts
    this.#startMs = parts.clock.monotonic()
    this.#unsubscribe = follower.subscribe((hosts) => this.#notify(hosts))
  }

  get status(): PeerStatus {
    return this.#follower.status
  }

  get lastAnswerMs(): number {
    return this.#follower.lastAnswerMs
  }

  get ownSite(): string {
    return this.#follower.ownSite
  }

  get clockAheadMs(): number | undefined {
    return this.#follower.clockAheadMs
  }

  get lastSeenMs(): number {
    return this.#follower.lastSeenMs
  }

  get sites(): readonly string[] {
    return this.#follower.sites
  }

  get observationCount(): number {
    return this.#follower.observationCount
  }

  observationsOf(host: string): readonly SiteObservation[] {
    return this.#follower.observationsOf(host)
  }

  answerFor(rootHost: string): PeerAnswer {
    const state = this.#stateFor(rootHost)
    const presence = this.#readPresence()
    if (presence === 'silent') return { kind: 'silent', reason: this.#follower.error, state }
    return state === undefined ? { kind: 'pending' } : { kind: 'answered', state }
  }

  attach(key: string, rootHost: string): void {
    const before = this.#hosts.get(key)
    if (before === rootHost) return
    if (before !== undefined) this.detach(key)
    this.#hosts.set(key, rootHost)
    const host = bareHost(rootHost)
    const keys = this.#keys.get(host)
    if (keys === undefined) this.#keys.set(host, new Set([key]))
    else keys.add(key)
    this.#follower.want(rootHost)
  }

  /** Returns the number of records that remain. */
  detach(key: string): number {
    const rootHost = this.#hosts.get(key)
    if (rootHost === undefined) return this.#hosts.size
    this.#hosts.delete(key)
    const host = bareHost(rootHost)
    const keys = this.#keys.get(host)
    keys?.delete(key)
    if (keys?.size === 0) this.#keys.delete(host)
    // The follower counts the users of each host.
    this.#follower.forget(rootHost)
    return this.#hosts.size
  }

  isAt(host: string): boolean {
    return this.#follower.isAt(host)
  }

  /** Polls the peer at once if the budget allows it. NOTIFYs in quick succession use one poll. */
  hasten(budget: TokenBucket): boolean {
    const nowMs = this.#parts.clock.monotonic()
    if (nowMs - this.#hastenedMs >= NOTIFY_GAP_MS) {
      if (!budget.take()) return false
      this.#hastenedMs = nowMs
    }
    this.#follower.notify()
    return true
  }

  /** Notifies all records when the peer becomes silent or live. */
  check(): void {
    const presence = this.#readPresence()
    if (presence === this.#presence) return
    this.#presence = presence
    for (const key of this.#hosts.keys()) this.#parts.onEvent(key)
  }

  close(): void {
    this.#unsubscribe()
    this.#follower.close()
  }

  #readPresence(): Presence {
    const { lastSeenMs, error } = this.#follower
    const sinceMs = wasHeard(lastSeenMs) ? lastSeenMs : this.#startMs
    const { clock, expiryMs } = this.#parts
    const isLate = error !== '' && clock.monotonic() - sinceMs >= reportedAfterMs(expiryMs)
    if (isLate) return 'silent'
    return wasHeard(lastSeenMs) ? 'live' : 'new'
  }

  #stateFor(rootHost: string): PeerState | undefined {
    const { generation, lastSeenMs: seenMs, lastSeenTimeMs: seenTimeMs } = this.#follower
    if (generation === '' || !this.#follower.hasAnsweredFor(rootHost)) return undefined
    const { serial, ownSite } = this.#follower
    const host = bareHost(rootHost)
    const siteStates = this.#follower
      .siteStatesOf(host)
      .filter((siteState) => siteState.rootHost === rootHost)
    const problems = this.#follower.problemsOf(host)
    // The observations of a relay do not count.
    const observations = this.#follower.observationsOf(host).filter(({ site }) => site === ownSite)
    return { siteStates, seenMs, seenTimeMs, generation, serial, problems, observations }
  }

  #notify(hosts: ReadonlySet<string>): void {
    for (const host of hosts) {
      for (const key of this.#keys.get(host) ?? []) this.#parts.onEvent(key)
    }
  }
}

/** Identity of a follower: a different key needs a different follower. */
function identify(nameserver: Nameserver, key: TsigKey | undefined): string {
  return `${printHostPort(nameserver)} ${keyIdOrNone(key)}`
}

function keyIdOrNone(key: TsigKey | undefined): string {
  return key === undefined ? '' : keyIdOf(key)
}

function bareHost(rootHost: string): string {
  return rootHost.startsWith('*.') ? rootHost.slice(2) : rootHost
}
