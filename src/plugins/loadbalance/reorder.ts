import { RESPONSE_RR_MAX, type Response } from '../../dns/message/response.ts'
import type { Section } from '../../dns/message/section.ts'

/** Most ranks: the number of values of a Uint8Array. */
export const RANKS_MAX = 256

/**
 * Reorders the records of one section, in place. Reused for every query:
 *
 *     gather ─▶ rank[i] = … ─▶ sort ─▶ (shuffle or swap parts of `order`) ─▶ apply
 *
 * Records of other sections may be in between; they keep their places.
 */
export class Reorder {
  /** Records in the section: 0..RESPONSE_RR_MAX. */
  count = 0
  /** Index of the section's record i in the response's arrays. */
  readonly position = new Uint16Array(RESPONSE_RR_MAX)
  /** Rank of the section's record i; lower ranks come first. Filled in by the caller. */
  readonly rank = new Uint8Array(RESPONSE_RR_MAX)
  /** `order[i]`: the section's record that is sent in place i. */
  readonly order = new Uint16Array(RESPONSE_RR_MAX)
  /** Start of rank r in `order`; entry r+1 is its end. Valid after `sort`. */
  readonly start = new Uint16Array(RANKS_MAX + 1)

  /** Finds the section's records. */
  gather(response: Response, section: Section): void {
    let count = 0
    for (let i = 0; i < response.count; i++) {
      if (response.section[i] === section) this.position[count++] = i
    }
    this.count = count
  }

  /** Fills `order` by rank; all ranks are below `ranks`. Records of one rank keep their order. */
  sort(ranks: number): void {
    const { start, rank, order, count } = this
    for (let r = 0; r <= ranks; r++) start[r] = 0
    for (let i = 0; i < count; i++) start[rank[i]! + 1]! += 1
    for (let r = 1; r <= ranks; r++) start[r]! += start[r - 1]!
    // Filling moves `start` of each rank to its end, so it is stored one entry higher.
    for (let i = 0; i < count; i++) {
      const at = start[rank[i]!]!
      order[at] = i
      start[rank[i]!] = at + 1
    }
    for (let r = ranks; r > 0; r--) start[r] = start[r - 1]!
    start[0] = 0
  }

  /** Exchanges two entries of `order`. */
  swap(a: number, b: number): void {
    const kept = this.order[a]!
    this.order[a] = this.order[b]!
    this.order[b] = kept
  }

  /** Moves the records as `order` requires. Follows its cycles, so each record moves once. */
  apply(response: Response): void {
    const { order, position, count } = this
    for (let first = 0; first < count; first++) {
      let i = first
      while (order[i] !== first) {
        const from = order[i]!
        swapRecords(response, position[i]!, position[from]!)
        order[i] = i
        i = from
      }
      order[i] = i
    }
  }
}

/** Exchanges two records of one section. */
function swapRecords(response: Response, a: number, b: number): void {
  swapIntegers(response.type, a, b)
  swapIntegers(response.rrclass, a, b)
  swapIntegers(response.ttlSeconds, a, b)
  swapIntegers(response.ownerOffset, a, b)
  swapIntegers(response.rdataOffset, a, b)
  swapIntegers(response.rdataOctets, a, b)
  swapBytes(response.ownerBytes, a, b)
  swapBytes(response.rdataBytes, a, b)
}

function swapIntegers(values: Uint16Array | Uint32Array, a: number, b: number): void {
  const kept = values[a]!
  values[a] = values[b]!
  values[b] = kept
}

function swapBytes(values: Uint8Array[], a: number, b: number): void {
  const kept = values[a]!
  values[a] = values[b]!
  values[b] = kept
}
