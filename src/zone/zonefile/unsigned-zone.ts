import { RRType } from '../../dns/iana/types.ts'

/** Types of the records that the signer of a zone makes. */
export const MADE_BY_SIGNERS: ReadonlySet<number> = new Set([
  RRType.DNSKEY,
  RRType.CDS,
  RRType.CDNSKEY,
  RRType.RRSIG,
  RRType.NSEC,
  RRType.NSEC3,
  RRType.NSEC3PARAM,
])

/** Returns why a zone that the server signs may not have a record. `record`: its owner and type. */
export function printSigned(record: string): string {
  const types = 'RRSIG, NSEC, NSEC3, NSEC3PARAM, DNSKEY, CDS and CDNSKEY'
  return `the zone is signed already (${record}), but \`dnssec\` signs it; remove the records of types ${types}, or the zone from \`dnssec\``
}
