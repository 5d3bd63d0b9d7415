import { createHash } from 'node:crypto'
import { lowerName } from '../name/name.ts'
import { keyTag } from './key-tag.ts'

/** Digests of a DS (RFC 4034 section 5.1.4, RFC 4509, RFC 6605). */
const HASH_OF_DIGEST = { 1: 'sha1', 2: 'sha256', 4: 'sha384' } as const

/** Number of a digest that we make. */
export type DigestType = keyof typeof HASH_OF_DIGEST

/** Returns the rdata of the DS, or the CDS, for a key. `owner`: apex of the zone. `dnskey`: DNSKEY rdata. */
export function composeDs(owner: Uint8Array, dnskey: Uint8Array, digest: DigestType): Uint8Array {
  const tag = keyTag(dnskey)
  const hash = createHash(HASH_OF_DIGEST[digest]).update(lowerName(owner)).update(dnskey).digest()
  return Buffer.concat([Buffer.from([tag >> 8, tag & 0xff, dnskey[3]!, digest]), hash])
}

/** True if a DS refers to a key. Digests that we do not know never match. */
export function matchesDs(owner: Uint8Array, dnskey: Uint8Array, ds: Uint8Array): boolean {
  const digest = ds[3]
  if (digest !== 1 && digest !== 2 && digest !== 4) return false
  return Buffer.compare(composeDs(owner, dnskey, digest), ds) === 0
}
