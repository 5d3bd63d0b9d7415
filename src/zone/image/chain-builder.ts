import { ChainCursor } from './chain-cursor.ts'
import * as L from './layout.ts'
import type { NodeStore, ZoneEntry } from './node-store.ts'

/** What a chain is for: the type of its records, and their parameters. */
export interface ChainKind {
  /** NSEC or NSEC3; 0 = the zone has no chain. */
  readonly type: number
  /** NSEC3PARAM rdata; empty for NSEC. */
  readonly parameters: Uint8Array
}

/**
 * Writes a new version of a chain (see layout.ts), from its first node to its last: takes over blocks that stay, and
 * writes blocks for other nodes.
 */
export class ChainBuilder {
  readonly #nodes: NodeStore
  readonly #blocks: number[] = []
  /** The nodes of the present block. */
  #pending: number[] = []
  #addedWords = 0
  #droppedWords = 0

  constructor(nodes: NodeStore) {
    this.#nodes = nodes
  }

  /** Appends nodes to the present block. */
  addNodes(nodes: Iterable<number>): void {
    for (const node of nodes) this.#pending.push(node)
  }

  /** Ends the present block, unless it would have too few nodes. */
  endBlock(): void {
    if (this.#pending.length >= L.CHAIN_BLOCK_MIN) this.#flush()
  }

  /** Appends a block of the version before, or its nodes if those before it are too few for a block. */
  addBlock(block: number): void {
    if (this.#pending.length === 0) {
      this.#blocks.push(block)
      return
    }
    this.addNodes(this.dropBlock(block))
    this.endBlock()
  }

  /** Notes that the new version does not use a block. Returns its nodes. */
  dropBlock(block: number): Uint32Array {
    const nodes = nodesOf(this.#nodes.arena.words, block)
    this.#droppedWords += L.CHAIN_BLOCK_NODES + nodes.length
    return nodes
  }

  /** Notes that the new version uses no block of a chain. */
  dropChain(chain: number): void {
    const { words } = this.#nodes.arena
    const cursor = new ChainCursor()
    cursor.enter(words, chain)
    for (let i = 0; i < cursor.blocks; i++) this.dropBlock(cursor.blockAt(words, i))
  }

  /** Writes the head, and makes this the newest chain of a zone, as of `version`. */
  finish(entry: ZoneEntry, { type, parameters }: ChainKind, version: number): void {
    const { length } = this.#pending
    const last = length > 0 && length < L.CHAIN_BLOCK_MIN ? this.#blocks.pop() : undefined
    if (last !== undefined) this.#pending = [...this.dropBlock(last), ...this.#pending]
    this.#flush()
    const { arena } = this.#nodes
    const parameterWords = Math.ceil(parameters.length / 4)
    const chain = arena.allocate(headWords(parameterWords, this.#blocks.length))
    const { words, bytes } = arena
    const old = words[entry.offset + L.ZONE_CHAIN]!
    words[chain + L.CHAIN_VERSION] = version
    // No reader saw a chain of this unpublished version: link to the one before it.
    words[chain + L.CHAIN_PREVIOUS] =
      old !== 0 && words[old + L.CHAIN_VERSION] === version ? words[old + L.CHAIN_PREVIOUS]! : old
    words[chain + L.CHAIN_TYPE] = type
    words[chain + L.CHAIN_BLOCKS] = this.#blocks.length
    words[chain + L.CHAIN_PARAMETER_WORDS] = parameterWords
    bytes.set(parameters, (chain + L.CHAIN_REST) * 4)
    const firsts = chain + L.CHAIN_REST + parameterWords
    for (const [i, block] of this.#blocks.entries()) {
      words[firsts + i] = words[block + L.CHAIN_BLOCK_NODES]!
      words[firsts + this.#blocks.length + i] = block
    }
    entry.liveWords += this.#addedWords + arena.tail - chain
    const oldWords = old === 0 ? 0 : headWordsOf(words, old)
    this.#nodes.discard(entry, this.#droppedWords + oldWords)
    Atomics.store(words, entry.offset + L.ZONE_CHAIN, chain)
  }

  /** Writes the pending nodes in blocks of about the same size. */
  #flush(): void {
    const nodes = this.#pending
    const blocks = Math.ceil(nodes.length / L.CHAIN_BLOCK_MAX)
    for (let i = 0; i < blocks; i++) {
      const from = Math.floor((nodes.length * i) / blocks)
      const to = Math.floor((nodes.length * (i + 1)) / blocks)
      this.#blocks.push(this.#write(nodes.slice(from, to)))
    }
    this.#pending = []
  }

  #write(nodes: readonly number[]): number {
    const size = L.CHAIN_BLOCK_NODES + nodes.length
    const block = this.#nodes.arena.allocate(size)
    this.#addedWords += size
    this.#nodes.arena.words[block + L.CHAIN_BLOCK_COUNT] = nodes.length
    this.#nodes.arena.words.set(nodes, block + L.CHAIN_BLOCK_NODES)
    return block
  }
}

/** Returns the words of the head of a chain, which its blocks are not in. */
function headWordsOf(words: Uint32Array, chain: number): number {
  return headWords(words[chain + L.CHAIN_PARAMETER_WORDS]!, words[chain + L.CHAIN_BLOCKS]!)
}

function headWords(parameterWords: number, blocks: number): number {
  return L.CHAIN_REST + parameterWords + blocks * 2
}

/** Returns the nodes of a block of a chain. */
export function nodesOf(words: Uint32Array, block: number): Uint32Array {
  const nodes = block + L.CHAIN_BLOCK_NODES
  return words.subarray(nodes, nodes + words[block + L.CHAIN_BLOCK_COUNT]!)
}
