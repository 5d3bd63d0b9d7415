import type { SigningKey } from '../../dns/dnssec/dnskey.ts'
import { RRType } from '../../dns/iana/types.ts'
import type { ZoneKeys } from '../zone-keys.ts'

/**
 * Returns the keys that sign an RRset of that type. The key signing keys sign DNSKEY. They also sign CDS and CDNSKEY,
 * which a parent accepts only from a key that its DS covers (RFC 7344 section 4.1), and so do the zone signing keys: a
 * resolver may have the DNSKEY RRset of another provider, which has only these (RFC 8901 section 2.2.2).
 */
export function signersOf(keys: ZoneKeys, type: number, isApex: boolean): readonly SigningKey[] {
  const { keySigners, zoneSigners } = keys
  if (!isApex) return zoneSigners
  if (type === RRType.DNSKEY) return keySigners
  return isParentSet(type) ? [...keySigners, ...othersOf(zoneSigners, keySigners)] : zoneSigners
}

/** True if the key signing keys sign the RRset of that type at the apex. */
export function isKeySet(type: number): boolean {
  return type === RRType.DNSKEY || isParentSet(type)
}

function isParentSet(type: number): boolean {
  return type === RRType.CDS || type === RRType.CDNSKEY
}

/** Returns the keys of a list that another one does not have. */
function othersOf(keys: readonly SigningKey[], known: readonly SigningKey[]): SigningKey[] {
  return keys.filter(({ tag, algorithm }) => {
    return !known.some((one) => one.tag === tag && one.algorithm === algorithm)
  })
}
