import { scanDuration } from '../../base/duration.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'

/** Reads `reload DURATION` of zone files. Returns milliseconds; 0 = never. Throws InputError. */
export function scanReload(d: Dispenser): number {
  const text = d.remainingArgs()[0]
  if (text === undefined) throw d.error('reload duration value is expected')
  const reloadMs = scanDuration(text)
  if (reloadMs !== undefined && reloadMs >= 0) return reloadMs
  throw d.error(`invalid duration ${JSON.stringify(text)}; write it as 30s or 1m, 0 for never`)
}
