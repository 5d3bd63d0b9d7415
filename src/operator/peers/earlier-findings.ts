import { RRType } from '../../dns/iana/types.ts'
import { readObservations, type SiteObservation } from '../../peering/quorum/observation-codec.ts'
import { OBSERVED_LABEL } from '../../records/kdrnt.ts'
import { outOf } from '../../records/site-facts.ts'
import { scanTarget } from '../../records/validate/target.ts'
import type { DnsRecordView } from '../record/record-view.ts'

/** Returns what this site observed of addresses of peers, according to its `local-<name>`. */
export function readObserved(
  local: DnsRecordView | undefined,
  site: string,
): readonly SiteObservation[] {
  const endpoints = local?.endpoints ?? []
  const rdatas = endpoints
    .filter(({ recordType, dnsName }) => {
      return recordType === 'TXT' && dnsName.startsWith(`${OBSERVED_LABEL}.`)
    })
    .map(({ targets }) => {
      const strings = targets.map((text) => scanTarget(RRType.TXT, text))
      const octets = strings.filter((one) => typeof one !== 'string')
      return Buffer.concat(octets).toString('latin1')
    })
  return readObservations(rdatas).filter((one) => one.site === site)
}

/** Returns the addresses of other sites that a `merged-` or authoritative record has as down, with the reasons. */
export function readDown(
  merged: DnsRecordView | undefined,
  site: string,
): ReadonlyMap<string, string> {
  const facts = merged?.siteFacts ?? ''
  if (typeof facts === 'string') return new Map()
  const others = facts.parts.filter((part) => part.site !== site)
  return new Map(others.flatMap((part) => Object.entries(outOf(part))))
}
