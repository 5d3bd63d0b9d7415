/** Where every name hash starts. A constant, so that images written to disk stay readable. */
export const NAME_HASH_SEED = 0x5e874a97

/**
 * Continues a hash with one more label to the left: names are hashed from the root leftwards, so that
 * one pass over a name yields the hash of every suffix. `bytes[offset]` is the label's length octet;
 * letters must be lower case. FNV-1a per octet; finish with `mixHash` before using bits of it.
 */
export function hashLabel(hash: number, bytes: Uint8Array, offset: number): number {
  const end = offset + bytes[offset]!
  let h = hash
  for (let i = offset; i <= end; i++) h = Math.imul(h ^ bytes[i]!, 0x01000193)
  return h
}

/** Finishes a hash: FNV-1a alone clusters in a power-of-two table (murmur3's final mixer). */
export function mixHash(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
