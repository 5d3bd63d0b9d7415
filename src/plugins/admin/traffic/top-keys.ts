import type { Random } from '../../../base/random.ts'

/** A key and an estimate of its weight. */
export interface TopKey {
  readonly key: string
  readonly weight: number
}

/**
 * The most frequent keys of a stream, in bounded memory, by randomized admission (Ben Basat et al., "Randomized
 * Admission Policy for Efficient Top-k and Frequency Estimation", 2017). If all places are in use, a new key replaces
 * the lightest one with the probability weight / (lightest + weight). So keys that occur once, such as the random
 * names of a flood, seldom replace others, however many they are.
 */
export class TopKeys {
  readonly #capacity: number
  readonly #random: Random
  readonly #places = new Map<string, number>()
  readonly #keys: string[] = []
  readonly #weights: number[] = []
  /** Times that the key occurred since it has its place. */
  readonly #hits: number[] = []
  #lightest = 0
  #isFull = false

  constructor(capacity: number, random: Random) {
    this.#capacity = capacity
    this.#random = random
  }

  add(key: string, weight: number): void {
    const place = this.#places.get(key)
    if (place === undefined) {
      this.#admit(key, weight)
      return
    }
    this.#weights[place]! += weight
    this.#hits[place]!++
    if (place === this.#lightest) this.#findLightest()
  }

  /**
   * Returns up to `count` keys, the heaviest first. If keys were left out, those that occurred only once since they
   * were admitted are not returned: what they have of the weight of others is most of theirs.
   */
  top(count: number): TopKey[] {
    const all = this.#keys.map((key, i) => ({
      key,
      weight: this.#weights[i]!,
      hits: this.#hits[i]!,
    }))
    return all
      .filter(({ hits }) => hits > 1 || !this.#isFull)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, count)
      .map(({ key, weight }) => ({ key, weight }))
  }

  clear(): void {
    this.#places.clear()
    for (const list of [this.#keys, this.#weights, this.#hits]) list.length = 0
    this.#lightest = 0
    this.#isFull = false
  }

  #admit(key: string, weight: number): void {
    const { length } = this.#keys
    if (length < this.#capacity) {
      this.#put(length, key, weight)
      if (weight < this.#weights[this.#lightest]!) this.#lightest = length
      return
    }
    this.#isFull = true
    const place = this.#lightest
    const lightest = this.#weights[place]!
    if (this.#random.below(2 ** 32) * (lightest + weight) >= weight * 2 ** 32) return
    this.#places.delete(this.#keys[place]!)
    this.#put(place, key, lightest + weight)
    this.#findLightest()
  }

  #put(place: number, key: string, weight: number): void {
    this.#places.set(key, place)
    this.#keys[place] = key
    this.#weights[place] = weight
    this.#hits[place] = 1
  }

  #findLightest(): void {
    const weights = this.#weights
    let lightest = 0
    for (let i = 1; i < weights.length; i++) if (weights[i]! < weights[lightest]!) lightest = i
    this.#lightest = lightest
  }
}
