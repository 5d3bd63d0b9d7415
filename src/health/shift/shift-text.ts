import { printJsonText, scanJsonText } from '../../base/json-text.ts'
import type { StateKind } from '../../base/persist/state-file.ts'
import { type Progress, SHIFT_OUTCOMES, type ShiftOrder, type ShiftOutcome } from './shift.ts'

/** A shift when the file was written. */
export interface StoredShift {
  readonly hostKey: string
  /** Result of `printPlan`. */
  readonly plan: string
  readonly progress: Progress
  readonly order?: ShiftOrder | undefined
  /** Milliseconds from the start of its step to the write of the file. */
  readonly elapsedMs: number
}

/**
 * A file with shifts of traffic, one line each, as JSON:
 *
 *     [HOST_KEY, PLAN, STEP, OUTCOME, REASON, ELAPSED_MS]
 *     [HOST_KEY, PLAN, STEP, OUTCOME, REASON, ELAPSED_MS, ORDER]   ordered without an annotation
 *
 * It has no time of day, so a step of the wall clock has no effect: the time between two processes does
 * not count.
 */
export const SHIFT_STATE: StateKind<readonly StoredShift[]> = {
  what: 'shifts',
  version: '1',
  octetsMax: 64 * 1024 * 1024,
  mode: 0o644,
  gapMs: 0,
  isLarge: false,
  contents: 'shifts',
  loss: 'every shift begins with its first step',
  scan,
}

export function* printShifts(shifts: readonly StoredShift[]): Iterable<string> {
  for (const { hostKey, plan, progress, elapsedMs, order } of shifts) {
    const { step, outcome, reason } = progress
    const values = [hostKey, plan, step, outcome, reason, Math.round(elapsedMs)]
    yield `${printJsonText(order === undefined ? values : [...values, order])}\n`
  }
}

function scan(lines: readonly string[]): readonly StoredShift[] | undefined {
  const shifts: StoredShift[] = []
  for (const line of lines) {
    const found = scanLine(line)
    if (found === undefined) return undefined
    shifts.push(found)
  }
  return shifts
}

function scanLine(line: string): StoredShift | undefined {
  const values = scanJsonText(line)
  if (!Array.isArray(values) || values.length < 6 || values.length > 7) return undefined
  const [hostKey, plan, step, given, reason, elapsedMs, ordered] = values as readonly unknown[]
  const outcome = SHIFT_OUTCOMES.find((known): known is ShiftOutcome => known === given)
  if (typeof hostKey !== 'string' || typeof plan !== 'string') return undefined
  if (typeof reason !== 'string' || outcome === undefined) return undefined
  if (!isCount(step) || !isCount(elapsedMs)) return undefined
  const shift = { hostKey, plan, progress: { step, outcome, reason }, elapsedMs }
  if (ordered === undefined) return shift
  return isOrder(ordered) ? { ...shift, order: ordered } : undefined
}

function isOrder(value: unknown): value is ShiftOrder {
  if (typeof value !== 'object' || value === null) return false
  const { id, actor, reason, createdMs }: Readonly<Record<string, unknown>> = { ...value }
  return [id, actor, reason].every((text) => typeof text === 'string') && isCount(createdMs)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
