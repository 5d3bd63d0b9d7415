import { allocatePages } from '../../base/pages.ts'
import type { SearchTree } from '../mmdb/search-tree.ts'
import { leafOf, type Subtree, type TrieBuilder } from './trie-builder.ts'

/**
 * Copies the search tree of a database into a builder, each entry as the value that `valueOfEntry`
 * gives for its offset (-1: nothing known). Nodes that several records share are visited once, so a
 * corrupt tree costs no more than a sound one; a loop is found by its depth.
 */
export class TreeReducer {
  readonly #tree: SearchTree
  readonly #builder: TrieBuilder
  readonly #valueOfEntry: (entry: number) => number
  /** By node; valid where `#height` isn't 0. */
  readonly #result: Int32Array
  /** Longest way down from a node, by node: 1..128; 0 = not visited yet. */
  readonly #height: Uint8Array

  constructor(tree: SearchTree, builder: TrieBuilder, valueOfEntry: (entry: number) => number) {
    this.#tree = tree
    this.#builder = builder
    this.#valueOfEntry = valueOfEntry
    this.#result = new Int32Array(allocatePages(tree.nodeCount * 4), 0, tree.nodeCount)
    this.#height = new Uint8Array(allocatePages(tree.nodeCount), 0, tree.nodeCount)
  }

  /** The addresses of one family as a trie. Throws InputError if the tree is corrupt. */
  reduce(family: 1 | 2): Subtree {
    const bits = family === 1 ? 32 : 128
    if (bits > this.#tree.depthMax) return leafOf(this.#valueOfEntry(-1))
    return this.#visit(family === 1 ? this.#tree.ipv4Root : 0, bits)
  }

  /** `bits`: how many the addresses under `record` still have. */
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
