import { isIP } from 'node:net'
import { InputError } from '../../base/errors.ts'
import { ProbePolicy } from '../../health/probes/probe-policy.ts'
import { findLeaves } from '../../health/record-probes.ts'
import type { RecordPlaces } from '../../publish/build/locate.ts'
import type { HealthOptions } from '../../publish/health-options.ts'
import type { CheckedManifests } from '../../publish/offline/check-manifests.ts'
import { probingOf } from '../../publish/same-source.ts'
import { recordKey } from '../../records/dns-record.ts'
import { isChecked, unpackRecord } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { probePlaceKey } from '../../sources/manifests/manifest-store.ts'
import type { KuadrantOptions } from './options.ts'

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

/**
 * Finds health checks of manifests that no server performs: the record has nothing to probe, no block with these
 * manifests probes, or the check needs a Secret. `all`: the blocks of the Corefile. `probe off` is a decision of the
 * administrator, and causes no warning.
 */
export function* findIdleChecks(
  { source }: Pick<KuadrantOptions, 'source'>,
  all: readonly KuadrantOptions[],
  { records, probes, places }: Pick<CheckedManifests, 'records' | 'probes' | 'places'>,
): Iterable<InputError> {
  const { probe } = probingOf(source, all)
  if (probe === 'off') return
  const why = 'no server block with these manifests probes; add `probe` to one'
  const reported = new Set<string>()
  for (const one of probes) {
    if (one.check === undefined) reported.add(recordKey(one.namespace, one.recordName))
    else if (probe === undefined) {
      const text = `DNSHealthCheckProbe ${recordKey(one.namespace, one.name)}: it has no effect: it has no status, and ${why}`
      yield new InputError(places.record(probePlaceKey(one)), text)
    }
  }
  for (const { key, packed } of records) {
    if (!isChecked(packed) || reported.has(key)) continue
    const { endpoints, healthCheck } = unpackRecord(packed)
    if (findLeaves(endpoints).length === 0) {
      const text = `DNSRecord ${key}: healthCheck has no effect: no endpoint has an address that can be checked`
      yield new InputError(places.healthCheck(key), text)
    } else if (probe === undefined) {
      const text = `DNSRecord ${key}: healthCheck has no effect, all addresses are always served: ${why}`
      yield new InputError(places.healthCheck(key), text)
    } else if (healthCheck!.headersSecret !== '') {
      const text = `DNSRecord ${key}: its addresses are not probed, all are always served: this server reads no Secret; remove additionalHeadersRef`
      yield new InputError(places.healthCheck(key, 'additionalHeadersRef'), text)
    }
  }
}
