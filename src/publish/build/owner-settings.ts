import { printName } from '../../dns/name/name.ts'
import type { ShiftState } from '../../health/shift/shift.ts'
import type { RecordSettings } from '../../records/settings.ts'
import { printSettings } from '../../records/validate/settings.ts'
import { OPEN } from '../../steering/rules.ts'
import type { Contribution, ZoneSettings } from './owner-set.ts'
import { type Conflict, conflictAt, contrast } from './record-conflicts.ts'

export const NO_SETTINGS: ZoneSettings = { allDown: OPEN, sticky: undefined }

/** The settings that hold for one owner. */
export interface OwnerSettings extends ZoneSettings, Pick<RecordSettings, 'failover'> {
  /** Undefined = no record shifts traffic. */
  readonly shift?: ShiftState | undefined
}

type SettledName = Exclude<keyof RecordSettings, 'drain'>

/**
 * Returns the settings of an owner: each is that of the first record that has it, else the zone's.
 * `contributions`: in order. `conflicts` receives an entry per setting in which records differ.
 */
export function settleSettings(
  owner: Uint8Array,
  contributions: readonly Contribution[],
  zone: ZoneSettings,
  conflicts: Conflict[],
): OwnerSettings {
  const having = contributions.filter(({ settings }) => settings !== undefined)
  const shifted = contributions.find(({ shift }) => shift !== undefined)
  if (having.length === 0) return shifted === undefined ? zone : { ...zone, shift: shifted.shift }
  const allDown = settle('allDown', owner, having, conflicts) ?? zone.allDown
  const sticky = settle('sticky', owner, having, conflicts) ?? zone.sticky
  const answers = settle('answers', owner, having, conflicts) ?? zone.answers
  const failover = settle('failover', owner, having, conflicts)
  settle('shift', owner, having, conflicts)
  // An annotation counts before a shift that no record asks for.
  const annotated = having.find(({ settings }) => settings!.shift !== undefined)
  const { shift } = annotated ?? shifted ?? {}
  const base = {
    allDown,
    sticky: sticky === 'off' ? undefined : sticky,
    answers: answers === 'off' ? undefined : answers,
    shift,
  }
  return failover === undefined ? base : { ...base, failover }
}

function settle<K extends SettledName>(
  setting: K,
  owner: Uint8Array,
  contributions: readonly Contribution[],
  conflicts: Conflict[],
): RecordSettings[K] | undefined {
  const having = contributions.filter(({ settings }) => settings?.[setting] !== undefined)
  const first = having[0]
  if (first === undefined) return undefined
  const value = first.settings![setting]
  const text = JSON.stringify(value)
  const odd = having.find(({ settings }) => JSON.stringify(settings![setting]) !== text)
  if (odd !== undefined) {
    const printed = [first, odd].map(({ settings }) => {
      return printSettings({ [setting]: settings![setting] })[0]!
    })
    const [[name, one], [, other]] = printed as [[string, string], [string, string]]
    const values = contrast([JSON.stringify(one), first], [JSON.stringify(other), odd])
    const message = `${printName(owner)}: ${name} ${values}: the first applies; set the same in both`
    conflicts.push(conflictAt(odd, message))
  }
  return value
}
