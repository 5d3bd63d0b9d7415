import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { runInSlices } from '../../base/slices.ts'
import type { ShiftReport } from '../../base/telemetry/status.ts'
import { lowerName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { shiftRefusal } from '../../health/shift/shift-refusal.ts'
import type { Shifts } from '../../health/shift/shifts.ts'
import type { AdminShifts, ShiftList, ShiftRequest } from '../../plugin/admin-shifts.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import { scanShiftParts } from '../../records/validate/settings.ts'
import { Turns } from './turns.ts'

const ACTOR_DEFAULT = 'admin API'
/** Shifts that a list has. */
const LISTED_MAX = 1000
const ID_CHARACTERS = 8

/** The shifts of the records that the server serves, by annotations and by orders. */
export class OrderedShifts implements AdminShifts {
  readonly #all: () => readonly Shifts[]
  readonly #clock: Clock
  readonly #turns = new Turns()

  /** `all`: those of each source. */
  constructor(all: () => readonly Shifts[], clock: Clock) {
    this.#all = all
    this.#clock = clock
  }

  list(): ShiftList {
    const reports = this.#all().flatMap((shifts) => shifts.reports())
    // During a reload, both instances have the same shifts.
    const distinct = [...new Map(reports.map((one) => [`${one.record} ${one.to}`, one])).values()]
    const shifts = distinct.slice(0, LISTED_MAX)
    return { shifts, shiftsOmitted: distinct.length - shifts.length }
  }

  begin(request: ShiftRequest): Promise<ShiftReport | undefined> {
    return this.#turns.run(() => this.#begin(request))
  }

  end(id: string): readonly ShiftReport[] {
    return this.#all().flatMap((shifts) => shifts.endOrders(id))
  }

  async #begin(request: ShiftRequest): Promise<ShiftReport> {
    const { name: text, to, steps, bake, reason = '', actor = ACTOR_DEFAULT } = request
    const name = scanName(text.replace(/^\*\./, ''), ROOT_NAME)
    if (name === undefined) return fail(`invalid name: ${JSON.stringify(text)}`)
    const hostKey = lowerNameKey(lowerName(name))
    const plan = scanShiftParts(to, steps, bake)
    const hash = createHash('sha256').update(hostKey, 'latin1').digest('hex')
    const order = { id: hash.slice(0, ID_CHARACTERS), actor, reason, createdMs: this.#clock.now() }
    const found: { readonly shifts: Shifts; readonly records: readonly StoredRecord[] }[] = []
    for (const shifts of this.#all()) {
      const records = await runInSlices(shifts.recordsOf(hostKey), this.#clock)
      if (records.length === 0) continue
      if (!shifts.isStored)
        fail('the Corefile names no file of shifts; add `shift FILE` to kuadrant')
      check(shiftRefusal(text, to, records))
      found.push({ shifts, records })
    }
    if (found.length === 0) check(shiftRefusal(text, to, []))
    for (const { shifts, records } of found) shifts.order(hostKey, { plan, order }, records)
    const report = this.list().shifts.find((one) => one.order?.id === order.id)
    return report ?? fail('the records of the host were removed; repeat the request')
  }
}

/** Throws InputError with a reason; '' = with none. */
function check(reason: string): void {
  if (reason !== '') fail(reason)
}

function fail(message: string): never {
  throw new InputError(undefined, message)
}
