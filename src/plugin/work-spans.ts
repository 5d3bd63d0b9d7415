import { key } from '../base/shared-values.ts'
import type { SpanRecorder } from '../base/telemetry/spans/span.ts'

/** Records spans of work that no query of the server block waits for. On the control thread only. */
export const WORK_SPANS = key<SpanRecorder>('spans of work of a server block')
