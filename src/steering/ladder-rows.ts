import type { ClassTrie } from '../geo/class-trie.ts'
import type { TierKey } from './tier-key.ts'

/** Fills the rows of the policy table for one trie. */
export class LadderRows {
  readonly #trie: ClassTrie
  /** Number of each point that the trie knows. */
  readonly #numberOf: ReadonlyMap<string, number>

  constructor(trie: ClassTrie) {
    this.#trie = trie
    this.#numberOf = new Map(trie.data.near?.points.map((text, number) => [text, number]))
  }

  /**
   * Fills one row. The rung of a class is the first code in `codesOf` (ladder order) that the policy
   * has, or else the one without a code. Its tier is that of the nearest point on this rung; if the
   * rung has no points, or those of the class have no known order, it is the tier without a point.
   */
  fill(tierOf: Uint16Array, number: number, keys: readonly TierKey[]): void {
    const { classCount, codesOf, data } = this.#trie
    const rungs = this.#rungsOf(keys)
    const last = rungs.get('') ?? { tier: keys.length }
    for (let clientClass = 0; clientClass < classCount; clientClass++) {
      const code = codesOf[clientClass]!.find(({ text }) => rungs.has(text))
      const rung = code === undefined ? last : rungs.get(code.text)!
      const order = data.near?.orderOf[clientClass] ?? -1
      const nearest = order === -1 ? undefined : this.#nearest(rung, order)
      tierOf[number * classCount + clientClass] = nearest ?? rung.tier ?? keys.length
    }
  }

  /** Groups the tiers of a policy by code; '' = without a code. */
  #rungsOf(keys: readonly TierKey[]): Map<string, Rung> {
    const rungs = new Map<string, Rung>()
    for (const [tier, { code, point }] of keys.entries()) {
      const text = code?.text ?? ''
      const rung = rungs.get(text) ?? {}
      rungs.set(text, rung)
      if (point === undefined) {
        rung.tier = tier
        continue
      }
      rung.byPoint ??= new Map()
      const known = this.#numberOf.get(point.text)
      if (known === undefined) rung.isUnordered = true
      else rung.byPoint.set(known, tier)
    }
    return rungs
  }

  #nearest({ byPoint, isUnordered }: Rung, order: number): number | undefined {
    const { near } = this.#trie.data
    // The nearest of some points is not the nearest of all.
    if (near === undefined || byPoint === undefined || isUnordered === true) return undefined
    const { length } = near.points
    const nearest = near.orders
      .subarray(order * length, (order + 1) * length)
      .find((point) => byPoint.has(point))
    return nearest === undefined ? undefined : byPoint.get(nearest)
  }
}

/** The tiers of one code. */
interface Rung {
  /** The tier without a point. */
  tier?: number
  /** Tier by number of the point. */
  byPoint?: Map<number, number>
  /** True if the trie does not know the order of all its points. */
  isUnordered?: boolean
}
