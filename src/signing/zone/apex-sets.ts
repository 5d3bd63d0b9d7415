import { composeNsec3Param } from '../../dns/dnssec/denial-rdata.ts'
import { RRType } from '../../dns/iana/types.ts'
import type { SigningPolicy, ZoneKeys } from '../zone-keys.ts'
import type { SetData } from './set-answers.ts'
import type { ZoneView } from './zone-view.ts'

/** Octets of the MINIMUM field at the end of SOA rdata. */
const MINIMUM_OCTETS = 4

/** The RRsets of signing at the apex, by type; undefined = it has none. */
export function apexSets(
  keys: ZoneKeys,
  policy: SigningPolicy,
): ReadonlyMap<number, SetData | undefined> {
  const ttlSeconds = keys.dnskeyTtlSeconds
  const setOf = (type: number, rdata: readonly Uint8Array[]): SetData | undefined => {
    return rdata.length === 0 ? undefined : { type, ttlSeconds, rdata }
  }
  // BIND and Knot give NSEC3PARAM a TTL of 0, because resolvers have no use for it.
  const parameters: SetData | undefined =
    policy.denial === 'nsec3'
      ? { type: RRType.NSEC3PARAM, ttlSeconds: 0, rdata: [composeNsec3Param()] }
      : undefined
  return new Map([
    [RRType.DNSKEY, setOf(RRType.DNSKEY, keys.dnskeys)],
    [RRType.CDS, setOf(RRType.CDS, keys.cds)],
    [RRType.CDNSKEY, setOf(RRType.CDNSKEY, keys.cdnskeys)],
    [RRType.NSEC3PARAM, parameters],
  ])
}

/** Returns the TTL of negative answers and of their proofs (RFC 9077); undefined = the apex has no SOA. */
export function negativeTtl(view: ZoneView): number | undefined {
  const soa = view.set(view.find(view.apex), RRType.SOA)
  const rdata = soa?.rdata[0]
  if (soa === undefined || rdata === undefined) return undefined
  const minimum = Buffer.from(rdata.subarray(-MINIMUM_OCTETS)).readUInt32BE(0)
  return Math.min(soa.ttlSeconds, minimum)
}
