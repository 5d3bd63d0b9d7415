import type { EventActor } from '../../base/telemetry/event-log.ts'
import { isSameHealth } from '../../health/address-health.ts'
import { isSameDrains, NO_DRAINS, type RecordDrains } from '../../health/drain/drain.ts'
import { type HealthRow, type HealthView, UNKNOWN_ROW } from '../../health/health-table.ts'
import { isSameSlowStart } from '../../health/slow-start-units.ts'
import type { RecordChange, StoredRecord } from '../../records/record-source.ts'

/** The health with which a record is served, and what else changes its endpoints' shares. */
type ServedHealth = Omit<HealthRow, 'record'>

export type ServedView = Pick<HealthView, 'rowOf'>

/** Nothing is known of any record. */
export const NOTHING_KNOWN: ServedView = { rowOf: (record) => withRecord(record, UNKNOWN_ROW) }

/** The health with which the records of a zone are served, beside the current one. */
export class ServedHealths {
  readonly #view: ServedView
  /** By key of the record; missing = UNKNOWN_ROW. */
  readonly #served = new Map<string, ServedHealth>()

  constructor(view: ServedView) {
    this.#view = view
  }

  /** True if no record of the zone has a health that matters. */
  get isEmpty(): boolean {
    return this.#served.size === 0
  }

  /** True if targets of the record may be down or drained. */
  has(key: string): boolean {
    return this.#served.has(key)
  }

  /** Keys of the records with targets that are down, drained, in slow start or shifted. */
  *impairedKeys(): Generator<string> {
    for (const [key, state] of this.#served) if (!isPlain(state)) yield key
  }

  /** The state in which the record is served. */
  servedState(record: StoredRecord): HealthRow {
    return withRecord(record, this.#served.get(record.key) ?? UNKNOWN_ROW)
  }

  /** The current state of the record. */
  nextState(record: StoredRecord): HealthRow {
    return this.#view.rowOf(record)
  }

  /** Notes the state in which a record is served from now on; undefined = it is removed. */
  note(key: string, state: HealthRow | undefined): void {
    if (state === undefined || isSameServedHealth(state, UNKNOWN_ROW)) {
      this.#served.delete(key)
      return
    }
    const { health, slowStart, drains, shift } = state
    this.#served.set(key, { health, slowStart, drains, shift })
  }

  /** False: neither the record nor its health changed. */
  isEffective({ before, after }: RecordChange): boolean {
    if (before !== after || before === undefined) return true
    return !isSameServedHealth(this.servedState(before), this.nextState(before))
  }

  /** What caused a change, for the log of events. */
  actorOf({ before, after }: RecordChange): EventActor {
    const { key } = (after ?? before)!
    if (before === undefined || after === undefined || before !== after) {
      return { kind: 'record', name: key }
    }
    return actorOf(key, this.servedState(after), this.nextState(after))
  }
}

function withRecord(record: StoredRecord, served: ServedHealth): HealthRow {
  // Fields are listed by name, because properties after a spread cost a microsecond.
  const { health, slowStart, drains, shift } = served
  return { record, health, slowStart, drains, shift }
}

/** True if every endpoint has its own weight, and no target is down. */
export function isPlain({ health, slowStart, drains, shift }: ServedHealth): boolean {
  const isWhole = health.down.length === 0 && drains === NO_DRAINS
  return isWhole && slowStart.length === 0 && shift === undefined
}

function isSameServedHealth(a: ServedHealth, b: ServedHealth): boolean {
  const isSame = isSameHealth(a.health, b.health) && isSameDrains(a.drains, b.drains)
  return isSame && a.shift === b.shift && isSameSlowStart(a.slowStart, b.slowStart)
}

/** Returns what caused a change of the health of the record `key`, for the log of events. */
function actorOf(key: string, before: ServedHealth, after: ServedHealth): EventActor {
  if (!isSameHealth(before.health, after.health)) return { kind: 'probe', name: key }
  if (!isSameDrains(before.drains, after.drains)) {
    const begun = drainerOf(before.drains, after.drains)
    return { kind: 'drain', name: begun || drainerOf(after.drains, before.drains) || key }
  }
  return { kind: before.shift === after.shift ? 'slow-start' : 'shift', name: key }
}

/** Who drained the first target that only `drained` has drained so; '' = no target is, or its author is not known. */
function drainerOf(other: RecordDrains, drained: RecordDrains): string {
  for (const [i, drains] of drained.endpoints.entries()) {
    for (const [index, drain] of drains) {
      const { selector, actor } = other.endpoints[i]?.get(index) ?? {}
      if (selector?.text !== drain.selector.text || actor !== drain.actor) return drain.actor
    }
  }
  return ''
}
