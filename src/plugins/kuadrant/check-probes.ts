import { isIP } from 'node:net'
import { InputError } from '../../base/errors.ts'
import { isChecked, unpackRecord } from '../../dnsrecord/pack.ts'
import type { StoredRecord } from '../../dnsrecord/record-source.ts'
import { ProbePolicy } from '../../health/probes/probe-policy.ts'
import { findLeaves } from '../../health/record-probes.ts'
import type { HealthOptions } from '../../publish/health-options.ts'
import type { RecordPlaces } from '../../publish/locate.ts'

/** Addresses that a warning lists. */
const LISTED_MAX = 5

/** Finds addresses of records with a health check that a block with `probe` does not probe. */
export function* findRefusedProbes(
  records: readonly StoredRecord[],
  { probe, allowed }: Pick<HealthOptions, 'probe' | 'allowed'>,
  places: Pick<RecordPlaces, 'record'>,
): Iterable<InputError> {
  if (probe === undefined || probe === 'off') return
  const policy = new ProbePolicy(allowed.map(({ cidr }) => cidr))
  for (const { key, packed } of records) {
    if (!isChecked(packed)) continue
    const refused = findLeaves(unpackRecord(packed).endpoints).flatMap(({ address, probeAt }) => {
      const probed = probeAt?.address || address
      const network = isIP(probed) === 0 ? undefined : policy.findRefused(probed)
      return network === undefined ? [] : [{ probed, ...network }]
    })
    if (refused.length === 0) continue
    const shown = refused.slice(0, LISTED_MAX).map(({ probed, what }) => `${probed} (${what})`)
    const more = refused.length > LISTED_MAX ? ` and ${refused.length - LISTED_MAX} more` : ''
    const networks = [...new Set(refused.map(({ text }) => text))].join(' ')
    const text = `DNSRecord ${key}: addresses that are not probed are always served: ${shown.join(', ')}${more}; to probe them, add \`probe-allow ${networks}\``
    yield new InputError(places.record(key), text)
  }
}
