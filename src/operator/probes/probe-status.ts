import { escapeControls } from '../../base/telemetry/log.ts'
import type { Probe } from '../../health/probes/probe.ts'
import { COUNT_MAX, type ProbeState } from '../../health/probes/probe-state.ts'
import { probeOfResource } from '../../health/record-probes.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { API_VERSION, recordKey } from '../../records/dns-record.ts'
import { validateResource } from '../../records/validate/resource.ts'
import { mappingOf, metadataOf } from '../record/fields.ts'
import { PROBE_KIND } from './desired-probes.ts'

const REASON_CHARACTERS_MAX = 300

/** The settings of a DNSHealthCheckProbe, and its record. */
interface ScannedProbe {
  readonly probe: Probe
  /** `namespace/name`. */
  readonly recordKey: string
}

/** Parses a probe. A string is the reason why it is rejected; '' = it is being deleted. */
export function scanProbe(object: ApiObject): ScannedProbe | string {
  // The status is not validated: this operator writes it.
  const given = { ...object, apiVersion: API_VERSION, kind: PROBE_KIND, status: {} }
  const resource = validateResource(given)
  if (resource.kind === 'refused') return resource.problem.message
  if (resource.kind !== 'probe' || resource.probe.check === undefined) return ''
  const { namespace, recordName, check } = resource.probe
  const probe = probeOfResource(resource.probe, check)
  return { probe, recordKey: recordKey(namespace, recordName) }
}

/**
 * The state of an address according to the status of its probe, which this or another operator
 * wrote.
 */
export function readState(object: ApiObject, nowMs: number): ProbeState {
  const { healthy, consecutiveFailures, status, reason } = mappingOf(object, 'status')
  const isKnown = typeof healthy === 'boolean'
  return {
    health: isKnown ? (healthy ? 'up' : 'down') : 'unknown',
    failures: countOf(consecutiveFailures),
    successes: 0,
    sinceMs: nowMs,
    httpStatus: countOf(status),
    reason: typeof reason === 'string' ? reason.slice(0, REASON_CHARACTERS_MAX) : '',
  }
}

/**
 * The status of a probe. Failures are counted up to the one that takes the address down. Counting
 * further would cause a write for every probe of an address that is down.
 */
export function composeStatus(
  object: ApiObject,
  { check }: Pick<Probe, 'check'>,
  state: ProbeState,
): ApiObject {
  const { generation } = metadataOf(object)
  const reason = escapeControls(state.reason).slice(0, REASON_CHARACTERS_MAX)
  return {
    ...(state.health === 'unknown' ? {} : { healthy: state.health === 'up' }),
    consecutiveFailures: Math.min(state.failures, check.failureThreshold + 1),
    reason,
    status: state.httpStatus,
    ...(typeof generation === 'number' ? { observedGeneration: generation } : {}),
  }
}

/** The object that applies a status to this probe, and not to a later one with the same name. */
export function statusOf(object: ApiObject, status: ApiObject): ApiObject {
  const { name = '', namespace = '', uid = '' } = metadataOf(object)
  return { apiVersion: API_VERSION, kind: PROBE_KIND, metadata: { name, namespace, uid }, status }
}

/** Resource versions of one kind are increasing numbers. */
export function versionOf(object: ApiObject): number {
  return Number(textOf(metadataOf(object), 'resourceVersion'))
}

function countOf(value: ApiObject[string] | undefined): number {
  const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 0
  return isCount ? Math.min(value, COUNT_MAX) : 0
}
