import { assert } from '../base/assert.ts'
import type { Random } from '../base/random.ts'
import type { ClassTrie } from '../geo/class-trie.ts'
import { POINTS_MAX, type PointSet } from '../geo/classes/point-orders.ts'
import type { Locator } from '../geo/locator.ts'
import type { Candidate } from './candidate.ts'
import { encodeSteering, NO_POLICY } from './encode.ts'
import { OTHER_COUNTERS, type OutcomeCounters, OutcomeMembers } from './outcome-counters.ts'
import { Policies, type SteeringSnapshot } from './policies.ts'
import { type Compose, RecentEncodings } from './recent-encodings.ts'
import type { SetRules } from './rules.ts'
import { GeoWeightSteerer } from './steerer.ts'
import type { TierKey } from './tier-key.ts'
import { isAddress, isSingleton, isStale, sortIntoTiers } from './tiers.ts'

interface SteeringOptions {
  /**
   * Locates clients. Undefined = the block has no `geoip`: the place of all clients is unknown, and
   * every set with geo codes serves its default candidates, or all candidates if none is a default.
   */
  readonly locator: Locator | undefined
  /** Source of random numbers for steerers that are made without one. */
  readonly random: Random
  /** Called with the reason when a rebuild fails; the old trie remains in use. */
  readonly onError: (reason: string) => void
  /** Called with the reason if endpoints with a location can't be chosen by distance; once for equal reasons. */
  readonly onWarning?: (reason: string) => void
  /** Called with each new snapshot before a zone that needs it is published, to send it to other threads. */
  readonly onSnapshot?: (snapshot: SteeringSnapshot) => void
}

/**
 * Encodes the candidates of RRsets, and rebuilds the class trie when candidates name new geo codes.
 * Each owner of zones with its own `locator` has one table.
 *
 *     compose(set) … compose(set) ─▶ built() ─▶ publish the zone
 */
export class SteeringTable {
  readonly #options: SteeringOptions
  readonly #policies = new Policies()
  readonly #recent = new RecentEncodings()
  /** With counters that are the same for all sets. */
  readonly #recentCounted = new RecentEncodings()
  readonly #stopWatching: () => void
  /** Number of codes and point sets that the trie in use was built for; -1 = no trie was built. */
  #builtCount = -1
  #databaseChanged = false
  #refreshQueued = false
  /** The rebuild that runs in another thread. */
  #rebuild: Promise<void> | undefined
  /** Error of the last rebuild; undefined = it succeeded. */
  #fault: unknown
  /** The last snapshot passed to `onSnapshot`. */
  #reported: SteeringSnapshot | undefined
  /** The last argument of `onWarning`; undefined = distances can be used. */
  #warning: string | undefined
  /** Codes of the trie in use that match no client. */
  #unmatched: ReadonlySet<string> = new Set()
  readonly #builtListeners = new Set<() => void>()
  #closed = false
  /** See `gather`. */
  #isGathering = false

  constructor(options: SteeringOptions) {
    this.#options = options
    this.#stopWatching =
      options.locator?.onChange(() => {
        this.#databaseChanged = true
        this.refresh()
      }) ?? (() => {})
  }

  /**
   * Returns the encoded steering of one RRset; undefined if it needs no choice because no candidate
   * has a geo code, a point or a weight, clients get all of them, and replies note nothing. Several CNAMEs
   * always need a choice, because a name can have only one CNAME (RFC 2181 section 10.1). Only the first
   * target of a CNAME candidate counts.
   *
   * `candidates`: 1..CANDIDATES_MAX, without unhealthy ones. The same endpoint may occur twice,
   * once for its code and once as a default. `counters`: assigns a counter to each outcome; even a set
   * without a choice is then encoded. The result is shared: copy it before you change it.
   */
  compose(
    candidates: readonly Candidate[],
    type: number,
    { sticky, failover, answers: most, ignoresHealth }: SetRules = {},
    counters?: OutcomeCounters,
  ): Uint32Array | undefined {
    const isNoted = ignoresHealth === true || candidates.some(isStale)
    const isPlain = failover === undefined && counters === undefined && !isNoted
    const answers = isSingleton(type) || candidates.length === 1 ? undefined : most
    if (isPlain && !isSteered(candidates, type, answers)) return undefined
    // Equal sets of other owners have other seeds and lists. Shifts are rare.
    const isShifted = candidates[0]?.shift !== undefined
    const isCounted = counters !== undefined && counters !== OTHER_COUNTERS
    const isRare = isShifted || isNoted
    if (sticky !== undefined || failover !== undefined || isRare || isCounted) {
      return this.#encode(candidates, type, { sticky, failover, answers, ignoresHealth }, counters)
    }
    if (counters !== undefined) {
      return this.#recentCounted.find(candidates, type, answers, this.#composeCounted)
    }
    return this.#recent.find(candidates, type, answers, this.#compose)
  }

