import { escapeControls } from '../../base/telemetry/log.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { field } from './fields.ts'

/** Longest reason that is shown. */
const REASON_CHARACTERS_MAX = 300

/**
 * Says why an address is down, for explanations and the status. `probe`: `namespace/name` of the
 * DNSHealthCheckProbe. `status`: its status, which is not validated, because any operator writes it.
 */
export function printUnhealthy(
  probe: string,
  status: { readonly [key: string]: YamlValue },
): string {
  const failures = field(status, 'consecutiveFailures')
  const reason = field(status, 'reason')
  const httpStatus = field(status, 'status')
  const text = typeof reason === 'string' ? reason.slice(0, REASON_CHARACTERS_MAX) : ''
  const cause = escapeControls(text) || (isCount(httpStatus) ? `status ${httpStatus}` : '')
  const count = isCount(failures) ? ` after ${failures} failure${failures === 1 ? '' : 's'}` : ''
  const known = `DNSHealthCheckProbe ${probe} reports it as unhealthy${count}`
  return cause === '' ? known : `${known}: ${cause}`
}

function isCount(value: YamlValue | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0
}
