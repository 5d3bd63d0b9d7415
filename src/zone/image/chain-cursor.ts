import type { CanonicalOrder } from './canonical-order.ts'
import * as layout from './layout.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { CHAIN_BLOCK_COUNT, CHAIN_BLOCK_NODES, CHAIN_BLOCKS, CHAIN_PARAMETER_WORDS, CHAIN_REST } =
  layout

/**
 * A place in a chain (see layout.ts): at a node, or before all nodes. Reused; does not allocate. `words`: those of the
 * chain's arena.
 */
export class ChainCursor {
  /** Offset of the first node of the first block. */
  #firsts = 0
  #blocks = 0
  /** Number of the block with the node. */
  block = 0
  /** Index of the node in its block; -1 = before all nodes. */
  index = -1

  /** Moves before all nodes of a chain; 0 = an empty one. @hot */
  enter(words: Uint32Array, chain: number): void {
    this.#blocks = chain === 0 ? 0 : words[chain + CHAIN_BLOCKS]!
    this.#firsts = chain + CHAIN_REST + (chain === 0 ? 0 : words[chain + CHAIN_PARAMETER_WORDS]!)
    this.block = 0
    this.index = -1
  }

  /** Moves to the last node that is not after the name in `order`. True = it has this name. @hot */
  seek(words: Uint32Array, bytes: Uint8Array, order: CanonicalOrder): boolean {
    const firsts = this.#firsts
    let low = 0
    let high = this.#blocks
    while (low < high) {
      const middle = (low + high) >>> 1
      const compared = order.compare(words, bytes, words[firsts + middle]!)
      if (compared === 0) return this.#stop(middle, 0, true)
      if (compared > 0) low = middle + 1
      else high = middle
    }
    if (low === 0) return this.#stop(0, -1, false)
    return this.#seekInBlock(words, bytes, order, low - 1)
  }

  /** The name is after the first node of the block. */
  #seekInBlock(
    words: Uint32Array,
    bytes: Uint8Array,
    order: CanonicalOrder,
    block: number,
  ): boolean {
    const at = words[this.#firsts + this.#blocks + block]!
    const nodes = at + CHAIN_BLOCK_NODES
    let low = 1
    let high = words[at + CHAIN_BLOCK_COUNT]!
    while (low < high) {
      const middle = (low + high) >>> 1
      const compared = order.compare(words, bytes, words[nodes + middle]!)
      if (compared === 0) return this.#stop(block, middle, true)
      if (compared > 0) low = middle + 1
      else high = middle
    }
    return this.#stop(block, low - 1, false)
  }

  #stop(block: number, index: number, isFound: boolean): boolean {
    this.block = block
    this.index = index
    return isFound
  }

  /** Returns the node; 0 = before all nodes. @hot */
  node(words: Uint32Array): number {
    if (this.index < 0) return 0
    return words[this.blockAt(words, this.block) + CHAIN_BLOCK_NODES + this.index]!
  }

  /** Moves to the last node and returns it; 0 = the chain is empty. @hot */
  last(words: Uint32Array): number {
    this.block = this.#blocks
    this.index = 0
    return this.previous(words)
  }

  /** Moves to the node before and returns it; 0 = before all nodes. @hot */
  previous(words: Uint32Array): number {
    if (this.index <= 0 && this.block > 0) {
      this.block--
      this.index = words[this.blockAt(words, this.block) + CHAIN_BLOCK_COUNT]!
    }
    if (this.index >= 0) this.index--
    return this.node(words)
  }

  /** Moves to the next node and returns it; 0 = the cursor is at the last one, where it stays. */
  next(words: Uint32Array): number {
    if (this.#blocks === 0) return 0
    const isLast = this.index + 1 === words[this.blockAt(words, this.block) + CHAIN_BLOCK_COUNT]!
    if (isLast && this.block + 1 === this.#blocks) return 0
    if (isLast) this.block++
    this.index = isLast ? 0 : this.index + 1
    return this.node(words)
  }

  /** Blocks of the chain. */
  get blocks(): number {
    return this.#blocks
  }

  /** Returns the offset of a block by its number. */
  blockAt(words: Uint32Array, block: number): number {
    return words[this.#firsts + this.#blocks + block]!
  }
}
