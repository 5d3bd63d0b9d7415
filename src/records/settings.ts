import type { AllDownPolicy, FailoverLine, StickyPrefix } from '../steering/rules.ts'

/** Settings that annotations of a DNSRecord make for all its names. A missing one is the zone's. */
export interface RecordSettings {
  readonly allDown?: AllDownPolicy
  /** `off` = not sticky, although the zone is. */
  readonly sticky?: StickyPrefix | 'off'
  /** As in `SetRules`; `off` = not limited, although the zone is. */
  readonly answers?: number | 'off'
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
