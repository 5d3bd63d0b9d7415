import { printTime } from '../../base/rfc3339.ts'
import type { ShiftPlan } from '../../records/settings.ts'

export const SHIFT_OUTCOMES = ['running', 'finished', 'reverted'] as const
export type ShiftOutcome = (typeof SHIFT_OUTCOMES)[number]

/** How far a shift is. */
export interface Progress {
  /** Index of the step; of the last one reached, once the shift is over. */
  readonly step: number
  readonly outcome: ShiftOutcome
  /** Why the shift was reverted; '' = it was not. */
  readonly reason: string
}

/** A shift as RRsets are built from it. Immutable: a change creates a new object. */
export interface ShiftState {
  /** The set identifier that traffic moves to. */
  readonly to: string
  /** Share of these endpoints; undefined = the shift is reverted, and the records' weights hold. */
  readonly percent: number | undefined
  /** `step 2 of 3 (25 %) until 2026-11-24T12:10:00Z`, `finished (100 %)` or `reverted at …`. */
  readonly text: string
}

/** `endsMs`: when a running step ends, in milliseconds since the epoch. */
export function stateOf(
  { to, steps }: ShiftPlan,
  { step, outcome, reason }: Progress,
  endsMs: number,
): ShiftState {
  const percent = steps[step]!
  const text = `step ${step + 1} of ${steps.length} (${percent} %)`
  if (outcome === 'finished') return { to, percent, text: `finished (${percent} %)` }
  if (outcome === 'running') return { to, percent, text: `${text} until ${printTime(endsMs)}` }
  return { to, percent: undefined, text: `reverted at ${text}: ${reason}` }
}

/** A shift in the state in which it continues, for example after a restart. */
export interface KnownShift {
  /** Key of the root host of its records. */
  readonly hostKey: string
  /** `printPlan` of its plan. */
  readonly plan: string
  readonly progress: Progress
  /** When its step began, in monotonic milliseconds. */
  readonly sinceMs: number
}

/** Equal text for equal plans. */
export function printPlan({ to, steps, bakeMs }: ShiftPlan): string {
  return JSON.stringify([to, steps, bakeMs])
}
