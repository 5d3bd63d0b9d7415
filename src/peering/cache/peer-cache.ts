import type { Clock } from '../../base/clock.ts'
import { StateFile } from '../../base/persist/state-file.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import type { PeerFollower } from '../peer.ts'
import type { DownByHost, QuorumMemory } from '../quorum/quorum-memory.ts'
import type { CachedPeer } from './cached-peer.ts'
import {
  type CachedDown,
  type CachedPeers,
  cachedPeers,
  printPeerCache,
} from './peer-cache-text.ts'

/** Interval of the checks whether a peer fell silent, and whether the file is too old. */
const CHECK_MS = 5000
/** The file may lag behind by at most 1/LAG_PART of the expiry time, and at most LAG_MS_MAX. */
const LAG_PART = 24
const LAG_MS_MAX = 3_600_000

interface PeerCacheOptions {
  /** Absolute path. */
  readonly path: string
  /** Our own site. What peers reported to another site is not loaded. */
  readonly site: string
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/** State of the file. */
interface PeerCacheStatus {
  readonly path: string
  /** Age of the file's content; undefined = this process has not written it yet. */
  readonly ageMs: number | undefined
  /** Size of the file; 0 = not known. */
  readonly octets: number
  /** Why the file cannot be written; '' = it can. */
  readonly fault: string
}

/** A peer that the cache has data of. */
interface Known {
  readonly identity: string
  readonly exported: () => CachedPeer | undefined
  /**
   * The follower of the peer, and its number of users. undefined = no follower: the data is kept
   * until it expires.
   */
  follower: PeerFollower | undefined
  users: number
  isUp: boolean
}

/**
 * Keeps in a file what peers reported, and which of their addresses this site found down. So a process that starts
 * while a peer is down can serve that data, without the addresses that are down. The cache writes the file soon after a
 * change and when a peer falls silent. It also writes at intervals, so that the file records when each peer was last
 * heard.
 */
export class PeerCache {
  readonly #options: PeerCacheOptions
  readonly #file: StateFile<CachedPeers>
  /** By `identityOf`. */
  readonly #known = new Map<string, Known>()
  /**
   * All followed peers. One peer may have several followers: for other sockets, or for another key
   * of the same name.
   */
  readonly #followed = new Set<Known>()
  /** What blocks decide, and the last decisions about hosts that no block has settled. */
  readonly #decided = new Set<{ readonly memory: QuorumMemory }>()
  readonly #left = new Map<string, CachedDown>()
  readonly #cut = new Set<string>()
  readonly #stopChecking: () => void
  #expiryMs = 0
  #lagMs = LAG_MS_MAX

