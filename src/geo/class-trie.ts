import type { PointOrderData } from './classes/point-orders.ts'
import type { GeoCode } from './code.ts'

/**
 * Maps each address to a class: two prefixes have the same class if no code in use distinguishes
 * them. Class 0 is "unknown, no code matches".
 */
export interface ClassTrie {
  readonly classCount: number
  /**
   * The codes that match clients of each class, in the order of the GEO ladder. No class lists the
   * default `*`: it matches every client.
   */
  readonly codesOf: readonly (readonly GeoCode[])[]
  /** Leaf depth of the last `lookup`, in bits of the client's own family: the ECS scope. */
  depth: number
  /** The trie as plain data. */
  readonly data: ClassTrieData
  /** Returns the class of an address; reads at most `bits` bits of it. `family`: 1 or 2. */
  lookup(address: Uint8Array, family: number, bits: number): number
}

/** The bit that marks a word as a leaf; the other 31 bits are the leaf's class. */
export const LEAF = 0x80000000

/**
 * The content of a trie: plain data over shared memory, so that one thread can build it and other
 * threads read it.
 *
 *     words   node 0       node 1
 *            ┌──────┬─────┬──────┬─────┬──
 *            │ zero │ one │ zero │ one │ …      a word: node number, or LEAF | class
 *            └──────┴─────┴──────┴─────┴──
 *
 * Equal subtrees are stored once. IPv4-mapped IPv6 addresses lead into the IPv4 part, so that both
 * forms of a client's address have the same class.
 */
export interface ClassTrieData {
  /** Pairs; on a SharedArrayBuffer. */
  readonly words: Uint32Array
  /** Words where IPv4 and IPv6 addresses start, encoded as above. */
  readonly rootIPv4: number
  readonly rootIPv6: number
  /** The results of the first 16 bits (see `composeTop`); on SharedArrayBuffers. */
  readonly topIPv4: Uint32Array
  readonly topIPv6: Uint32Array
  readonly codesOf: readonly (readonly GeoCode[])[]
  /** Undefined = no endpoint is chosen by distance. */
  readonly near?: PointOrderData | undefined
}

/** Bits that a walk resolves with one table access: they are most of its steps. */
const TOP_BITS = 16
const TOP_DEPTH_SHIFT = 26
const TOP_CLASS_MASK = 2 ** TOP_DEPTH_SHIFT - 1

/**
 * Returns a table by the first 16 bits of an address, starting at `root`. An entry is the node
 * below these bits, or for a leaf that ends earlier, LEAF | depth << 26 | class.
 */
export function composeTop(words: Uint32Array, root: number): Uint32Array {
  const top = new Uint32Array(new SharedArrayBuffer(4 << TOP_BITS))
  const descend = (word: number, depth: number, prefix: number): void => {
    if (word < LEAF && depth < TOP_BITS) {
      descend(words[word * 2]!, depth + 1, prefix * 2)
      descend(words[word * 2 + 1]!, depth + 1, prefix * 2 + 1)
      return
    }
    const start = prefix << (TOP_BITS - depth)
    const end = (prefix + 1) << (TOP_BITS - depth)
    top.fill(word < LEAF ? word : LEAF + depth * 2 ** TOP_DEPTH_SHIFT + (word - LEAF), start, end)
  }
  descend(root, 0, 0)
  return top
}

/** Looks up classes in a trie in place. Each thread has its own object, because `depth` is state. */
export class FlatClassTrie implements ClassTrie {
  readonly classCount: number
  readonly codesOf: readonly (readonly GeoCode[])[]
  depth = 0
  readonly data: ClassTrieData
  readonly #words: Uint32Array
  readonly #rootIPv4: number
  readonly #rootIPv6: number
  readonly #topIPv4: Uint32Array
  readonly #topIPv6: Uint32Array

  constructor(data: ClassTrieData) {
    this.data = data
    this.classCount = data.codesOf.length
    this.codesOf = data.codesOf
    this.#words = data.words
    this.#rootIPv4 = data.rootIPv4
    this.#rootIPv6 = data.rootIPv6
    this.#topIPv4 = data.topIPv4
    this.#topIPv6 = data.topIPv6
  }

  /**
   * If `bits` end inside the trie, the walk continues as if the rest of the address were zeros. The
   * result is then always that for the lowest address of the client's prefix. `depth` exceeds
   * `bits`, which signals a resolver that a longer prefix gets a more precise answer (RFC 7871
   * section 7.2.1). @hot
   */
  lookup(address: Uint8Array, family: number, bits: number): number {
    const words = this.#words
    let word = 0
    let depth = 0
    if (bits >= TOP_BITS) {
      const top = family === 1 ? this.#topIPv4 : this.#topIPv6
      word = top[(address[0]! << 8) | address[1]!]!
      if (word >= LEAF) {
        this.depth = (word - LEAF) >>> TOP_DEPTH_SHIFT
        return word & TOP_CLASS_MASK
      }
      depth = TOP_BITS
    } else word = family === 1 ? this.#rootIPv4 : this.#rootIPv6
    while (word < LEAF) {
      const bit = depth < bits ? (address[depth >> 3]! >> (7 - (depth & 7))) & 1 : 0
      word = words[word * 2 + bit]!
      depth++
    }
    this.depth = depth
    return word - LEAF
  }
}

const EMPTY_TOP = composeTop(new Uint32Array(0), LEAF)

/** Returns the trie of a server without location data: every client is in class 0, at depth 0. */
export function emptyTrie(): FlatClassTrie {
  return new FlatClassTrie({
    words: new Uint32Array(0),
    rootIPv4: LEAF,
    rootIPv6: LEAF,
    topIPv4: EMPTY_TOP,
    topIPv6: EMPTY_TOP,
    codesOf: [[]],
  })
}
