import { RRType } from '../../dns/iana/types.ts'
import { ALIAS_TYPE, type Endpoint } from '../../records/dns-record.ts'
import { hasAlias, type PackedRecord, unpackPlace, unpackRecord } from '../../records/pack.ts'
import { lowerNameKey } from '../../records/validate/names.ts'

/**
 * The apexes of zones. They have SOA and NS, so a CNAME cannot be there (RFC 1034 section 3.6.2): it acts as an ALIAS.
 * The host name of a load balancer can so be at an apex.
 */
export class ApexCnames {
  readonly #apexes: ReadonlySet<string>

  /** `zones`: lower-case wire names. */
  constructor(zones: readonly Uint8Array[]) {
    this.#apexes = new Set(zones.map(lowerNameKey))
  }

  /** True if the record has an endpoint that acts as an ALIAS. */
  isIn(packed: PackedRecord): boolean {
    if (hasAlias(packed)) return true
    const { rootHostKey, isWildcardHost } = unpackPlace(packed)
    if (isWildcardHost || !this.#apexes.has(rootHostKey)) return false
    const { endpoints } = unpackRecord(packed, new Set([rootHostKey]))
    return endpoints.some(({ type }) => type === RRType.CNAME)
  }

  /** Returns the endpoint as an ALIAS; undefined = it does not act as one. */
  asAlias(endpoint: Endpoint): Endpoint | undefined {
    if (endpoint.type === ALIAS_TYPE) return endpoint
    const isApexCname =
      endpoint.type === RRType.CNAME && this.#apexes.has(lowerNameKey(endpoint.owner))
    return isApexCname ? { ...endpoint, type: ALIAS_TYPE } : undefined
  }
}
