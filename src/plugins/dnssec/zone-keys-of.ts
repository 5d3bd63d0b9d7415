import { FLAGS_KSK, type SigningKey } from '../../dns/dnssec/dnskey.ts'
import type { ZoneKeys } from '../../signing/zone-keys.ts'

/** The flag of a secure entry point, by which a KSK differs from a ZSK. */
const SEP = FLAGS_KSK & 1

/**
 * Returns what `keys` do if each of them signs. If there are keys of both kinds, KSKs sign the keys and ZSKs all other
 * RRsets; else each key signs all. `others`: DNSKEYs that are only published.
 */
export function zoneKeysOf(
  keys: readonly SigningKey[],
  others: readonly Uint8Array[],
  dnskeyTtlSeconds: number,
): ZoneKeys {
  const isKsk = ({ flags }: SigningKey): boolean => (flags & SEP) !== 0
  const keySigners = keys.filter(isKsk)
  const zoneSigners = keys.filter((one) => !isKsk(one))
  const isSplit = keySigners.length > 0 && zoneSigners.length > 0
  return {
    dnskeys: [...keys.map(({ dnskey }) => dnskey), ...others],
    dnskeyTtlSeconds,
    cds: [],
    cdnskeys: [],
    keySigners: isSplit ? keySigners : keys,
    zoneSigners: isSplit ? zoneSigners : keys,
  }
}
