import type { GeoCode } from './code.ts'

/**
 * The world reduced to classes: two prefixes have one class when no code in use tells them apart.
 * Class 0 is "unknown, no code matches".
 */
export interface ClassTrie {
  readonly classCount: number
  /**
   * The codes that match clients of that class, in the order of the GEO ladder. The default `*` is
   * in none: it matches everyone.
   */
  readonly codesOf: readonly (readonly GeoCode[])[]
  /** Leaf depth of the last `lookup`, in bits of the client's own family: the ECS scope. */
  depth: number
  /** What it is made of. */
  readonly data: ClassTrieData
  /** Class of an address; looks at no more than `bits` of it. `family`: 1 or 2. */
  lookup(address: Uint8Array, family: number, bits: number): number
}

/** Set in a word that is a leaf; the other 31 bits are its class. */
export const LEAF = 0x80000000

/**
 * What a trie is made of; plain data over shared memory, so that one thread can build it and others
 * read it.
 *
 *     words   node 0       node 1
 *            ┌──────┬─────┬──────┬─────┬──
 *            │ zero │ one │ zero │ one │ …      a word: node number, or LEAF | class
 *            └──────┴─────┴──────┴─────┴──
 *
 * Equal subtrees are stored once. IPv4-mapped IPv6 addresses lead into the IPv4 part, so that a client
 * is in one place however it is written.
 */
export interface ClassTrieData {
  /** Pairs; on a SharedArrayBuffer. */
  readonly words: Uint32Array
  /** Where IPv4 and IPv6 addresses start: words as above. */
  readonly rootIPv4: number
  readonly rootIPv6: number
  readonly codesOf: readonly (readonly GeoCode[])[]
}

/** Walks a trie in place. One per thread: `depth` is state. */
export class FlatClassTrie implements ClassTrie {
  readonly classCount: number
  readonly codesOf: readonly (readonly GeoCode[])[]
  depth = 0
  readonly data: ClassTrieData
  readonly #words: Uint32Array
  readonly #rootIPv4: number
  readonly #rootIPv6: number

  constructor(data: ClassTrieData) {
    this.data = data
    this.classCount = data.codesOf.length
    this.codesOf = data.codesOf
    this.#words = data.words
    this.#rootIPv4 = data.rootIPv4
    this.#rootIPv6 = data.rootIPv6
  }

  /**
   * Where `bits` end inside the trie, the walk goes on as if the rest of the address were zeros: the
   * answer is then that for the lowest address of the client's prefix, always the same one, and
   * `depth` exceeds `bits`, which tells a resolver that a longer prefix would have been answered
   * more exactly (RFC 7871 section 7.2.1). @hot
   */
  lookup(address: Uint8Array, family: number, bits: number): number {
    const words = this.#words
    let word = family === 1 ? this.#rootIPv4 : this.#rootIPv6
    let depth = 0
    while (word < LEAF) {
      const bit = depth < bits ? (address[depth >> 3]! >> (7 - (depth & 7))) & 1 : 0
      word = words[word * 2 + bit]!
      depth++
    }
    this.depth = depth
    return word - LEAF
  }

  /** Nodes of both parts: 8 octets each. */
  get nodeCount(): number {
    return this.#words.length / 2
  }
}

/** The trie of a server that knows no places: everyone is in class 0, at depth 0. */
export function emptyTrie(): FlatClassTrie {
  return new FlatClassTrie({
    words: new Uint32Array(0),
    rootIPv4: LEAF,
    rootIPv6: LEAF,
    codesOf: [[]],
  })
}
