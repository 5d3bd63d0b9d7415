import type { DnsRecordView } from '../record/record-view.ts'
import {
  type AddressProbe,
  type Condition,
  healthyCondition,
  REASONS,
  unknownHealth,
} from './conditions.ts'

const WILDCARD =
  'The health check is not executed, so all addresses are served: a wildcard host has no host name to send; use protocol TCP or DNS, or a DNSHealthCheckProbe with a hostname'

const DISABLED =
  'Probes are disabled by --enable-probes=false: health is unknown, so all addresses are served'

/** The condition Healthy of a record; undefined = the record has no health check and no probes. */
export function recordHealth(
  { resource, spec }: DnsRecordView,
  probes: readonly AddressProbe[],
  isProbing: boolean,
): Condition | undefined {
  const isWanted = spec.healthCheck !== undefined || probes.length > 0
  if (!isProbing && isWanted && probes.every(({ health }) => health === 'unknown')) {
    return unknownHealth(DISABLED, REASONS.probesDisabled)
  }
  const isIgnored =
    spec.healthCheck !== undefined &&
    resource.kind === 'record' &&
    resource.record.healthCheck === undefined
  return healthyCondition(probes) ?? (isIgnored ? unknownHealth(WILDCARD) : undefined)
}
