import type { AllDownPolicy, FailoverLine, StickyPrefix } from '../steering/rules.ts'

/** Settings that annotations of a DNSRecord make for all its names. A missing one is the zone's. */
export interface RecordSettings {
  readonly allDown?: AllDownPolicy
  /** `off` = not sticky, although the zone is. */
  readonly sticky?: StickyPrefix | 'off'
  /** At least one line; each code once. */
  readonly failover?: readonly FailoverLine[]
  /** Takes all endpoints of the record out of service. */
  readonly drain?: DrainSetting
  readonly shift?: ShiftPlan
}

/** A drain that a record itself asks for. */
export interface DrainSetting {
  /** '' = not given. */
  readonly reason: string
  /** When it ends, in milliseconds since the epoch; undefined = when the annotation is removed. */
  readonly untilMs?: number
}

/** How traffic moves to the endpoints of one set identifier, in steps. */
export interface ShiftPlan {
  /** The set identifier. */
  readonly to: string
  /** Share of each step in percent, above 0 and up to 100, ascending; at least one. */
  readonly steps: readonly number[]
  /** How long each step lasts at least. */
  readonly bakeMs: number
}

/**
 * Combines the settings of several records: each setting is that of the first record that has it.
 * They are drained if all of them are, until the first of their drains ends. Returns undefined if no
 * record has any.
 */
export function firstSettings(
  settings: readonly (RecordSettings | undefined)[],
): RecordSettings | undefined {
  if (settings.every((one) => one === undefined)) return undefined
  const { drain, ...others }: RecordSettings = Object.assign({}, ...[...settings].reverse())
  const common = drain === undefined ? undefined : commonDrain(drain, settings)
  const all = common === undefined ? others : { ...others, drain: common }
  return Object.keys(all).length === 0 ? undefined : all
}

/**
 * Returns the common drain of several records. `drain`: that of the first drained record. Undefined =
 * at least one record is not drained.
 */
function commonDrain(
  { reason }: DrainSetting,
  settings: readonly (RecordSettings | undefined)[],
): DrainSetting | undefined {
  if (settings.some((one) => one?.drain === undefined)) return undefined
  const untilMs = Math.min(...settings.map((one) => one?.drain?.untilMs ?? Infinity))
  return untilMs === Infinity ? { reason } : { reason, untilMs }
}
