import { mixHash, NAME_HASH_SEED } from '../../dns/name/hash.ts'

/** A hash table from owner names to nodes, numbered from 0. Open addressing, at most half full. */
export interface NodeIndex {
  /** Node numbers by hash; -1 = free. The length is a power of two. */
  readonly slots: Int32Array
  /** Per node: the hash of the owner, its offset in `octets`, and its length. */
  readonly hash: Int32Array
  readonly ownerOffset: Uint32Array
  readonly ownerOctets: Uint8Array
  readonly octets: Uint8Array
}

/** Returns the node of an owner, or -1. `owner`: lower-case wire form in 0..octets-1. @hot */
export function findNode(index: NodeIndex, owner: Uint8Array, octets: number): number {
  return index.slots[findSlot(index, owner, octets, hashOctets(owner, octets))]!
}

/** Returns the slot of the owner's node, or the free slot where it belongs. @hot */
export function findSlot(
  index: NodeIndex,
  owner: Uint8Array,
  octets: number,
  hash: number,
): number {
  const { slots } = index
  const mask = slots.length - 1
  let slot = hash & mask
  for (;;) {
    const node = slots[slot]!
    if (node === -1) return slot
    if (index.hash[node] === hash && isOwner(index, node, owner, octets)) return slot
    slot = (slot + 1) & mask
  }
}

/** @hot */
export function isOwner(
  index: NodeIndex,
  node: number,
  owner: Uint8Array,
  octets: number,
): boolean {
  if (index.ownerOctets[node] !== octets) return false
  const offset = index.ownerOffset[node]!
  for (let i = 0; i < octets; i++) if (index.octets[offset + i] !== owner[i]) return false
  return true
}

/** @hot */
export function hashOctets(octets: Uint8Array, count: number): number {
  let hash = NAME_HASH_SEED
  for (let i = 0; i < count; i++) hash = Math.imul(hash ^ octets[i]!, 0x01000193)
  return mixHash(hash) | 0
}
