import { SourcesFile, type SourcesFileOptions } from '../sources-file.ts'
import type { KnownShift } from './shift.ts'
import { printShifts, SHIFT_STATE, type StoredShift } from './shift-text.ts'

/** Stores shifts over a restart, for all sources with the same file. */
export class ShiftFile extends SourcesFile<KnownShift, readonly StoredShift[]> {
  constructor(options: SourcesFileOptions) {
    const { clock } = options
    super(options, {
      kind: SHIFT_STATE,
      print: (shifts) => {
        const nowMs = clock.monotonic()
        return printShifts(
          shifts.map(({ hostKey, plan, progress, sinceMs, order }) => {
            return { hostKey, plan, progress, order, elapsedMs: Math.max(0, nowMs - sinceMs) }
          }),
        )
      },
      restore: (found) => {
        const nowMs = clock.monotonic()
        return found.map(({ hostKey, plan, progress, order, elapsedMs }) => {
          return { hostKey, plan, progress, order, sinceMs: nowMs - elapsedMs }
        })
      },
    })
  }
}
