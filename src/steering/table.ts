import { assert } from '../base/assert.ts'
import type { Random } from '../base/random.ts'
import type { ClassTrie } from '../geo/class-trie.ts'
import type { GeoCode } from '../geo/code.ts'
import type { Locator } from '../geo/locator.ts'
import type { Candidate } from './candidate.ts'
import { encodeSteering, NO_POLICY } from './encode.ts'
import { Policies, type SteeringSnapshot } from './policies.ts'
import { RecentEncodings } from './recent-encodings.ts'
import { GeoWeightSteerer } from './steerer.ts'
import { isSingleton, sortIntoTiers } from './tiers.ts'

export interface SteeringOptions {
  /**
   * Where clients are. Undefined = the block has no `geoip`: everybody is at an unknown place, so
   * every set with geo codes is served by its default candidates or as a whole.
   */
  readonly locator: Locator | undefined
  /** Draws of every steerer made without a generator of its own. */
  readonly random: Random
  /** Told why a rebuild failed; the old trie stays in use. */
  readonly onError: (reason: string) => void
  /** Told of each new world before a zone that needs it can be published: for other threads. */
  readonly onSnapshot?: (snapshot: SteeringSnapshot) => void
}

/**
 * Turns the candidates of RRsets into steering words, and keeps the class trie fit for the geo codes
 * that they name. One per owner of zones that has its own `locator`.
 *
 *     compose(set) … compose(set) ─▶ built() ─▶ publish the zone
 */
export class SteeringTable {
  readonly #options: SteeringOptions
  readonly #policies = new Policies()
  readonly #recent = new RecentEncodings()
  readonly #stopWatching: () => void
  /** Codes that the trie in use was built for; -1 = none was built. */
  #builtCodes = -1
  #databaseChanged = false
  #refreshQueued = false
  /** The rebuild under way in another thread. */
  #rebuild: Promise<void> | undefined
  /** Why the last one failed; undefined = it did not. */
  #fault: unknown
  /** The world that `onSnapshot` was told of last. */
  #reported: SteeringSnapshot | undefined
  #closed = false

  constructor(options: SteeringOptions) {
    this.#options = options
    this.#stopWatching =
      options.locator?.onChange(() => {
        this.#databaseChanged = true
        this.refresh()
      }) ?? (() => {})
  }

  /**
   * The steering words of one RRset, or undefined where there is nothing to choose: no candidate has
   * a geo code or a weight. Several CNAMEs without either are one choice nevertheless, since a name
   * can have only one (RFC 2181 section 10.1); of a CNAME candidate only the first target counts.
   *
   * `candidates`: 1..CANDIDATES_MAX, those that are down already removed; the same endpoint may be
   * among them twice, once for its code and once as a default. The words are shared: copy, don't change.
   */
  compose(candidates: readonly Candidate[], type: number): Uint32Array | undefined {
    if (!isSteered(candidates, type)) return undefined
    return this.#recent.find(candidates, type, this.#compose)
  }

  readonly #compose = (candidates: readonly Candidate[], type: number): Uint32Array => {
    const { codes, tiers } = sortIntoTiers(candidates, type)
    if (codes.length === 0) return encodeSteering(NO_POLICY, tiers)
    const policy = this.#policies.intern(codes)
    if (this.#policies.codeCount !== this.#builtCodes) this.#queueRefresh()
    return encodeSteering(policy, tiers)
  }

  /**
   * Takes over the policies that another table had, as `policies` showed them, each once: steering words
   * that it composed are good for this one. Those that nothing names any more may be empty: their codes
   * are then not in the trie. Before anything is composed.
   */
  restore(policies: readonly (readonly GeoCode[])[]): void {
    assert(this.#policies.list.length === 0, 'nothing was composed')
    this.#policies.restore(policies)
  }

  /** The codes of each policy, by the number that steering words name it by. */
  get policies(): readonly (readonly GeoCode[])[] {
    return this.#policies.list
  }

  /**
   * Sees to it that the trie tells all codes apart that were composed so far: where it does not, a new
   * one is built in another thread, while queries go by the old one. Call it after a batch of `compose`;
   * forgotten, it happens at the end of the current tick.
   */
  refresh(): void {
    this.#rebuildIfDue()
    // Who knows of a policy does not ask again for the classes that go with it.
    if (this.#has(this.#policies.codeCount)) this.#tell()
  }

  /**
   * As `refresh`. Resolves once the trie does tell them apart: a zone that is published before would
   * answer some clients by a tier that is theirs neither before nor after. Undefined = it does already.
   * Rejects with an InputError where it can't be built.
   */
  built(): Promise<void> | undefined {
    this.refresh()
    const { codeCount } = this.#policies
    const isBuilt = this.#has(codeCount) && this.#fault === undefined
    return isBuilt ? undefined : this.#waitFor(codeCount)
  }

  async #waitFor(codeCount: number): Promise<void> {
    while (!this.#has(codeCount)) await this.#rebuild
    this.#tell()
    if (this.#fault !== undefined) throw this.#fault
  }

  /** Whether nothing has to be built for that many codes. */
  #has(codeCount: number): boolean {
    const isIdle = this.#closed || this.#options.locator === undefined || codeCount === 0
    return isIdle || codeCount <= this.#builtCodes
  }

  #tell(): void {
    const { snapshot } = this.#policies
    if (snapshot === this.#reported) return
    this.#reported = snapshot
    this.#options.onSnapshot?.(snapshot)
  }

  #rebuildIfDue(): void {
    const { locator } = this.#options
    if (locator === undefined || this.#closed || this.#rebuild !== undefined) return
    const { codeCount } = this.#policies
    if (codeCount === 0 || (codeCount === this.#builtCodes && !this.#databaseChanged)) return
    this.#databaseChanged = false
    this.#rebuild = this.#rebuildInBackground(locator.classify(this.#policies.codes), codeCount)
  }

  /** Resolves once no rebuild is under way: for tests and orderly stops. */
  async settled(): Promise<void> {
    while (this.#rebuild !== undefined) await this.#rebuild
  }

  /** A steerer for one thread's queries. */
  steerer(random: Random = this.#options.random): GeoWeightSteerer {
    return new GeoWeightSteerer(this.#policies, random)
  }

  /** The trie in use: for metrics, `explain` and tests. */
  get trie(): ClassTrie {
    return this.#policies.snapshot.trie
  }

  close(): void {
    this.#closed = true
    this.#stopWatching()
  }

  #queueRefresh(): void {
    if (this.#refreshQueued) return
    this.#refreshQueued = true
    queueMicrotask(() => {
      this.#refreshQueued = false
      this.refresh()
    })
  }

  async #rebuildInBackground(building: Promise<ClassTrie>, codeCount: number): Promise<void> {
    try {
      const trie = await building
      this.#fault = undefined
      if (!this.#closed) this.#adopt(trie, codeCount)
    } catch (error) {
      // Marked as built: asking again before anything changes would fail the same way.
      this.#builtCodes = codeCount
      this.#fault = error
      this.#options.onError(printReason(error))
    }
    this.#rebuild = undefined
    this.refresh()
  }

  #adopt(trie: ClassTrie, codeCount: number): void {
    this.#policies.adopt(trie)
    this.#builtCodes = codeCount
  }
}

function isSteered(candidates: readonly Candidate[], type: number): boolean {
  return (
    candidates.some((c) => c.code !== undefined || c.isDefault || c.weight !== undefined) ||
    (isSingleton(type) && candidates.length > 1)
  )
}

function printReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
