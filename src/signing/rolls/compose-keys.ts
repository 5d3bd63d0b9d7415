import { FLAGS_KSK, type SigningKey } from '../../dns/dnssec/dnskey.ts'
import { composeDs } from '../../dns/dnssec/ds.ts'
import type { StoredKey } from '../keys/key-store.ts'
import type { ZoneKeys } from '../zone-keys.ts'
import type { RollPolicy } from './policy.ts'
import type { RollState } from './roll-state.ts'

/** The request to remove all DS records (RFC 8078 section 4). */
const CDS_DELETE = Uint8Array.of(0, 0, 0, 0, 0)
const CDNSKEY_DELETE = Uint8Array.of(0, 0, 3, 0, 0)

interface ComposedKeys {
  /** Undefined = the zone cannot be signed. */
  readonly keys: ZoneKeys | undefined
  /** Ids of keys that should sign, but that the store has not, or without a private key. */
  readonly missing: readonly string[]
}

/** Returns what the state of the rolls means for the zone. `stored`: keys of the zone. */
export function composeKeys(
  zone: Uint8Array,
  state: RollState,
  stored: ReadonlyMap<string, StoredKey>,
  policy: RollPolicy,
): ComposedKeys {
  const roleOf = new Map(state.keys.map(({ id, role }) => [id, role]))
  const foreign = [...stored.values()].filter((key) => !key.privateKey && !roleOf.has(key.id))
  const missing = new Set<string>()
  const find = (id: string): StoredKey[] => {
    const key = stored.get(id)
    if (key?.privateKey === undefined) missing.add(id)
    return key === undefined ? [] : [key]
  }
  const published = state.dnskey.keys.flatMap(find)
  const zoneSigners = state.signers.keys.flatMap(find).flatMap(toSigner)
  const keySigners = published.filter(({ id }) => roleOf.get(id) !== 'zsk').flatMap(toSigner)
  if (zoneSigners.length === 0 || keySigners.length === 0) {
    return { keys: undefined, missing: [...missing] }
  }
  const trusted = [
    ...state.ds.keys.flatMap(find),
    ...foreign.filter(({ flags }) => flags === FLAGS_KSK),
  ].map(({ dnskey }) => dnskey)
  const isAsked = state.isSigned && state.ds.keys.length > 0
  const [cds, cdnskeys] = isAsked
    ? [
        trusted.flatMap((dnskey) => policy.cdsDigests.map((type) => composeDs(zone, dnskey, type))),
        trusted,
      ]
    : state.isSigned
      ? [[], []]
      : [[CDS_DELETE], [CDNSKEY_DELETE]]
  const dnskeys = [...published, ...foreign].map(({ dnskey }) => dnskey)
  const { dnskeyTtlSeconds } = policy
  const keys = { dnskeys, dnskeyTtlSeconds, cds, cdnskeys, keySigners, zoneSigners }
  return { keys, missing: [...missing] }
}

function toSigner({ dnskey, flags, algorithm, tag, privateKey }: StoredKey): SigningKey[] {
  return privateKey === undefined ? [] : [{ dnskey, flags, algorithm, tag, privateKey }]
}

/** True if both mean the same for the zone. */
export function equalZoneKeys(a: ZoneKeys | undefined, b: ZoneKeys | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  const lists = ['dnskeys', 'cds', 'cdnskeys'] as const
  const signers = ['keySigners', 'zoneSigners'] as const
  return (
    a.dnskeyTtlSeconds === b.dnskeyTtlSeconds &&
    lists.every((name) => equalOctets(a[name], b[name])) &&
    signers.every((name) => equalOctets(a[name].map(rdataOf), b[name].map(rdataOf)))
  )
}

function rdataOf({ dnskey }: SigningKey): Uint8Array {
  return dnskey
}

function equalOctets(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((one, i) => Buffer.compare(one, b[i]!) === 0)
}
