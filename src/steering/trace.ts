import { Random } from '../base/random.ts'
import type { Query } from '../dns/message/query.ts'
import type { Response } from '../dns/message/response.ts'
import type { ClassTrie, ClassTrieData } from '../geo/class-trie.ts'
import type { GeoCode } from '../geo/code.ts'
import type { Choice } from '../zone/image/types.ts'
import type { Steerer } from '../zone/lookup/steerer.ts'
import { type DecodedSteering, decodeSteering } from './decode.ts'
import { TIER_OFFSETS_WORD } from './encode.ts'
import type { SteeringSnapshot, SteeringSnapshots } from './policies.ts'
import { GeoWeightSteerer } from './steerer.ts'
import { orderSticky, type StickyOrder } from './sticky-order.ts'

/** A random number that the steerer drew: 0..bound-1. */
interface TracedDraw {
  readonly value: number
  readonly bound: number
}

/** What the steerer did for one RRset of an answer. */
export interface TracedChoice {
  /** The zone image, and the word where the steering of the RRset starts. They identify the RRset. */
  readonly buffer: ArrayBufferLike
  readonly offset: number
  readonly steering: DecodedSteering
  /** Undefined = the location of the client was not looked up. */
  readonly lookup: { readonly clientClass: number; readonly depth: number } | undefined
  /** Index of the tier that was taken. */
  readonly tier: number
  /** In order, one per endpoint of the answer; empty = the tier has one outcome, or is sticky. */
  readonly draws: readonly TracedDraw[]
  /** Undefined = no hash of the client chose. */
  readonly sticky: StickyOrder | undefined
  readonly rdataIndexes: readonly number[]
  readonly ttlSeconds: number
}

/**
 * Records the choices of one query. The choices are made by `GeoWeightSteerer`, with the random
 * numbers of a seed.
 */
export class ChoiceTrace {
  readonly #random = new TracedRandom(0)
  #choices: TracedChoice[] = []

  /** Starts a new query. */
  begin(seed: number): void {
    this.#random.restart(seed)
    this.#choices = []
  }

  /** The choices since `begin`, in order. */
  get choices(): readonly TracedChoice[] {
    return this.#choices
  }

  /** The source of all random numbers of the query. */
  get random(): Random {
    return this.#random
  }

  /** Returns a steerer whose choices are recorded here. */
  steerer(snapshots: SteeringSnapshots): Steerer {
    return new TracedSteerer(snapshots, this.#random, (choice) => this.#choices.push(choice))
  }
}

class TracedRandom extends Random {
  draws: TracedDraw[] = []

  override below(bound: number): number {
    const value = super.below(bound)
    this.draws.push({ value, bound })
    return value
  }
}

class TracedSteerer implements Steerer {
  readonly #steerer: GeoWeightSteerer
  readonly #snapshots: TracedSnapshots
  readonly #random: TracedRandom
  readonly #onChoice: (choice: TracedChoice) => void

  constructor(
    snapshots: SteeringSnapshots,
    random: TracedRandom,
    onChoice: (choice: TracedChoice) => void,
  ) {
    this.#snapshots = new TracedSnapshots(snapshots)
    this.#steerer = new GeoWeightSteerer(this.#snapshots, random)
    this.#random = random
    this.#onChoice = onChoice
  }

  choose(
    query: Query,
    response: Response,
    words: Uint32Array,
    offset: number,
    choice: Choice,
  ): void {
    this.#snapshots.begin()
    this.#random.draws = []
    this.#steerer.choose(query, response, words, offset, choice)
    const steering = decodeSteering(words, offset)
    const { lookup } = this.#snapshots
    const tier = this.#snapshots.tierOf(steering.policy)
    const tierAt = offset + words[offset + TIER_OFFSETS_WORD + tier]!
    this.#onChoice({
      buffer: words.buffer,
      offset,
      steering,
      lookup,
      tier,
      draws: this.#random.draws,
      sticky: orderSticky(words, tierAt, query),
      rdataIndexes: [...choice.index.subarray(0, choice.count)],
      ttlSeconds: choice.ttlSeconds,
    })
  }
}

/** Steering snapshots whose trie records the last lookup. */
class TracedSnapshots implements SteeringSnapshots {
  readonly #snapshots: SteeringSnapshots
  #source: SteeringSnapshot | undefined
  #traced: { readonly snapshot: SteeringSnapshot; readonly trie: TracedTrie } | undefined

  constructor(snapshots: SteeringSnapshots) {
    this.#snapshots = snapshots
  }

  get snapshot(): SteeringSnapshot {
    return this.#current().snapshot
  }

  get lookup(): TracedChoice['lookup'] {
    return this.#current().trie.last
  }

  begin(): void {
    this.#current().trie.last = undefined
  }

  catchUp(): void {
    this.#snapshots.catchUp()
  }

  /** The tier of the client class that was looked up last. */
  tierOf(policy: number | undefined): number {
    const { lookup } = this
    if (policy === undefined || lookup === undefined) return 0
    const { tierOf, trie } = this.snapshot
    return tierOf[policy * trie.classCount + lookup.clientClass]!
  }

  #current(): { readonly snapshot: SteeringSnapshot; readonly trie: TracedTrie } {
    const { snapshot } = this.#snapshots
    if (this.#traced === undefined || this.#source !== snapshot) {
      const trie = new TracedTrie(snapshot.trie)
      this.#source = snapshot
      this.#traced = { snapshot: { ...snapshot, trie }, trie }
    }
    return this.#traced
  }
}

class TracedTrie implements ClassTrie {
  readonly classCount: number
  readonly codesOf: readonly (readonly GeoCode[])[]
  readonly data: ClassTrieData
  readonly #trie: ClassTrie
  last: TracedChoice['lookup']

  constructor(trie: ClassTrie) {
    this.#trie = trie
    this.classCount = trie.classCount
    this.codesOf = trie.codesOf
    this.data = trie.data
  }

  get depth(): number {
    return this.#trie.depth
  }

  lookup(address: Uint8Array, family: number, bits: number): number {
    const clientClass = this.#trie.lookup(address, family, bits)
    this.last = { clientClass, depth: this.#trie.depth }
    return clientClass
  }
}
