const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193
/** Kubernetes' letters for generated names: no vowels, and no digits that look like letters. */
const SAFE_LETTERS = 'bcdfghjklmnpqrstvwxz2456789'
/** Go prints a string so before it is hashed. */
const TYPE_PREFIX = '(string)'

/**
 * Returns the name that OVN-Kubernetes gives to the DNSNameResolver of a DNS name: `dns-` and the hash of
 * Kubernetes' ComputeHash. `collisions`: objects of other DNS names that had the earlier names.
 */
export function resolverObjectName(dnsName: string, collisions = 0): string {
  const count = Buffer.alloc(collisions === 0 ? 0 : 8)
  if (collisions !== 0) count.writeUInt32LE(collisions)
  let hash = FNV_OFFSET
  for (const octet of Buffer.concat([Buffer.from(TYPE_PREFIX + dnsName), count])) {
    hash = Math.imul(hash ^ octet, FNV_PRIME) >>> 0
  }
  const letters = Buffer.from(String(hash)).map((octet) => {
    return SAFE_LETTERS.charCodeAt(octet % SAFE_LETTERS.length)
  })
  return `dns-${Buffer.from(letters).toString('latin1')}`
}
