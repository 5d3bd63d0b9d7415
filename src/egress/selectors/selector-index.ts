import { assert } from '../../base/assert.ts'
import { type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import { ROOT_NAME } from '../../dns/name/name.ts'
import type { Selector } from './selector.ts'
import { selectsLabels } from './selects-name.ts'

/** The policy object that has a selector. */
export interface SelectorOwner {
  /** The policy language, such as `egressfirewall`. */
  readonly consumer: string
  /** '' = the object has no namespace. */
  readonly namespace: string
  readonly object: string
}

/** A selector in the index. All owners of equal selectors share it. */
export interface IndexedSelector {
  readonly selector: Selector
  /** Never empty while the selector is in the index. */
  readonly owners: ReadonlySet<SelectorOwner>
}

/** How a change of one owner changed the set of all selectors. */
interface SelectorChange {
  readonly added: readonly IndexedSelector[]
  readonly removed: readonly IndexedSelector[]
}

/** Slots of the filter: for 10 000 selectors, a sixth of them is in use. */
const FILTER_BITS = 16
/** A count that may be too low, so it stays. */
const COUNT_MAX = 255
/** Distinguishes the parents of wildcards from names. */
const PARENT = 0x5bd1e995

interface Entry extends IndexedSelector {
  readonly owners: Set<SelectorOwner>
}

interface Owned {
  readonly owner: SelectorOwner
  readonly entries: ReadonlySet<Entry>
}

/**
 * The selectors of all policies. Finds those of a name by a trie of labels, from the root leftwards,
 * whose nodes are found by the suffix hashes of the query. The walk ends at the first suffix that no
 * selector has. It allocates nothing. Most names that no selector selects do not reach it: a filter
 * has the hashes of exact names, and of the names below which one label stands.
 */
export class SelectorIndex {
  readonly #root = new TrieNode(undefined, ROOT_NAME, 0)
  /** First node of each suffix hash; `TrieNode.next` has the others. */
  readonly #nodes = new Map<number, TrieNode>()
  readonly #entries = new Map<string, Entry>()
  readonly #owners = new Map<string, Owned>()
  readonly #name = new NameBuffer()
  /** Number of selectors by the hash of their suffix. */
  readonly #filter = new Uint8Array(1 << FILTER_BITS)
  /** Selectors that the filter does not have: those of several labels, and patterns. */
  #unfiltered = 0

  /** Number of different selectors. */
  get size(): number {
    return this.#entries.size
  }

  /** All selectors, each once. */
  all(): Iterable<IndexedSelector> {
    return this.#entries.values()
  }

  /** The selectors of one owner. */
  of(owner: SelectorOwner): Iterable<IndexedSelector> {
    return this.#owners.get(keyOf(owner))?.entries ?? []
  }

  /** Replaces the selectors of an owner; an empty list removes the owner. */
  set(owner: SelectorOwner, selectors: readonly Selector[]): SelectorChange {
    const key = keyOf(owner)
    const before = this.#owners.get(key)
    const holder = before?.owner ?? owner
    const added: Entry[] = []
    const entries = new Set<Entry>()
    for (const selector of selectors) {
      const known = this.#entries.get(selector.key)
      const entry: Entry = known ?? { selector, owners: new Set() }
      if (known === undefined) {
        this.#insert(entry)
        added.push(entry)
      }
      entry.owners.add(holder)
      entries.add(entry)
    }
    const removed: Entry[] = []
    for (const entry of before?.entries ?? []) {
      if (entries.has(entry)) continue
      entry.owners.delete(holder)
      if (entry.owners.size > 0) continue
      this.#remove(entry)
      removed.push(entry)
    }
    if (entries.size === 0) this.#owners.delete(key)
    else this.#owners.set(key, { owner: holder, entries })
    return { added, removed }
  }

  /** True if any selector selects the name. @hot */
  selects(name: HashedName): boolean {
    if (this.#unfiltered === 0) {
      const { suffixHash, labelCount } = name
      const isName = this.#filter[slotOf(suffixHash[0]!)] !== 0
      const isBelow = labelCount > 0 && this.#filter[slotOf(suffixHash[1]! ^ PARENT)] !== 0
      if (!isName && !isBelow) return false
    }
    return this.#walk(name, undefined)
  }

  /** Adds the selectors that select the name to `found`. Returns false if no selector does. @hot */
  find(name: HashedName, found: IndexedSelector[]): boolean {
    return this.#walk(name, found)
  }

  #walk(name: HashedName, found: IndexedSelector[] | undefined): boolean {
    let node: TrieNode | undefined = this.#root
    let isFound = false
    for (let label = name.labelCount; ; label--) {
      if (node.collect(name, label, found)) {
        isFound = true
        if (found === undefined) return true
      }
      if (label === 0 || node.children === 0) return isFound
      node = this.#child(node, name, label - 1)
      if (node === undefined) return isFound
    }
  }

  /** The node for the suffix that starts at that label. `parent`: the one for the next label. */
  #child(parent: TrieNode, name: HashedName, label: number): TrieNode | undefined {
    let node = this.#nodes.get(name.suffixHash[label]!)
    while (node !== undefined) {
      if (node.parent === parent && node.hasLabel(name.qname, name.labelOffset[label]!)) return node
      node = node.next
    }
    return undefined
  }

  #insert(entry: Entry): void {
    this.#entries.set(entry.selector.key, entry)
    const name = this.#name
    const { suffix } = entry.selector
    const isName = name.set(suffix, 0, suffix.length)
    assert(isName, 'the suffix of a selector is a name')
    this.#count(entry.selector, 1)
    let node = this.#root
    for (let label = name.labelCount - 1; label >= 0; label--) {
      node = this.#child(node, name, label) ?? this.#addChild(node, name, label)
    }
    node.entries.push(entry)
  }

  /** Adds a selector, whose suffix is in `#name`, to the filter, or removes it. */
  #count({ kind }: Selector, change: 1 | -1): void {
    if (kind !== 'exact' && kind !== 'one-label') {
      this.#unfiltered += change
      return
    }
    const hash = this.#name.suffixHash[0]!
    const slot = slotOf(kind === 'exact' ? hash : hash ^ PARENT)
    if (this.#filter[slot]! < COUNT_MAX) this.#filter[slot]! += change
  }

  #addChild(parent: TrieNode, name: HashedName, label: number): TrieNode {
    const start = name.labelOffset[label]!
    const hash = name.suffixHash[label]!
    const node = new TrieNode(parent, name.qname.slice(start, start + 1 + name.qname[start]!), hash)
    node.next = this.#nodes.get(hash)
    this.#nodes.set(hash, node)
    parent.children++
    return node
  }

  #remove(entry: Entry): void {
    const { suffix, key } = entry.selector
    this.#entries.delete(key)
    const name = this.#name
    name.set(suffix, 0, suffix.length)
    this.#count(entry.selector, -1)
    let node: TrieNode | undefined = this.#root
    for (let label = name.labelCount - 1; label >= 0; label--) {
      node = this.#child(node, name, label)
      assert(node !== undefined, 'a selector in the index has a node')
    }
    node.entries.splice(node.entries.indexOf(entry), 1)
    while (node.parent !== undefined && node.children === 0 && node.entries.length === 0) {
      this.#unlink(node)
      node.parent.children--
      node = node.parent
    }
  }

  #unlink(node: TrieNode): void {
    const first = this.#nodes.get(node.hash)
    if (first !== node) {
      let before = first
      while (before !== undefined && before.next !== node) before = before.next
      assert(before !== undefined, 'a node is in the list of its hash')
      before.next = node.next
    } else if (node.next === undefined) this.#nodes.delete(node.hash)
    else this.#nodes.set(node.hash, node.next)
  }
}

