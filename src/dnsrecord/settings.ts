import type { AllDownPolicy, FailoverLine, StickyPrefix } from '../steering/rules.ts'

/** Settings that annotations of a DNSRecord make for all its names. A missing one is the zone's. */
export interface RecordSettings {
  readonly allDown?: AllDownPolicy
  /** `off` = not sticky, although the zone is. */
  readonly sticky?: StickyPrefix | 'off'
  /** At least one line; each code once. */
  readonly failover?: readonly FailoverLine[]
}

/**
 * Combines the settings of several records: each setting is that of the first record that has it.
 * Returns undefined if no record has any.
 */
export function firstSettings(
  settings: readonly (RecordSettings | undefined)[],
): RecordSettings | undefined {
  if (settings.every((one) => one === undefined)) return undefined
  return Object.assign({}, ...[...settings].reverse())
}
