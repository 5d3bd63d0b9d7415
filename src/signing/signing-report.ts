import type { MetricsRegistry } from '../base/telemetry/metrics.ts'
import type { SigningReport } from '../base/telemetry/status.ts'

/** Returns why a zone is not signed, with what is served meanwhile. `isServed`: it has a signed version. */
export function printSigningFault(zone: string, fault: string, isServed: boolean): string {
  const served = isServed ? 'its last signed version is served' : 'queries get SERVFAIL'
  return `zone ${zone} can't be signed, so ${served}: ${fault}`
}

/**
 * Exports how zones are signed at every scrape. The returned function stops that and removes the series. Another source
 * of the same zone, as after a reload, sets them again at the next scrape.
 */
export function measureSigning(
  metrics: MetricsRegistry,
  reports: () => readonly SigningReport[],
): () => void {
  const labels = ['zone']
  const made = metrics.counter(
    'sextant_zone_signatures_made_total',
    'Signatures that this server made of a zone.',
    labels,
  )
  const expire = metrics.gauge(
    'sextant_zone_signatures_expire_timestamp_seconds',
    'Time at which the first RRset of a signed zone loses its last valid signature.',
    labels,
  )
  const refused = metrics.gauge(
    'sextant_zone_signing_refused',
    '1 while a zone cannot be signed: its keys are missing, the clock cannot be trusted, or signing failed.',
    labels,
  )
  /** By zone: the signatures that are counted. */
  const counted = new Map<string, number>()
  const stop = metrics.onCollect(() => {
    for (const report of reports()) {
      const { zone, expires, fault } = report
      made.inc({ zone }, report.made - (counted.get(zone) ?? 0))
      counted.set(zone, report.made)
      refused.set({ zone }, fault === '' ? 0 : 1)
      if (expires === null) expire.remove({ zone })
      else expire.set({ zone }, Date.parse(expires) / 1000)
    }
  })
  return () => {
    stop()
    for (const zone of counted.keys()) {
      expire.remove({ zone })
      refused.remove({ zone })
    }
  }
}