  /** Reads the file. */
  constructor(options: PeerCacheOptions) {
    const { site, clock, timers } = options
    this.#options = options
    this.#file = new StateFile({
      ...options,
      kind: cachedPeers(site, clock),
      print: () => this.#print(),
    })
    const { peers, down } = this.#file.open() ?? { peers: new Map(), down: new Map() }
    for (const [identity, cached] of peers) this.#known.set(identity, unfollowed(identity, cached))
    for (const [host, one] of down) this.#left.set(host, one)
    this.#stopChecking = timers.every(CHECK_MS, () => this.#check())
  }

  get status(): PeerCacheStatus {
    const { writtenMs, octets, fault } = this.#file
    const isWritten = writtenMs !== Number.NEGATIVE_INFINITY
    const ageMs = isWritten ? this.#options.clock.monotonic() - writtenMs : undefined
    return { path: this.#options.path, ageMs, octets, fault }
  }

  get problems(): readonly ProblemGroup[] {
    return this.#file.problems
  }

  /** Gives a new follower the cached data of its peer. */
  recall(follower: PeerFollower): void {
    const cached = this.#known.get(follower.identity)?.exported()
    if (cached !== undefined) follower.recall(cached)
  }

  /**
   * Caches what the follower's peer reports until the returned function is called. `expiryMs`: how
   * long that data is valid.
   */
  keep(follower: PeerFollower, expiryMs: number): () => void {
    this.#expiryMs = Math.max(this.#expiryMs, expiryMs)
    this.#lagMs = Math.min(this.#lagMs, expiryMs / LAG_PART)
    const { identity } = follower
    let entry = [...this.#followed].find((one) => one.follower === follower)
    if (entry === undefined) {
      const exported = (): CachedPeer | undefined => follower.keep(this.#sinceMs)
      entry = { identity, exported: exported, follower, users: 0, isUp: follower.isUp }
      this.#followed.add(entry)
      this.#known.set(identity, entry)
    }
    const unsubscribe = follower.subscribe(() => this.#file.noteChange())
    entry.users++
    return () => {
      unsubscribe()
      if (--entry.users === 0) this.#leave(entry)
    }
  }

  /** Returns the addresses that were down, for hosts that no block has settled yet. */
  earlierDown(): DownByHost {
    this.#expireDown()
    return new Map([...this.#left].map(([host, { addresses }]) => [host, addresses]))
  }

  /** Caches the decisions in `memory` until the returned function is called, and then the last ones. */
  keepDecisions(memory: QuorumMemory): () => void {
    // Both instances of a reload share the memory.
    const use = { memory }
    this.#decided.add(use)
    const unsubscribe = memory.subscribe((host) => {
      this.#left.delete(host)
      this.#file.noteChange()
    })
    return () => {
      unsubscribe()
      this.#decided.delete(use)
      const isShared = [...this.#decided].some((one) => one.memory === memory)
      if (!isShared) this.#leaveDecisions(memory)
    }
  }

  #leaveDecisions({ down }: QuorumMemory): void {
    const seenMs = this.#options.clock.monotonic()
    for (const [host, addresses] of down) this.#left.set(host, { addresses, seenMs })
  }

  /** Decisions are as old as peers may be. */
  #expireDown(): void {
    if (this.#expiryMs === 0) return
    for (const [host, { seenMs }] of this.#left) {
      if (seenMs < this.#sinceMs) this.#left.delete(host)
    }
  }

  #cachedDown(): ReadonlyMap<string, CachedDown> {
    this.#expireDown()
    const found = new Map(this.#left)
    const seenMs = this.#options.clock.monotonic()
    for (const { memory } of this.#decided) {
      for (const [host, addresses] of memory.down) {
        const known = found.get(host)?.addresses ?? []
        found.set(host, { addresses: new Set([...known, ...addresses]), seenMs })
      }
    }
    return found
  }

  /**
   * Keeps the last data of a stopped follower, unless another follower of the same peer is running.
   */
  #leave(entry: Known): void {
    const { identity } = entry
    entry.follower = undefined
    this.#followed.delete(entry)
    if (this.#known.get(identity) !== entry) return
    const other = [...this.#followed].filter((one) => one.identity === identity).at(-1)
    if (other !== undefined) this.#known.set(identity, other)
  }

  /** Writes the current state to the file and closes it. */
  close(): void {
    this.#stopChecking()
    if (this.#cachedPeers().length > 0) this.#file.noteChange()
    this.#file.close()
  }

  #check(): void {
    let [hasChanged, isAnyUp] = [false, false]
    for (const [identity, known] of this.#known) {
      const { follower } = known
      if (follower === undefined) {
        if (this.#isOver(known.exported())) this.#known.delete(identity)
        continue
      }
      hasChanged ||= follower.isUp !== known.isUp
      known.isUp = follower.isUp
      isAnyUp ||= follower.isUp
    }
    const ageMs = this.#options.clock.monotonic() - this.#file.writtenMs
    if (hasChanged || (isAnyUp && ageMs >= this.#lagMs)) this.#file.noteChange()
  }

  *#print(): Generator<string> {
    const { site, clock, log, path } = this.#options
    yield* printPeerCache(this.#cachedPeers(), this.#cachedDown(), {
      site,
      clock,
      onCut: (address, count) => {
        if (this.#cut.has(address)) return
        this.#cut.add(address)
        if (address === '')
          log.warning(`${path} has no room for ${count} addresses that are down`, 'peer-cache-full')
        else
          log.warning(
            `${path} has no room for ${count} endpoints of peer ${address}`,
            'peer-cache-full',
          )
      },
    })
  }

  #cachedPeers(): readonly CachedPeer[] {
    const cached: CachedPeer[] = []
    for (const { exported, follower } of this.#known.values()) {
      const peer = exported()
      if (peer === undefined || (follower === undefined && this.#isOver(peer))) continue
      cached.push(peer)
    }
    return cached
  }

  /** True for data that has expired, so that no follower would use it. */
  #isOver(peer: CachedPeer | undefined): boolean {
    return peer === undefined || (this.#expiryMs > 0 && peer.seenMs < this.#sinceMs)
  }

  get #sinceMs(): number {
    return this.#options.clock.monotonic() - this.#expiryMs
  }
}

function unfollowed(identity: string, cached: CachedPeer): Known {
  return { identity, exported: () => cached, follower: undefined, users: 0, isUp: false }
}
