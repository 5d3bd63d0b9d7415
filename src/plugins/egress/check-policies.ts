import { systemClock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { SILENT_LOG } from '../../base/telemetry/log.ts'
import { NO_METRICS } from '../../base/telemetry/metrics.ts'
import { systemTimers } from '../../base/timers.ts'
import { PolicyFiles } from '../../egress/agent/sources/policy-files.ts'
import type { CheckReport } from '../../plugin/description.ts'
import type { EgressConfig } from './options.ts'

/** Reads the files of `policies`, for `sextant check`. Returns the faults that keep policies from being read. */
export async function checkPolicies(
  { policies: path, dialect, position }: EgressConfig,
  { warn, read }: CheckReport,
): Promise<readonly InputError[]> {
  const files = new PolicyFiles({
    path,
    dialect,
    log: SILENT_LOG,
    clock: systemClock,
    timers: systemTimers,
    metrics: NO_METRICS,
  })
  const { summary, faults, warnings } = await files.load()
  files.close()
  read(`${path}: ${summary}`)
  for (const warning of warnings) warn(warning)
  // A folder that cannot be listed has no place of its own.
  return faults.map((fault) => {
    if (fault.position !== undefined) return fault
    return new InputError(position, `plugin/egress: policies: ${fault.message}`, fault)
  })
}
