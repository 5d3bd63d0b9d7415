import { key } from '../base/shared-values.ts'
import type { SlotLabels } from './counter-slots.ts'

/** The duration of a query that has a trace. */
export interface TracedDuration {
  readonly labels: SlotLabels
  readonly seconds: number
  readonly traceId: string
  /** When it ended, in milliseconds since the Unix epoch. */
  readonly atMs: number
}

/** Accepts durations as exemplars, on the control thread. */
export interface TracedDurations {
  addTraced(duration: TracedDuration): void
}

/** Of a server block whose durations are exported. */
export const TRACED_DURATIONS = key<TracedDurations>('durations of queries with a trace')
