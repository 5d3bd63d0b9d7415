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

/** By send slot: what `Grouping` looks at. */
export interface Replies {
  /** Where the addresses of its peer and of ours are: `sockaddr`, control message. */
  readonly placeOf: Uint32Array
  /** Octets of that control message; 0 = none. */
  readonly spaceOf: Uint32Array
  readonly lengthOf: Uint32Array
}

/** In place of a group where there is none. */
const NONE = 0xffff

/**
 * Sorts replies into groups of those that go to the same peer, from the same address of ours, with the same length; a
 * shorter one, which no other has the length of, may be the last:
 *
 *     slots 0..5, peers and lengths a50 a50 b60 a50 c60 a40   ─▶   3 groups, order 0 1 3 5 2 4, starts 0 4 5 6
 *
 * Peers are looked for by their port alone, so of two with the same one and in turns each reply may be a group.
 */
export class Grouping {
  /** Slots, group by group. */
  readonly order: Uint16Array = new Uint16Array(BATCH)
  /** By group: where in `order` it starts; the one behind the last is the end. */
  readonly starts: Uint16Array = new Uint16Array(BATCH + 1)
  /*
   * Replies that are alike are a kind; a group is one kind, and at most one other that ends it.
   */
  readonly #kindOf: Uint16Array = new Uint16Array(BATCH)
  /** By kind: its first slot; how many it has; the one that ends it; where in `order` its next slot goes. */
  readonly #leaderOf: Uint16Array = new Uint16Array(BATCH)
  readonly #sizeOf: Uint16Array = new Uint16Array(BATCH)
  readonly #endOf: Uint16Array = new Uint16Array(BATCH)
  readonly #nextOf: Uint16Array = new Uint16Array(BATCH)
  /** By kind: 1 if it ends another. */
  readonly #isEnd: Uint8Array = new Uint8Array(BATCH)
  /** By port and length: a kind. It may be of an earlier batch: what its leader says now is what counts. */
  readonly #kinds: Uint16Array = new Uint16Array(TABLE_ENTRIES)
  /** By port: a kind without an end, with the same reservation. */
  readonly #open: Uint16Array = new Uint16Array(TABLE_ENTRIES)

  /**
   * Groups the replies in slots `from` to `to` - 1; returns how many groups there are. Only if there are fewer than replies
   * `order` and `starts` are filled. @hot
   */
  group(words: Uint32Array, replies: Replies, from: number, to: number): number {
    const { placeOf, lengthOf } = replies
    let kinds = 0
    for (let slot = from; slot < to; slot++) {
      const octets = lengthOf[slot]!
      const entry = entryOf(words, placeOf[slot]!, octets)
      const found = this.#kinds[entry]!
      if (
        found < kinds &&
        octets <= GROUPED_OCTETS_MAX &&
        lengthOf[this.#leaderOf[found]!] === octets &&
        isSameWay(words, replies, this.#leaderOf[found]!, slot)
      ) {
        this.#kindOf[slot] = found
        this.#sizeOf[found]! += 1
        continue
      }
      this.#kinds[entry] = kinds
      this.#leaderOf[kinds] = slot
      this.#sizeOf[kinds] = 1
      this.#endOf[kinds] = NONE
      this.#isEnd[kinds] = 0
      this.#kindOf[slot] = kinds++
    }
    const groups = kinds - this.#join(words, replies, kinds)
    if (groups < to - from) this.#sort(kinds, from, to)
    return groups
  }

  /** Gives kinds an end, of those that have one reply; returns how many. */
  #join(words: Uint32Array, replies: Replies, kinds: number): number {
    let ends = 0
    for (let kind = 0; kind < kinds; kind++) {
      const leader = this.#leaderOf[kind]!
      if (replies.lengthOf[leader]! > GROUPED_OCTETS_MAX) continue
      const entry = entryOf(words, replies.placeOf[leader]!, 0)
      const other = this.#open[entry]!
      this.#open[entry] = kind
      if (other >= kind || this.#isEnd[other] === 1 || this.#endOf[other] !== NONE) continue
      // What an earlier batch left there may be a long one now.
      if (replies.lengthOf[this.#leaderOf[other]!]! > GROUPED_OCTETS_MAX) continue
      if (!isSameWay(words, replies, leader, this.#leaderOf[other]!)) continue
      const isShorter = replies.lengthOf[leader]! < replies.lengthOf[this.#leaderOf[other]!]!
      const short = isShorter ? kind : other
      if (this.#sizeOf[short] !== 1) continue
      this.#endOf[isShorter ? other : kind] = short
      this.#isEnd[short] = 1
      ends++
    }
    return ends
  }

  /** Counts out where each group starts, then deals the slots. */
  #sort(kinds: number, from: number, to: number): void {
    let groups = 0
    let start = 0
    for (let kind = 0; kind < kinds; kind++) {
      if (this.#isEnd[kind] === 1) continue
      this.starts[groups++] = start
      this.#nextOf[kind] = start
      start += this.#sizeOf[kind]!
      const end = this.#endOf[kind]!
      if (end !== NONE) this.#nextOf[end] = start++
    }
    this.starts[groups] = start
    for (let slot = from; slot < to; slot++) {
      const kind = this.#kindOf[slot]!
      this.order[this.#nextOf[kind]!] = slot
      this.#nextOf[kind]! += 1
    }
  }
}

/** Where tables have what goes to the port at `place` with that length. */
function entryOf(words: Uint32Array, place: number, octets: number): number {
  const port = words[place >> 2]! >>> 16
  return (port ^ (port >>> 8) ^ (octets * 37)) & (TABLE_ENTRIES - 1)
}

/** Whether the replies in two slots have the same peer and the same address of ours. @hot */
function isSameWay(words: Uint32Array, replies: Replies, a: number, b: number): boolean {
  const { placeOf, spaceOf } = replies
  if (spaceOf[a] !== spaceOf[b]) return false
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
