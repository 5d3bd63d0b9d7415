import { scanJsonText } from '../../base/json-text.ts'
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
  /** Undefined = an annotation asks for it. */
  readonly order?: ShiftOrder | undefined
}

/** A shift that was ordered at the server, without an annotation. */
export interface ShiftOrder {
  readonly id: string
  readonly actor: string
  readonly reason: string
  /** Milliseconds since the epoch. */
  readonly createdMs: number
}

/** Reads the output of `printPlan`; undefined = it is not one. */
export function scanPlan(text: string): ShiftPlan | undefined {
  const values = scanJsonText(text)
  if (!Array.isArray(values) || values.length !== 3) return undefined
  const [to, steps, bakeMs] = values as readonly unknown[]
  if (typeof to !== 'string' || typeof bakeMs !== 'number' || !Array.isArray(steps))
    return undefined
  const isShare = (step: unknown): step is number =>
    typeof step === 'number' && step > 0 && step <= 100
  return steps.length > 0 && steps.every(isShare) && bakeMs > 0 ? { to, steps, bakeMs } : undefined
}

/** Equal text for equal plans. */
export function printPlan({ to, steps, bakeMs }: ShiftPlan): string {
  return JSON.stringify([to, steps, bakeMs])
}
