import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { StateFile } from '../../record/state/state-file.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { PeerFollower } from '../peer.ts'
import type { CachedPeer } from './cached-peer.ts'
import { type CachedPeers, cachedPeers, printPeerCache } from './peer-cache-text.ts'

/** How often to look whether a peer fell silent, and whether what is on the disk is too old. */
const LOOK_MS = 5000
/** What is on the disk is older than what is known by up to that part of the time after which it expires. */
const LAG_PART = 24
const LAG_MS_MAX = 3_600_000

export interface PeerCacheOptions {
  /** Absolute. */
  readonly path: string
  /** Ours: what peers told another one is not for us. */
  readonly site: string
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/** How the file fares. */
export interface PeerCacheStatus {
  readonly path: string
  /** Age of what is in the file; undefined = this process has not written it yet. */
  readonly ageMs: number | undefined
  /** Of the file; 0 = not known. */
  readonly octets: number
  /** Why it can't be written; '' = it can. */
  readonly fault: string
}

/** A peer of which something is known. */
interface Known {
  readonly identity: string
  readonly exported: () => CachedPeer | undefined
  /** Who follows it now, for how many; undefined = nobody: what it told is kept until it would have expired. */
  follower: PeerFollower | undefined
  users: number
  isUp: boolean
}

/**
 * Keeps what peers told in a file, so that a process which is started while a peer is dead goes on from there. It is
 * written soon after a change, when a peer falls silent, and now and then, so that it says when a peer was heard last.
 */
export class PeerCache {
  readonly #options: PeerCacheOptions
  readonly #file: StateFile<CachedPeers>
  /** By `identityOf`. */
  readonly #known = new Map<string, Known>()
  /** All that is followed. Of one peer there may be several followers: for other sockets, or a key of the same name. */
  readonly #followed = new Set<Known>()
  readonly #cut = new Set<string>()
  readonly #stopLooking: () => void
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
    for (const [identity, cached] of this.#file.open() ?? []) {
      this.#known.set(identity, unfollowed(identity, cached))
    }
    this.#stopLooking = timers.every(LOOK_MS, () => this.#look())
  }

  get status(): PeerCacheStatus {
    const { writtenMs, octets, fault } = this.#file
    const isWritten = writtenMs !== Number.NEGATIVE_INFINITY
    const ageMs = isWritten ? this.#options.clock.monotonic() - writtenMs : undefined
    return { path: this.#options.path, ageMs, octets, fault }
  }

  /** What is to be known of it, for the ready page; '' = nothing. */
  note(): string {
    const { fault } = this.#file
    return fault === '' ? '' : `what peers told is not kept in ${this.#options.path}: ${fault}`
  }

  /** Gives a follower that is new what is known of its peer. */
  recall(follower: PeerFollower): void {
    const cached = this.#known.get(follower.identity)?.exported()
    if (cached !== undefined) follower.recall(cached)
  }

  /** Keeps what the follower's peer tells, until the returned function is called. `expiryMs`: how long that holds. */
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

  /** What it told is kept, unless somebody else follows the same peer, and knows better. */
  #leave(entry: Known): void {
    const { identity } = entry
    entry.follower = undefined
    this.#followed.delete(entry)
    if (this.#known.get(identity) !== entry) return
    const other = [...this.#followed].filter((one) => one.identity === identity).at(-1)
    if (other !== undefined) this.#known.set(identity, other)
  }

  /** Leaves the file as of now. */
  close(): void {
    this.#stopLooking()
    if (this.#cachedPeers().length > 0) this.#file.noteChange()
    this.#file.close()
  }

  #look(): void {
    let [isNews, isAnyUp] = [false, false]
    for (const [identity, known] of this.#known) {
      const { follower } = known
      if (follower === undefined) {
        if (this.#isOver(known.exported())) this.#known.delete(identity)
        continue
      }
      isNews ||= follower.isUp !== known.isUp
      known.isUp = follower.isUp
      isAnyUp ||= follower.isUp
    }
    const ageMs = this.#options.clock.monotonic() - this.#file.writtenMs
    if (isNews || (isAnyUp && ageMs >= this.#lagMs)) this.#file.noteChange()
  }

  *#print(): Generator<string> {
    const { site, clock, log, path } = this.#options
    yield* printPeerCache(this.#cachedPeers(), {
      site,
      clock,
      onCut: (address, endpoints) => {
        if (this.#cut.has(address)) return
        this.#cut.add(address)
        log.warning(`${path} has no room for ${endpoints} endpoints of peer ${address}`)
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

  /** True where nobody would take it into account if it were asked for again. */
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
