import type { KeyReport } from '../base/telemetry/status.ts'
import { tableOf } from './table.ts'
import type { Line } from './tones.ts'

/** Returns keys as a table. */
export function keyTable(keys: readonly KeyReport[], isWide: boolean): Line[] {
  const headings = ['KEYS OF', 'ROLE', 'ALGORITHM', 'TAG', 'STATE', 'DUE', 'NEXT STEP']
  const rows = keys.map((key) => [
    ...[key.zone, key.role, key.algorithm, key.tag, key.state, key.nextStep],
    ...(isWide ? [key.nextStepText, key.id] : [key.nextStepText]),
  ])
  return tableOf(isWide ? [...headings, 'ID'] : headings, rows)
}