  /**
   * Adds the points that compete for clients of composed sets, each set sorted by text. Call it before
   * `built`, also for endpoints that are out of service.
   */
  addPointSets(sets: readonly PointSet[]): void {
    for (const set of sets) this.#policies.addPointSet(set)
    const isBlind = sets.length > 0 && this.#options.locator === undefined
    if (isBlind) this.#warn('the server block has no geoip')
  }

  readonly #compose: Compose = (candidates, type, answers) => {
    return this.#encode(candidates, type, { answers })
  }

  readonly #composeCounted: Compose = (candidates, type, answers) => {
    return this.#encode(candidates, type, { answers }, OTHER_COUNTERS)
  }

  #encode(
    candidates: readonly Candidate[],
    type: number,
    rules: SetRules,
    counters?: OutcomeCounters,
  ): Uint32Array {
    const members = counters === undefined ? undefined : new OutcomeMembers()
    const sorted = sortIntoTiers(candidates, type, rules, members)
    const { keys, tiers } = sorted
    const numbers = counters && members?.assign(candidates, sorted, counters)
    if (keys.length === 0) return encodeSteering(NO_POLICY, tiers, rules, numbers)
    const policy = this.#policies.intern(keys)
    if (this.#policies.distinctionCount !== this.#builtCount) this.#queueRefresh()
    return encodeSteering(policy, tiers, rules, numbers)
  }

  /**
   * Loads the policies of another table, as its `policies` returned them, each once. Steering that
   * the other table encoded is then valid for this one. Policies that no RRset names may be empty;
   * their codes are not in the trie. Call it before `compose`.
   */
  restore(policies: readonly (readonly TierKey[])[]): void {
    assert(this.#policies.list.length === 0, 'nothing was composed')
    this.#policies.restore(policies)
  }

  /** The keys of each policy, by policy number in the encoded steering. */
  get policies(): readonly (readonly TierKey[])[] {
    return this.#policies.list
  }

  /**
   * Announces many sets, composed over several ticks: the trie is not built for the first few codes, but once, when
   * the caller calls `refresh` or `built`.
   */
  gather(): void {
    this.#isGathering = true
  }

  /**
   * Ensures that the trie distinguishes all codes and points that were composed so far. If it does not,
   * another thread builds a new trie, while queries use the old one. Call it after a batch of
   * `compose`; otherwise it runs at the end of the current tick.
   */
  refresh(): void {
    this.#isGathering = false
    this.#rebuildIfDue()
    // A thread that has the policy does not request its classes again, so notify only when they are
    // ready.
    if (this.#has(this.#policies.distinctionCount)) this.#notify()
  }

  /**
   * Calls `refresh`, and resolves when the trie distinguishes all codes and points. A zone that is published
   * earlier would give some clients a tier that is right neither for the old trie nor for the new
   * one. Undefined = the trie is ready. Rejects with an InputError if the trie can't be built.
   */
  built(): Promise<void> | undefined {
    this.refresh()
    const { distinctionCount: count } = this.#policies
    const isBuilt = this.#has(count) && this.#fault === undefined
    return isBuilt ? undefined : this.#waitFor(count)
  }

  async #waitFor(count: number): Promise<void> {
    while (!this.#has(count)) await this.#rebuild
    this.#notify()
    if (this.#fault !== undefined) throw this.#fault
  }

  /** True if the trie in use suffices for that many codes. */
  #has(count: number): boolean {
    const isIdle = this.#closed || this.#options.locator === undefined || count === 0
    return isIdle || count <= this.#builtCount
  }

  #notify(): void {
    const { snapshot } = this.#policies
    if (snapshot === this.#reported) return
    this.#reported = snapshot
    this.#options.onSnapshot?.(snapshot)
  }

  #rebuildIfDue(): void {
    const { locator } = this.#options
    if (locator === undefined || this.#closed || this.#rebuild !== undefined) return
    const { distinctionCount: count } = this.#policies
    if (count === 0 || (count === this.#builtCount && !this.#databaseChanged)) return
    this.#databaseChanged = false
    const { codes, pointSets } = this.#policies
    const building = locator.classify(codes, pointSets)
    this.#rebuild = this.#rebuildInBackground(building, count)
  }

  /** Resolves when no rebuild is running: for tests and orderly shutdown. */
  async settled(): Promise<void> {
    while (this.#rebuild !== undefined) await this.#rebuild
  }

  /** Returns a steerer for the queries of one thread. `counts`: see `GeoWeightSteerer`. */
  steerer(random: Random = this.#options.random, counts?: Float64Array): GeoWeightSteerer {
    return new GeoWeightSteerer(this.#policies, random, counts)
  }

  /** The trie in use: for metrics, `explain` and tests. */
  get trie(): ClassTrie {
    return this.#policies.snapshot.trie
  }

  /** True if no client can have the code, as far as the trie in use knows; without `geoip`, always. */
  isUnmatched(code: string): boolean {
    return this.#options.locator === undefined || this.#unmatched.has(code)
  }

  /** Calls `listener` after each rebuild. Returns a function that ends this. */
  onBuilt(listener: () => void): () => void {
    this.#builtListeners.add(listener)
    return () => this.#builtListeners.delete(listener)
  }

  /** The classes, and the tier of each policy and class: for commands that compare configurations. */
  get snapshot(): SteeringSnapshot {
    return this.#policies.snapshot
  }

  close(): void {
    this.#closed = true
    this.#stopWatching()
  }

  #queueRefresh(): void {
    if (this.#refreshQueued || this.#isGathering) return
    this.#refreshQueued = true
    queueMicrotask(() => {
      this.#refreshQueued = false
      this.refresh()
    })
  }

  async #rebuildInBackground(building: Promise<ClassTrie>, count: number): Promise<void> {
    try {
      const trie = await building
      this.#fault = undefined
      if (!this.#closed) this.#adopt(trie, count)
    } catch (error) {
      // Marked as built: a retry would fail in the same way until something changes.
      this.#builtCount = count
      this.#fault = error
      this.#options.onError(printReason(error))
    }
    this.#rebuild = undefined
    this.refresh()
  }

  #adopt(trie: ClassTrie, count: number): void {
    this.#policies.adopt(trie)
    this.#warn(distanceProblem(trie))
    this.#builtCount = count
    const matched = new Set(trie.codesOf.flat().map(({ text }) => text))
    const codes = this.#policies.codes.map(({ text }) => text)
    this.#unmatched = new Set(codes.filter((code) => !matched.has(code)))
    for (const listener of this.#builtListeners) listener()
  }

  #warn(warning: string | undefined): void {
    if (warning !== undefined && warning !== this.#warning) this.#options.onWarning?.(warning)
    this.#warning = warning
  }
}

/** Returns why some endpoints are not chosen by distance. */
function distanceProblem({ data: { near } }: ClassTrie): string | undefined {
  if (near === undefined) return undefined
  if (near.orders.length === 0) return 'no location database and no `net` line has coordinates'
  if (!near.isCut) return undefined
  return `the endpoints have more than ${POINTS_MAX} locations: some names are answered without them`
}

function isSteered(
  candidates: readonly Candidate[],
  type: number,
  answers: number | undefined,
): boolean {
  return (
    (answers !== undefined && candidates.length > answers && isAddress(type)) ||
    candidates.some((c) => isLocated(c) || c.weight !== undefined) ||
    candidates[0]?.shift !== undefined ||
    (isSingleton(type) && candidates.length > 1)
  )
}

function isLocated({ code, isDefault, point }: Candidate): boolean {
  return code !== undefined || isDefault || point !== undefined
}

function printReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
