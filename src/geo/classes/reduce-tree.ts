import { allocatePages } from '../../base/pages.ts'
import type { SearchTree } from '../mmdb/search-tree.ts'
import { leafOf, type Subtree, type TrieBuilder } from './trie-builder.ts'

/**
 * Copies the search tree of a database into a builder, and replaces each entry by the result of
 * `valueOfEntry` for its offset (-1: no entry). Visits shared nodes once, so that a corrupt tree
 * takes no longer than a valid one. Detects a loop by its depth.
 */
export class TreeReducer {
  readonly #tree: SearchTree
  readonly #builder: TrieBuilder
  readonly #valueOfEntry: (entry: number) => number
  /** Result by node; valid if `#height` isn't 0. */
  readonly #result: Int32Array
  /** Longest path down from a node, by node: 1..128; 0 = not visited yet. */
  readonly #height: Uint8Array

  constructor(tree: SearchTree, builder: TrieBuilder, valueOfEntry: (entry: number) => number) {
    this.#tree = tree
    this.#builder = builder
    this.#valueOfEntry = valueOfEntry
    this.#result = new Int32Array(allocatePages(tree.nodeCount * 4), 0, tree.nodeCount)
    this.#height = new Uint8Array(allocatePages(tree.nodeCount), 0, tree.nodeCount)
  }

  /** Returns the addresses of one family as a trie. Throws InputError if the tree is corrupt. */
  reduce(family: 1 | 2): Subtree {
    const bits = family === 1 ? 32 : 128
    if (bits > this.#tree.depthMax) return leafOf(this.#valueOfEntry(-1))
    return this.#visit(family === 1 ? this.#tree.ipv4Root : 0, bits)
  }

  /** `bits`: number of bits that remain in the addresses under `record`. */
  #visit(record: number, bits: number): Subtree {
    const tree = this.#tree
    if (record >= tree.nodeCount) return leafOf(this.#valueOfEntry(tree.entryOf(record)))
    if (bits === 0 || this.#height[record]! > bits) throw tree.tooDeep()
    if (this.#height[record] !== 0) return this.#result[record]!
    const zeroRecord = tree.child(record, 0)
    const oneRecord = tree.child(record, 1)
    const zero = this.#visit(zeroRecord, bits - 1)
    const one = this.#visit(oneRecord, bits - 1)
    this.#height[record] = 1 + Math.max(this.#heightOf(zeroRecord), this.#heightOf(oneRecord))
    const result = this.#builder.join(zero, one)
    this.#result[record] = result
    return result
  }

  #heightOf(record: number): number {
    return record < this.#tree.nodeCount ? this.#height[record]! : 0
  }
}
