import type { DnsRecordView } from '../record/record-view.ts'
import {
  type Condition,
  healthyCondition,
  type ProbedAddress,
  unknownHealth,
} from './conditions.ts'

const WILDCARD =
  'The health check is not executed, so all addresses are served: a wildcard host has no host name to send; use protocol TCP or DNS, or a DNSHealthCheckProbe with a hostname'

/** The condition Healthy of a record; undefined = the record has no health check and no probes. */
export function recordHealth(
  { resource, spec }: DnsRecordView,
  probes: readonly ProbedAddress[],
): Condition | undefined {
  const isIgnored =
    spec.healthCheck !== undefined &&
    resource.kind === 'record' &&
    resource.record.healthCheck === undefined
  return healthyCondition(probes) ?? (isIgnored ? unknownHealth(WILDCARD) : undefined)
}
