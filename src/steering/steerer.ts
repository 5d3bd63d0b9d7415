import type { Random } from '../base/random.ts'
import type { Query } from '../dns/message/query.ts'
import type { Response } from '../dns/message/response.ts'
import type { Choice } from '../zone/image/types.ts'
import type { Steerer } from '../zone/lookup/steerer.ts'
import * as layout from './encode.ts'
import type { SteeringSnapshots } from './policies.ts'
import * as stickiness from './sticky.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { NO_POLICY, POLICY_WORD, STICKY_TIER, TIER_OFFSETS_WORD } = layout
const { pickSticky } = stickiness

/** Makes the steerer of a thread. */
export type SteererFactory = (snapshots: SteeringSnapshots) => Steerer

/**
 * Chooses by GEO class, then by weight: a draw, or in sticky sets a hash of the client. Benchmark:
 * bench/choice.mjs.
 */
export class GeoWeightSteerer implements Steerer {
  readonly #snapshots: SteeringSnapshots
  readonly #random: Random

  constructor(snapshots: SteeringSnapshots, random: Random) {
    this.#snapshots = snapshots
    this.#random = random
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
    const outcome =
      offset +
      (words[tier]! > STICKY_TIER
        ? stickyOutcome(words, tier, query, response)
        : drawOutcome(words, tier, this.#random))
    const count = words[outcome + 1]!
    response.isSteered = true
    choice.ttlSeconds = words[outcome]!
    choice.count = count
    for (let i = 0; i < count; i++) choice.index[i] = words[outcome + 2 + i]!
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

/** Draws an outcome of the tier at `tier`; returns the outcome's offset from word 0 of the set. @hot */
function drawOutcome(words: Uint32Array, tier: number, random: Random): number {
  const count = words[tier]!
  if (count === 1) return words[tier + 2]!
  const draw = random.below(words[tier + count * 2 - 1]!)
  // Finds the first outcome whose cumulative weight exceeds the draw. low..high always contains it.
  let low = 0
  let high = count - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (words[tier + 1 + middle * 2]! > draw) high = middle
    else low = middle + 1
  }
  return words[tier + 2 + low * 2]!
}

/** Returns the outcome of a sticky tier as `drawOutcome` does. Raises the scope to the hashed prefix. @hot */
function stickyOutcome(words: Uint32Array, tier: number, query: Query, response: Response): number {
  const count = words[tier]! - STICKY_TIER
  const prefixBits = words[tier + 1 + count * 2]!
  const bits = query.clientFamily === 1 ? prefixBits & 0xff : prefixBits >>> 8
  if (query.clientIsEcs && bits > response.scopeBits) response.scopeBits = bits
  const picked = pickSticky(words, tier, count, query)
  return words[tier + 2 + picked * 2]!
}
