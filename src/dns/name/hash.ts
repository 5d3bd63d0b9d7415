/** Initial value of every name hash. A constant, so that images written to disk remain readable. */
export const NAME_HASH_SEED = 0x5e874a97

/** Initial value of the hash of a label. */
export const LABEL_SEED = 0x811c9dc5
const LABEL_FACTOR = 0x01000193
const NAME_FACTOR = 0x9e3779b1

/**
 * Continues a hash with one more label to the left. Names are hashed from the root leftwards, so
 * that one pass yields the hash of every suffix. `bytes[offset]` is the label's length octet;
 * letters must be lower case. Call `mixHash` before using bits of the result.
 */
export function hashLabel(hash: number, bytes: Uint8Array, offset: number): number {
  const end = offset + bytes[offset]! + 1
  let h = LABEL_SEED
  let i = offset
  for (; i + 4 <= end; i += 4) {
    const word = bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24)
    h = addWord(h, word)
  }
  let rest = 0
  if (i < end) rest = bytes[i]!
  if (i + 1 < end) rest |= bytes[i + 1]! << 8
  if (i + 2 < end) rest |= bytes[i + 2]! << 16
  return joinHash(hash, addWord(h, rest))
}

/** Returns the hash of a name from the hash of its first label and the hash of the rest. */
export function joinHash(rest: number, label: number): number {
  return Math.imul(rest, NAME_FACTOR) ^ label
}

/** FNV-1a with four octets at a time, folded because its upper bits would not reach the lower ones. */
export function addWord(hash: number, word: number): number {
  const h = Math.imul(hash ^ word, LABEL_FACTOR)
  return h ^ (h >>> 15)
}

/** Finishes a hash with murmur3's final mixer: FNV-1a alone clusters in a power-of-two table. */
export function mixHash(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
