import type { StoredRecord } from '../dnsrecord/record-source.ts'
import { type HealthView, isSameHealth, UNKNOWN_HEALTH } from '../health/address-health.ts'
import { isSameDrains, NO_DRAINS, type RecordDrains } from '../health/drain/drain.ts'
import { isSameSlowStart, NO_SLOW_STARTS } from '../health/slow-start-units.ts'
import type { EventActor } from '../telemetry/event-log.ts'
import type { ServedState } from './decoded-record.ts'

/** The health with which a record is served, and what else changes its endpoints' shares. */
export type ServedHealth = Omit<ServedState, 'record'>

/** That of a record that no probe reports on, without drains, slow starts and shift. */
export const UNKNOWN: ServedHealth = {
  health: UNKNOWN_HEALTH,
  slowStart: NO_SLOW_STARTS,
  drains: NO_DRAINS,
  shift: undefined,
}

export type ServedView = Pick<HealthView, 'healthOf' | 'slowStartOf' | 'drainsOf' | 'shiftOf'>

/** Returns the current health of a record. */
export function readHealth(record: StoredRecord, view: ServedView): ServedHealth {
  return {
    health: view.healthOf(record.key),
    slowStart: view.slowStartOf(record),
    drains: view.drainsOf(record),
    shift: view.shiftOf?.(record),
  }
}

export function withRecord(record: StoredRecord, served: ServedHealth): ServedState {
  // Fields are listed by name, because properties after a spread cost a microsecond.
  const { health, slowStart, drains, shift } = served
  return { record, health, slowStart, drains, shift }
}

/** True if every endpoint has its own weight, and no target is down. */
export function isPlain({ health, slowStart, drains, shift }: ServedHealth): boolean {
  const isWhole = health.down.length === 0 && drains === NO_DRAINS
  return isWhole && slowStart.length === 0 && shift === undefined
}

export function isSameServedHealth(a: ServedHealth, b: ServedHealth): boolean {
  const isSame = isSameHealth(a.health, b.health) && isSameDrains(a.drains, b.drains)
  return isSame && a.shift === b.shift && isSameSlowStart(a.slowStart, b.slowStart)
}

/** Returns what caused a change of the health of the record `key`, for the log of events. */
export function actorOf(key: string, before: ServedHealth, after: ServedHealth): EventActor {
  if (!isSameHealth(before.health, after.health)) return { kind: 'probe', name: key }
  if (!isSameDrains(before.drains, after.drains)) {
    return { kind: 'drain', name: drainerOf(after.drains) || drainerOf(before.drains) || key }
  }
  return { kind: before.shift === after.shift ? 'slow-start' : 'shift', name: key }
}

/** Who drained the first drained target; '' = nothing is drained, or not known. */
function drainerOf({ endpoints }: RecordDrains): string {
  for (const drains of endpoints) for (const { actor } of drains.values()) return actor
  return ''
}
