import type { ClassTrie } from '../geo/class-trie.ts'
import type { GeoCode } from '../geo/code.ts'
import type { TierKey } from './tier-key.ts'

const NO_TIER = -1

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
    // A City database has many thousand classes, and most of them share their list of codes.
    const rungOf = new Map<readonly GeoCode[], Rung>()
    for (let clientClass = 0; clientClass < classCount; clientClass++) {
      const codes = codesOf[clientClass]!
      let rung = rungOf.get(codes)
      if (rung === undefined) {
        const code = codes.find(({ text }) => rungs.has(text))
        rung = code === undefined ? last : rungs.get(code.text)!
        rungOf.set(codes, rung)
      }
      const order = data.near?.orderOf[clientClass] ?? -1
      const nearest = order === -1 ? NO_TIER : this.#nearest(rung, order)
      const tier = nearest === NO_TIER ? (rung.tier ?? keys.length) : nearest
      tierOf[number * classCount + clientClass] = tier
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
      const known = this.#numberOf.get(point.text)
      if (known === undefined) rung.isUnordered = true
      else {
        rung.byPoint ??= new Int32Array(this.#numberOf.size).fill(NO_TIER)
        rung.byPoint[known] = tier
      }
    }
    return rungs
  }

  /** Returns the tier of the first point of an order that has one, or NO_TIER. */
  #nearest({ byPoint, isUnordered }: Rung, order: number): number {
    const { near } = this.#trie.data
    // The nearest of some points is not the nearest of all.
    if (near === undefined || byPoint === undefined || isUnordered === true) return NO_TIER
    const { orders } = near
    const end = (order + 1) * byPoint.length
    for (let i = end - byPoint.length; i < end; i++) {
      const tier = byPoint[orders[i]!]!
      if (tier !== NO_TIER) return tier
    }
    return NO_TIER
  }
}

/** The tiers of one code. */
interface Rung {
  /** The tier without a point. */
  tier?: number
  /** Tier by number of the point, or NO_TIER. */
  byPoint?: Int32Array
  /** True if the trie does not know the order of all its points. */
  isUnordered?: boolean
}
