import type { Query } from '../dns/message/query.ts'
import { type AddressFamily, type Cidr, maskAddress } from '../dns/text/address.ts'
import { OUTCOME_COUNT_MASK, STICKY_TIER } from './encode.ts'
import { pickSticky } from './sticky.ts'

/** What a client's prefix decides in a sticky tier. */
export interface StickyOrder {
  /** The part of the client's address that is hashed. */
  readonly prefix: Cidr
  /** All outcomes of the tier. The first one serves the client; the next one, if those before it are gone. */
  readonly outcomes: readonly number[]
}

/** Words of a tier of two outcomes: count, twice weight and offset, prefix lengths, two seeds. */
const PAIR_WORDS = 10

/**
 * Returns the order of the outcomes of the tier at `tier` for a client; undefined = the tier is not
 * sticky. Each two outcomes are compared by the function that serves: it has a total order, so the
 * result is the same as if the winner was removed again and again.
 */
export function orderSticky(
  words: Uint32Array,
  tier: number,
  query: Query,
): StickyOrder | undefined {
  const head = words[tier]!
  if ((head & STICKY_TIER) === 0) return undefined
  const count = head & OUTCOME_COUNT_MASK
  const prefixAt = tier + 1 + count * 2
  const prefixBits = words[prefixAt]!
  const pair = new Uint32Array(PAIR_WORDS)
  pair[0] = 2 | STICKY_TIER
  pair[5] = prefixBits
  const weightOf = (i: number): number => {
    const sum = words[tier + 1 + i * 2]!
    return i === 0 ? sum : sum - words[tier - 1 + i * 2]!
  }
  const copySeed = (i: number, at: number): void => {
    pair[at] = words[prefixAt + 1 + i * 2]!
    pair[at + 1] = words[prefixAt + 2 + i * 2]!
  }
  const isBefore = (a: number, b: number): boolean => {
    pair[1] = weightOf(a)
    pair[3] = weightOf(a) + weightOf(b)
    copySeed(a, 6)
    copySeed(b, 8)
    return pickSticky(pair, 0, 2, query) === 0
  }
  const outcomes = Array.from({ length: count }, (_, i) => i).sort((a, b) => {
    // An outcome that comes first in the tier wins a tie.
    if (a === b) return 0
    return a < b === isBefore(Math.min(a, b), Math.max(a, b)) ? -1 : 1
  })
  return { prefix: hashedPrefix(query, prefixBits), outcomes }
}

function hashedPrefix({ clientFamily, clientAddress }: Query, prefixBits: number): Cidr {
  const family = clientFamily as AddressFamily
  const bits = family === 1 ? prefixBits & 0xff : prefixBits >>> 8
  return { family, bytes: maskAddress(clientAddress.slice(0, family === 1 ? 4 : 16), bits), bits }
}
