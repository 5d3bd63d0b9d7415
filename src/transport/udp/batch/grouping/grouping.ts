import * as sockaddr from '../../../sockaddr.ts'
import * as layouts from '../layout.ts'
import { isSameAsked } from '../pktinfo.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { AF_INET6 } = sockaddr
const { BATCH, UNIT_CONTROL } = layouts

/**
 * Longest reply that is grouped. With its headers, such a reply fits into every path (576 octets,
 * RFC 791 section 3.2). So the kernel refuses no group for its length, and a batch is within the
 * limit of one message.
 */
const GROUPED_OCTETS_MAX = 512

/** A power of two. */
const TABLE_ENTRIES = 256

/** The fields that `Grouping` reads, by send slot. */
export interface Replies {
  /** Offset of the addresses of the peer and of ours: `sockaddr`, control message. */
  readonly placeOf: Uint32Array
  /** Octets of that control message; 0 = none. */
  readonly spaceOf: Uint32Array
  readonly lengthOf: Uint32Array
}

/** Marks the absence of a group. */
const NONE = 0xffff

/**
 * Sorts replies into groups with the same peer, the same local address and the same length. A
 * shorter reply without others of its length may be the last:
 *
 *     slots 0..5, peers and lengths a50 a50 b60 a50 c60 a40   ─▶   3 groups, order 0 1 3 5 2 4, starts 0 4 5 6
 *
 * Peers are found by their port alone. If two peers have the same port and alternate, each reply
 * may be a group.
 */
export class Grouping {
  /** Slots, sorted by group. */
  readonly order: Uint16Array = new Uint16Array(BATCH)
  /** By group: its start in `order`. One more entry marks the end of the last group. */
  readonly starts: Uint16Array = new Uint16Array(BATCH + 1)
  /* Similar replies are a kind. A group is one kind, and at most one other kind that ends it. */
  readonly #kindOf: Uint16Array = new Uint16Array(BATCH)
  /**
   * By kind: its first slot; its number of replies; the kind that ends it; the place of its next
   * slot in `order`.
   */
  readonly #leaderOf: Uint16Array = new Uint16Array(BATCH)
  readonly #sizeOf: Uint16Array = new Uint16Array(BATCH)
  readonly #endOf: Uint16Array = new Uint16Array(BATCH)
  readonly #nextOf: Uint16Array = new Uint16Array(BATCH)
  /** By kind: 1 if it ends another kind. */
  readonly #isEnd: Uint8Array = new Uint8Array(BATCH)
  /**
   * By port and length: a kind, perhaps of an earlier batch. So the current data of its first slot
   * decides.
   */
  readonly #kinds: Uint16Array = new Uint16Array(TABLE_ENTRIES)
  /** By port: a kind without an end; as in `#kinds`, it may be of an earlier batch. */
  readonly #open: Uint16Array = new Uint16Array(TABLE_ENTRIES)

  /**
   * Groups the replies in slots `from` to `to` - 1 and returns the number of groups. Fills `order`
   * and `starts` only if there are fewer groups than replies. @hot
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

  /** Gives kinds an end from the kinds with one reply. Returns how many it gave. */
  #join(words: Uint32Array, replies: Replies, kinds: number): number {
    let ends = 0
    for (let kind = 0; kind < kinds; kind++) {
      const leader = this.#leaderOf[kind]!
      if (replies.lengthOf[leader]! > GROUPED_OCTETS_MAX) continue
      const entry = entryOf(words, replies.placeOf[leader]!, 0)
      const other = this.#open[entry]!
      this.#open[entry] = kind
      if (other >= kind || this.#isEnd[other] === 1 || this.#endOf[other] !== NONE) continue
      // An entry of an earlier batch may now refer to a long reply.
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

  /** Computes the start of each group, then assigns the slots. */
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

/** Index in the tables for replies to the port at `place` with that length. */
function entryOf(words: Uint32Array, place: number, octets: number): number {
  const port = words[place >> 2]! >>> 16
  return (port ^ (port >>> 8) ^ (octets * 37)) & (TABLE_ENTRIES - 1)
}

/** Whether the replies in two slots have the same peer and the same local address. @hot */
function isSameWay(words: Uint32Array, replies: Replies, a: number, b: number): boolean {
  const { placeOf, spaceOf } = replies
  if (spaceOf[a] !== spaceOf[b]) return false
  const p = placeOf[a]!
  const q = placeOf[b]!
  if (!isSamePeer(words, p >> 2, q >> 2)) return false
  return isSameAsked(words, p + UNIT_CONTROL, q + UNIT_CONTROL, spaceOf[a]!)
}

/**
 * Compares the 32-bit fields of two `sockaddr`: family and port, address; for IPv6 also flow and
 * scope.
 */
function isSamePeer(words: Uint32Array, p: number, q: number): boolean {
  const head = words[p]!
  if (head !== words[q] || words[p + 1] !== words[q + 1]) return false
  if ((head & 0xffff) !== AF_INET6) return true
  for (let i = 2; i < 7; i++) if (words[p + i] !== words[q + i]) return false
  return true
}
