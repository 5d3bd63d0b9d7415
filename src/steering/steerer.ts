import type { Random } from '../base/random.ts'
import { key } from '../base/shared-values.ts'
import * as options from '../dns/iana/options.ts'
import type { Query } from '../dns/message/query.ts'
import type { Response } from '../dns/message/response.ts'
import type { Choice } from '../zone/image/types.ts'
import type { Steerer } from '../zone/lookup/steerer.ts'
import * as layout from './encode.ts'
import * as picking from './picks.ts'
import type { SteeringSnapshots } from './policies.ts'
import * as stickiness from './sticky.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { OTHER, STALE_ANSWER } = options.EdeCode
const {
  ANSWER_SHIFT,
  ANSWERS_SHIFT,
  BLIND_TIER,
  COUNTED_TIER,
  countersOffset,
  NO_POLICY,
  OUTCOME_COUNT_MASK,
  POLICY_WORD,
  RDATA_COUNT_MASK,
  STALE_TIER,
  STICKY_TIER,
  staleOffset,
  TIER_OFFSETS_WORD,
} = layout
const { findOutcome, Picks } = picking
const { pickSticky, pickStickySeveral } = stickiness

const BLIND_TEXT = Buffer.from('all endpoints are out of service; health is ignored')
const STALE_TEXT = Buffer.from('endpoints of a site that is silent')

/** Makes the steerer of a thread. */
export type SteererFactory = (snapshots: SteeringSnapshots) => Steerer

/**
 * Chooses by GEO class, then by weight: a draw, or in sticky sets a hash of the client. Benchmark:
 * bench/choice.mjs.
 */
export class GeoWeightSteerer implements Steerer {
  readonly #snapshots: SteeringSnapshots
  readonly #random: Random
  readonly #counts: Float64Array | undefined
  readonly #picks = new Picks()

  /** `counts`: the counters of this thread, by number; undefined = nothing is counted. */
  constructor(snapshots: SteeringSnapshots, random: Random, counts?: Float64Array) {
    this.#snapshots = snapshots
    this.#random = random
    this.#counts = counts
  }

  /** See `Steerer`. Raises the scope only for a decision by the ECS address. @hot */
  choose(
    query: Query,
    response: Response,
    words: Uint32Array,
    offset: number,
    choice: Choice,
  ): void {
    const policy = words[offset + POLICY_WORD]!
    const tierNumber = policy === NO_POLICY ? 0 : this.#findTier(query, response, policy)
    const tier = offset + words[offset + TIER_OFFSETS_WORD + tierNumber]!
    const count = words[tier]!
    const several = count >>> ANSWERS_SHIFT
    response.isSteered = true
    if (several !== 0) {
      this.#picks.count = several
      this.#pickSeveral(words, tier, query, response)
      this.#picks.fill(words, offset, tier, choice)
      if (query.dnssecOk) choice.answer = this.#picks.answer(words, tier)
      return
    }
    const picked =
      count > OUTCOME_COUNT_MASK
        ? this.#pickMarked(words, tier, query, response)
        : draw(words, tier, count, this.#random)
    const outcome = offset + words[tier + 2 + picked * 2]!
    const head = words[outcome + 1]!
    const rdataCount = head & RDATA_COUNT_MASK
    choice.answer = head >>> ANSWER_SHIFT
    choice.ttlSeconds = words[outcome]!
    choice.count = rdataCount
    for (let i = 0; i < rdataCount; i++) choice.index[i] = words[outcome + 2 + i]!
  }

  /** Returns the index of an outcome of a tier with marks. @hot */
  #pickMarked(words: Uint32Array, tier: number, query: Query, response: Response): number {
    const head = words[tier]!
    const count = head & OUTCOME_COUNT_MASK
    const picked =
      (head & STICKY_TIER) !== 0
        ? pickByPrefix(words, tier, count, query, response)
        : draw(words, tier, count, this.#random)
    this.#count(words, tier, picked)
    if ((head & BLIND_TIER) !== 0) noteBlind(response)
    if ((head & STALE_TIER) !== 0) noteStale(response, words, tier, picked)
    return picked
  }

  /** Picks several outcomes of a tier. The first one counts, so that counts follow the weights. @hot */
  #pickSeveral(words: Uint32Array, tier: number, query: Query, response: Response): void {
    const head = words[tier]!
    const count = head & OUTCOME_COUNT_MASK
    const picks = this.#picks
    if ((head & STICKY_TIER) !== 0) {
      raiseScope(words, tier, count, query, response)
      pickStickySeveral(words, tier, count, query, picks)
    } else {
      picks.draw(words, tier, count, this.#random)
    }
    this.#count(words, tier, picks.index[0]!)
    if ((head & BLIND_TIER) !== 0) noteBlind(response)
    if ((head & STALE_TIER) === 0) return
    for (let i = 0; i < picks.count; i++) noteStale(response, words, tier, picks.index[i]!)
  }

  /** Counts a choice of an outcome if the tier is counted. @hot */
  #count(words: Uint32Array, tier: number, picked: number): void {
    if ((words[tier]! & COUNTED_TIER) === 0 || this.#counts === undefined) return
    this.#counts[words[countersOffset(words, tier) + picked]!]! += 1
  }

  /** @hot */
  #findTier(query: Query, response: Response, policy: number): number {
    if (policy >= this.#snapshots.snapshot.policyCount) this.#snapshots.catchUp()
    const snapshot = this.#snapshots.snapshot
    const trie = snapshot.trie
    const clientClass = trie.lookup(query.clientAddress, query.clientFamily, query.clientBits)
    if (query.clientIsEcs && trie.depth > response.scopeBits) response.scopeBits = trie.depth
    return snapshot.tierOf[policy * trie.classCount + clientClass]!
  }
}

/** Notes for the client that the addresses may not work (RFC 8914). @hot */
function noteBlind(response: Response): void {
  if (response.edeCode >= 0) return
  response.edeCode = OTHER
  response.edeText = BLIND_TEXT
}

/** Notes for the client that the outcome has endpoints of a silent site, if it has. @hot */
function noteStale(response: Response, words: Uint32Array, tier: number, picked: number): void {
  const bits = words[staleOffset(words, tier) + (picked >>> 5)]!
  if (response.edeCode >= 0 || ((bits >>> (picked & 31)) & 1) === 0) return
  response.edeCode = STALE_ANSWER
  response.edeText = STALE_TEXT
}

/** Returns the index of an outcome of the tier at `tier` by its weight. @hot */
function draw(words: Uint32Array, tier: number, count: number, random: Random): number {
  if (count === 1) return 0
  return findOutcome(words, tier, count, random.below(words[tier + count * 2 - 1]!))
}

/** As `draw`, by the client's prefix. @hot */
function pickByPrefix(
  words: Uint32Array,
  tier: number,
  count: number,
  query: Query,
  response: Response,
): number {
  raiseScope(words, tier, count, query, response)
  return pickSticky(words, tier, count, query)
}

/** Raises the scope to the prefix of a sticky tier. @hot */
function raiseScope(
  words: Uint32Array,
  tier: number,
  count: number,
  query: Query,
  response: Response,
): void {
  const prefixBits = words[tier + 1 + count * 2]!
  const bits = query.clientFamily === 1 ? prefixBits & 0xff : prefixBits >>> 8
  if (query.clientIsEcs && bits > response.scopeBits) response.scopeBits = bits
}

/** Makes the steerers of a thread. Without it, each thread draws at random with a seed of its own. */
export const STEERER_FACTORY = key<SteererFactory>('maker of steerers')