/** The slot of the filter for a hash. Its upper bits depend on all bits of the hash. @hot */
function slotOf(hash: number): number {
  return Math.imul(hash, 0x9e3779b1) >>> (32 - FILTER_BITS)
}

/** A suffix that selectors have, or a suffix of one. */
class TrieNode {
  readonly parent: TrieNode | undefined
  /** The leftmost label with its length octet. */
  readonly label: Uint8Array
  readonly hash: number
  /** Selectors whose suffix this is. */
  readonly entries: Entry[] = []
  children = 0
  /** Another node whose suffix has the same hash. */
  next: TrieNode | undefined

  constructor(parent: TrieNode | undefined, label: Uint8Array, hash: number) {
    this.parent = parent
    this.label = label
    this.hash = hash
  }

  hasLabel(name: Uint8Array, offset: number): boolean {
    const { label } = this
    // The first octet is the length, so the loop ends within the name.
    for (let i = 0; i < label.length; i++) if (label[i] !== name[offset + i]) return false
    return true
  }

  /**
   * Adds the selectors of this node that select the name to `found`. `count`: number of labels
   * before the suffix of this node. Without `found`, stops at the first.
   */
  collect(name: HashedName, count: number, found: IndexedSelector[] | undefined): boolean {
    let isFound = false
    for (let i = 0; i < this.entries.length; i++) {
      const entry = this.entries[i]!
      if (!selectsLabels(entry.selector, name, count)) continue
      if (found === undefined) return true
      found.push(entry)
      isFound = true
    }
    return isFound
  }
}

function keyOf({ consumer, namespace, object }: SelectorOwner): string {
  return `${consumer}/${namespace}/${object}`
}
