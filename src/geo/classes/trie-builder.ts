import { allocatePages } from '../../base/pages.ts'
import { mixHash } from '../../dns/name/hash.ts'
import { LEAF } from '../class-trie.ts'

/** Combines two subtrees to one key: both are below 2^27, so the key is below 2^53. */
const KEY_STRIDE = 0x10000000

/** A subtree: a node number (0 and above), or a leaf, `leafOf(value)` (below 0). */
export type Subtree = number

export function leafOf(value: number): Subtree {
  return -1 - value
}

function valueOfLeaf(leaf: Subtree): number {
  return -1 - leaf
}

/**
 * Tries under construction. Equal subtrees are one subtree, because every node is looked up before
 * it is added. A node with the same leaf on both sides is that leaf. So tries are always minimal,
 * `===` compares them, and operations cache their results by subtree.
 */
export class TrieBuilder {
  #zero = wordsOf(1024)
  #one = wordsOf(1024)
  #count = 0
  /** Open addressing: node number + 1, 0 = free. At most half full. */
  #slots = wordsOf(4096)
  /** Results of `map` by node, valid if the node's number in `#resultRuns` is that of the run. */
  #results = wordsOf(0)
  #resultRuns = wordsOf(0)
  #run = 0

  /** Returns the subtree with these two sides. */
  join(zero: Subtree, one: Subtree): Subtree {
    if (zero === one && zero < 0) return zero
    const mask = this.#slots.length - 1
    let slot = mixHash(Math.imul(zero, 0x9e3779b1) ^ one) & mask
    for (;;) {
      const node = this.#slots[slot]! - 1
      if (node === -1) break
      if (this.#zero[node] === zero && this.#one[node] === one) return node
      slot = (slot + 1) & mask
    }
    return this.#add(zero, one, slot)
  }

  /** Returns one side of a subtree; both sides of a leaf are the leaf itself. */
  zeroOf(subtree: Subtree): Subtree {
    return subtree < 0 ? subtree : this.#zero[subtree]!
  }
  oneOf(subtree: Subtree): Subtree {
    return subtree < 0 ? subtree : this.#one[subtree]!
  }

  /**
   * Returns the tries with every leaf value replaced. Calls `replace` for each leaf of each node, so it must be fast
   * for a value that it has seen.
   */
  map(roots: readonly Subtree[], replace: (value: number) => number): Subtree[] {
    if (this.#results.length < this.#count) {
      this.#results = wordsOf(this.#zero.length)
      this.#resultRuns = wordsOf(this.#zero.length)
    }
    const results = this.#results
    const runs = this.#resultRuns
    const run = ++this.#run
    const visit = (subtree: Subtree): Subtree => {
      if (subtree < 0) return leafOf(replace(valueOfLeaf(subtree)))
      if (runs[subtree] === run) return results[subtree]!
      const joined = this.join(visit(this.#zero[subtree]!), visit(this.#one[subtree]!))
      runs[subtree] = run
      results[subtree] = joined
      return joined
    }
    return roots.map(visit)
  }

  /** Merges two tries: every address gets the value `merge(value in a, value in b)`. */
  combine(a: Subtree, b: Subtree, merge: (a: number, b: number) => number): Subtree {
    const memo = new Map<number, Subtree>()
    const visit = (a: Subtree, b: Subtree): Subtree => {
      if (a < 0 && b < 0) return leafOf(merge(valueOfLeaf(a), valueOfLeaf(b)))
      const key = a * KEY_STRIDE + b
      const known = memo.get(key)
      if (known !== undefined) return known
      const result = this.join(
        visit(this.zeroOf(a), this.zeroOf(b)),
        visit(this.oneOf(a), this.oneOf(b)),
      )
      memo.set(key, result)
      return result
    }
    return visit(a, b)
  }

  /** Returns `trie` with the subtree under a prefix replaced by `change(subtree)`. */
  graft(
    trie: Subtree,
    prefix: Uint8Array,
    bits: number,
    change: (subtree: Subtree) => Subtree,
  ): Subtree {
    const visit = (subtree: Subtree, depth: number): Subtree => {
      if (depth === bits) return change(subtree)
      const zero = this.zeroOf(subtree)
      const one = this.oneOf(subtree)
      const bit = (prefix[depth >> 3]! >> (7 - (depth & 7))) & 1
      return bit === 0
        ? this.join(visit(zero, depth + 1), one)
        : this.join(zero, visit(one, depth + 1))
    }
    return visit(trie, 0)
  }

  /** Returns the words (see ClassTrieData) of only the given tries, and the word of each root. */
  compact(roots: readonly Subtree[]): { words: Uint32Array; roots: number[] } {
    // Number of the node in the result, plus one; 0 = not reached yet.
    const numbers = wordsOf(this.#count)
    const reached = wordsOf(this.#count)
    let count = 0
    const reach = (subtree: Subtree): void => {
      if (subtree < 0 || numbers[subtree] !== 0) return
      reached[count++] = subtree
      numbers[subtree] = count
      reach(this.#zero[subtree]!)
      reach(this.#one[subtree]!)
    }
    roots.forEach(reach)
    const print = (subtree: Subtree): number =>
      subtree < 0 ? LEAF + valueOfLeaf(subtree) : numbers[subtree]! - 1
    const words = new Uint32Array(new SharedArrayBuffer(count * 8))
    for (let node = 0; node < count; node++) {
      const subtree = reached[node]!
      words[node * 2] = print(this.#zero[subtree]!)
      words[node * 2 + 1] = print(this.#one[subtree]!)
    }
    return { words, roots: roots.map(print) }
  }

  #add(zero: Subtree, one: Subtree, slot: number): Subtree {
    if (this.#count === this.#zero.length) {
      this.#zero = doubled(this.#zero)
      this.#one = doubled(this.#one)
    }
    const node = this.#count++
    this.#zero[node] = zero
    this.#one[node] = one
    this.#slots[slot] = node + 1
    if (this.#count * 2 > this.#slots.length) this.#rehash()
    return node
  }

  #rehash(): void {
    this.#slots = wordsOf(this.#slots.length * 2)
    const mask = this.#slots.length - 1
    for (let node = 0; node < this.#count; node++) {
      let slot = mixHash(Math.imul(this.#zero[node]!, 0x9e3779b1) ^ this.#one[node]!) & mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
      this.#slots[slot] = node + 1
    }
  }
}

function wordsOf(length: number): Int32Array<ArrayBuffer> {
  return new Int32Array(allocatePages(length * 4), 0, length)
}

function doubled(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = wordsOf(array.length * 2)
  larger.set(array)
  return larger
}
