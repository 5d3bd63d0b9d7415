import * as sockaddr from '../../sockaddr.ts'
import * as layouts from './layout.ts'
import { isSameAsked } from './pktinfo.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { AF_INET6 } = sockaddr
const { BATCH, UNIT_CONTROL } = layouts

/**
 * Replies that are longer go by themselves. With its headers such a one fits into every path (RFC 791 section 3.2 has
 * 576 octets), so that no group is refused for its length; and a batch is within what one message may have.
 */
export const GROUPED_OCTETS_MAX = 512

/** A power of two. */
const TABLE_ENTRIES = 256

/** By send slot: what `groupReplies` looks at. */
export interface Replies {
  /** Where the addresses of its peer and of ours are: `sockaddr`, control message. */
  readonly placeOf: Uint32Array
  /** Octets of that control message; 0 = none. */
  readonly spaceOf: Uint32Array
  readonly lengthOf: Uint32Array
}

/**
 * Sorts replies into groups of those that go to the same peer, from the same address of ours, with the same length:
 *
 *     slots 0..4 for peers a a b a c   ─▶   3 groups, order 0 1 3 2 4, starts 0 3 4 5
 *
 * Peers are looked for by their port alone, so of two with the same one and in turns each reply may be a group.
 */
export class Grouping {
  /** Slots, group by group. */
  readonly order: Uint16Array = new Uint16Array(BATCH)
  /** By group: where in `order` it starts; the one behind the last is the end. */
  readonly starts: Uint16Array = new Uint16Array(BATCH + 1)
  readonly #groupOf: Uint16Array = new Uint16Array(BATCH)
  /** By group: its first slot, and how many it has; later where in `order` its next one goes. */
  readonly #leaderOf: Uint16Array = new Uint16Array(BATCH)
  readonly #sizeOf: Uint16Array = new Uint16Array(BATCH)
  /** By port and length: a group. It may be of an earlier batch: what its leader says now is what counts. */
  readonly #table: Uint16Array = new Uint16Array(TABLE_ENTRIES)

  /**
   * Groups the replies in slots `from` to `to` - 1; returns how many groups there are. Only if there are fewer than replies
   * `order` and `starts` are filled. @hot
   */
  group(words: Uint32Array, replies: Replies, from: number, to: number): number {
    const { placeOf, lengthOf } = replies
    let groups = 0
    for (let slot = from; slot < to; slot++) {
      const octets = lengthOf[slot]!
      const port = words[placeOf[slot]! >> 2]! >>> 16
      const entry = (port ^ (port >>> 8) ^ (octets * 37)) & (TABLE_ENTRIES - 1)
      const found = this.#table[entry]!
      if (
        found < groups &&
        octets <= GROUPED_OCTETS_MAX &&
        isAlike(words, replies, this.#leaderOf[found]!, slot)
      ) {
        this.#groupOf[slot] = found
        this.#sizeOf[found]! += 1
        continue
      }
      this.#table[entry] = groups
      this.#leaderOf[groups] = slot
      this.#sizeOf[groups] = 1
      this.#groupOf[slot] = groups++
    }
    if (groups < to - from) this.#sort(groups, from, to)
    return groups
  }

  /** Counts out where each group starts, then deals the slots. */
  #sort(groups: number, from: number, to: number): void {
    let start = 0
    for (let group = 0; group < groups; group++) {
      const size = this.#sizeOf[group]!
      this.starts[group] = start
      this.#sizeOf[group] = start
      start += size
    }
    this.starts[groups] = start
    for (let slot = from; slot < to; slot++) {
      const group = this.#groupOf[slot]!
      this.order[this.#sizeOf[group]!] = slot
      this.#sizeOf[group]! += 1
    }
  }
}

/** Whether two replies have the same length, and go the same way. @hot */
function isAlike(words: Uint32Array, replies: Replies, a: number, b: number): boolean {
  const { placeOf, spaceOf, lengthOf } = replies
  if (lengthOf[a] !== lengthOf[b] || spaceOf[a] !== spaceOf[b]) return false
  const p = placeOf[a]!
  const q = placeOf[b]!
  if (!isSamePeer(words, p >> 2, q >> 2)) return false
  return isSameAsked(words, p + UNIT_CONTROL, q + UNIT_CONTROL, spaceOf[a]!)
}

/** Compares two `sockaddr`, by the words where they start: family and port, address; of IPv6 flow and scope too. */
function isSamePeer(words: Uint32Array, p: number, q: number): boolean {
  const head = words[p]!
  if (head !== words[q] || words[p + 1] !== words[q + 1]) return false
  if ((head & 0xffff) !== AF_INET6) return true
  for (let i = 2; i < 7; i++) if (words[p + i] !== words[q + i]) return false
  return true
}
