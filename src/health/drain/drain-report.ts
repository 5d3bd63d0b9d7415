import { printTime } from '../../base/rfc3339.ts'
import type { DrainReport } from '../../telemetry/drain-report.ts'
import type { EndpointDrain } from './drain.ts'

/** Returns a drain as JSON. */
export function reportDrain(drain: EndpointDrain): DrainReport {
  const { selector, untilMs, actor, reason, createdMs } = drain
  return {
    id: selector.id,
    selector: selector.text,
    reason,
    actor,
    ...(createdMs === undefined ? {} : { created: printTime(createdMs) }),
    ...(untilMs === undefined ? {} : { until: printTime(untilMs) }),
  }
}
