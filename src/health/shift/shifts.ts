import type { Clock } from '../../base/clock.ts'
import { printTime } from '../../base/rfc3339.ts'
import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ShiftOrderReport, ShiftReport } from '../../base/telemetry/status.ts'
import type { Timers } from '../../base/timers.ts'
import { printName } from '../../dns/name/name.ts'
import { unpackPlace, unpackRecord, unpackSettings } from '../../records/pack.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../../records/record-source.ts'
import type { ShiftPlan } from '../../records/settings.ts'
import { findOutTargets } from '../drain/drained-targets.ts'
import type { HealthTable } from '../health-table.ts'
import type { ItemsFile } from '../sources-file.ts'
import {
  type KnownShift,
  type Progress,
  printPlan,
  type ShiftOrder,
  type ShiftOutcome,
  type ShiftState,
  scanPlan,
  stateOf,
} from './shift.ts'

/** Maximum number of milliseconds that a timer may fire early. */
const SLACK_MS = 20
/** Time after which a shift without records is forgotten. A host may get another record until then. */
const FORGET_MS = 10 * 60_000

export interface ShiftsOptions {
  /** The records that are served. */
  readonly source: RecordSource
  /** Receives the shifts of the records. */
  readonly table: HealthTable
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Shifts of a previous instance; they are newer than those of the file. */
  readonly known?: Iterable<KnownShift>
  /** Stores the shifts over a restart. */
  readonly file?: ItemsFile<KnownShift> | undefined
  /** Called first when the shifts are closed. */
  readonly onClose?: () => void
}

/** A shift without an annotation. */
interface OrderedShift {
  readonly plan: ShiftPlan
  readonly order: ShiftOrder
}

/** A shift, and the records that it applies to. */
interface Shift {
  readonly id: string
  readonly hostKey: string
  readonly planText: string
  progress: Progress
  sinceMs: number
  /** When the step ends, in milliseconds since the epoch. */
  endsMs: number
  /** Undefined = no record has been seen. */
  state: ShiftState | undefined
  readonly keys: Set<string>
  /** When its last record was removed, in monotonic milliseconds. */
  unusedMs: number
}

/**
 * Moves the shifts of records from step to step, and reverts those with a target out of service. A
 * reverted or finished shift remains so until its annotation is edited.
 *
 * A shift belongs to a plan and a host, not to a record: a host that gets its first peer, or loses
 * its last one, changes to another record. Records of a host with the same plan move together.
 */
export class Shifts {
  readonly #options: ShiftsOptions
  readonly #guarded: Guarded
  /** By host and plan. */
  readonly #shifts = new Map<string, Shift>()
  /** Shifts without an annotation, by key of the root host. */
  readonly #orders = new Map<string, OrderedShift>()
  readonly #byRecord = new Map<string, { readonly shift: Shift; readonly plan: ShiftPlan }>()
  readonly #stops: readonly (() => void)[]
  #stopTimer = (): void => {}
  /** True: something changed since the last `#noteChange`. */
  #isChanged = false

  constructor(options: ShiftsOptions) {
    const { source, table, log, clock, file, known = [] } = options
    this.#options = options
    this.#guarded = guarding(log, 'Shifting traffic')
    for (const { hostKey, plan: text, progress, sinceMs, order } of [
      ...(file?.known ?? []),
      ...known,
    ]) {
      const plan = order && scanPlan(text)
      if (order !== undefined && plan === undefined) continue
      const shift = this.#create(hostKey, text, clock.monotonic())
      Object.assign(shift, { progress, sinceMs })
      if (plan !== undefined) this.#orders.set(hostKey, { plan, order: order! })
    }
    for (const record of source.records()) {
      this.#join(record)
      this.#check(record)
    }
    this.#stops = [
      source.subscribe((changes) => this.#apply(changes)),
      table.follow((keys) => void this.#guarded(() => this.#takeFacts(keys))),
      file?.add(() => this.shifts()) ?? (() => {}),
    ]
    this.#noteChange()
  }

  shiftOf({ key }: StoredRecord): ShiftState | undefined {
    return this.#byRecord.get(key)?.shift.state
  }

  close(): void {
    // Releases the file, which is written once more before these shifts are removed from it.
    this.#options.onClose?.()
    for (const stop of this.#stops) stop()
    this.#stopTimer()
  }

  /** The current shifts, for `known`. */
  *shifts(): Iterable<KnownShift> {
    for (const shift of this.#shifts.values()) {
      const { hostKey, planText: plan, progress, sinceMs } = shift
      yield { hostKey, plan, progress, sinceMs, order: this.#orderOf(shift) }
    }
  }

  /** True if orders last over a restart. */
  get isStored(): boolean {
    return this.#options.file !== undefined
  }

  /** Finds the records of a host, by its key. Offers a pause at each record. */
  *recordsOf(hostKey: string): Generator<void, StoredRecord[]> {
    const found: StoredRecord[] = []
    for (const record of this.#options.source.records()) {
      yield
      if (unpackPlace(record.packed).rootHostKey === hostKey) found.push(record)
    }
    return found
  }

  /** Begins a shift of a host, and ends the one that was ordered before. `records`: of the host. */
  order(hostKey: string, ordered: OrderedShift, records: readonly StoredRecord[]): void {
    const changed = this.#endOrder(hostKey)
    this.#orders.set(hostKey, ordered)
    this.#isChanged = true
    for (const { key } of records) {
      const record = this.#options.source.find(key)
      if (record === undefined) continue
      this.#join(record)
      changed.add(key)
      for (const other of this.#check(record)) changed.add(other)
    }
    this.#noteChange()
    this.#options.table.change(changed)
  }

  /** Ends the shifts with the id of an order, and returns them. */
  endOrders(id: string): ShiftReport[] {
    const ended = this.reports().filter(({ order }) => order?.id === id)
    const changed = new Set<string>()
    for (const [hostKey, { order }] of this.#orders) {
      if (order.id !== id) continue
      for (const key of this.#endOrder(hostKey)) changed.add(key)
    }
    this.#noteChange()
    this.#options.table.change(changed)
    return ended
  }

  /** Returns the keys of the records that it applied to. */
  #endOrder(hostKey: string): Set<string> {
    const ordered = this.#orders.get(hostKey)
    if (ordered === undefined) return new Set()
    const shift = this.#shifts.get(idOf(hostKey, printPlan(ordered.plan)))
    this.#orders.delete(hostKey)
    this.#isChanged = true
    // Records with an annotation of the same plan keep it.
    const keys = [...(shift?.keys ?? [])].filter((key) => {
      const record = this.#options.source.find(key)
      return record === undefined || unpackSettings(record.packed)?.shift === undefined
    })
    for (const key of keys) {
      this.#byRecord.delete(key)
      shift!.keys.delete(key)
    }
    if (shift !== undefined && shift.keys.size === 0) this.#shifts.delete(shift.id)
    this.#options.log.info(`shift ${ordered.order.id} ends: its order was removed`, 'shift-ends')
    return new Set(keys)
  }

  /** Returns the order of a shift; undefined = an annotation asks for it. */
  #orderOf({ hostKey, planText }: Shift): ShiftOrder | undefined {
    const ordered = this.#orders.get(hostKey)
    return ordered !== undefined && printPlan(ordered.plan) === planText ? ordered.order : undefined
  }

  /** An annotation counts before an order. */
  #planOf({ packed }: StoredRecord): ShiftPlan | undefined {
    const annotated = unpackSettings(packed)?.shift
    if (annotated !== undefined || this.#orders.size === 0) return annotated
    return this.#orders.get(unpackPlace(packed).rootHostKey)?.plan
  }

  /** Number of shifts of records with that outcome. */
  count(outcome: ShiftOutcome): number {
    return this.#used().filter(({ progress }) => progress.outcome === outcome).length
  }

  /** Lists the shifts for the ready page, at most `max`; '' = none. */
  note(max: number): string {
    const texts = this.#used().map((shift) => `shift of ${print(shift)}`)
    const more = texts.length > max ? [`and ${texts.length - max} more shifts`] : []
    return [...texts.slice(0, max), ...more].join('; ')
  }

  /** The shifts of records, for the status. */
  reports(): ShiftReport[] {
    return this.#used().map((shift): ShiftReport => {
      const { keys, progress, state, endsMs } = shift
      const order = this.#orderOf(shift)
      const [record = ''] = keys
      const { steps = [] } = this.#byRecord.get(record)?.plan ?? {}
      const { step, outcome, reason } = progress
      return {
        ...{ record, records: keys.size, to: state?.to ?? '', state: outcome },
        ...{ step: step + 1, steps: steps.length, share: state?.percent ?? null },
        until: outcome === 'running' ? printTime(endsMs) : null,
        reason,
        ...(order === undefined ? {} : { order: reportOrder(shift, order) }),
      }
    })
  }

  #used(): readonly Shift[] {
    return [...this.#shifts.values()].filter(({ keys }) => keys.size > 0)
  }

  #apply(changes: readonly RecordChange[]): void {
    const changed = new Set<string>()
    for (const { before, after } of changes) {
      if (before?.packed === after?.packed) continue
      if (before !== undefined) this.#leave(before, after)
      if (after === undefined) continue
      this.#join(after)
      for (const key of this.#check(after)) changed.add(key)
    }
    // The listeners read these records anyway, once they hear of the changes.
    for (const { before, after } of changes) changed.delete((after ?? before)!.key)
    this.#noteChange()
    // Their health may be news, too: slow start reads it before the zones do.
    this.#options.table.change(changed)
  }

  /** Adds the keys of records whose shift is reverted. */
  #takeFacts(keys: Set<string>): void {
    for (const key of keys) {
      const record = this.#byRecord.has(key) ? this.#options.source.find(key) : undefined
      if (record === undefined) continue
      for (const other of this.#check(record)) keys.add(other)
    }
  }

  /** Adds a record to its shift, which begins or continues. */
  #join(record: StoredRecord): void {
    const { key, packed } = record
    const plan = this.#planOf(record)
    if (plan === undefined || this.#byRecord.has(key)) return
    const { clock, log } = this.#options
    const planText = printPlan(plan)
    const hostKey = unpackPlace(packed).rootHostKey
    const nowMs = clock.monotonic()
    this.#forgetUnused(nowMs)
    const shift =
      this.#shifts.get(idOf(hostKey, planText)) ?? this.#create(hostKey, planText, nowMs)
    shift.keys.add(key)
    this.#byRecord.set(key, { shift, plan })
    this.#isChanged = true
    if (shift.state !== undefined) return
    this.#update(shift, plan, shift.progress)
    log.info(`shift of ${print(shift)}`, 'shift')
  }

  /** Ends the shift of the old version, unless the new one has the same. */
  #leave({ key }: StoredRecord, after: StoredRecord | undefined): void {
    const known = this.#byRecord.get(key)
    if (known === undefined) return
    const { shift, plan } = known
    const next = after && this.#planOf(after)
    const isSame = next !== undefined && printPlan(next) === shift.planText
    const isThere = after !== undefined && unpackPlace(after.packed).rootHostKey === shift.hostKey
    if (isSame && isThere) return
    const { clock, log } = this.#options
    this.#isChanged = true
    this.#byRecord.delete(key)
    shift.keys.delete(key)
    shift.unusedMs = clock.monotonic()
    if (after === undefined || shift.keys.size > 0) return
    this.#shifts.delete(shift.id)
    log.info(
      `shift of ${key} to ${plan.to} ends: its annotation was edited or removed`,
      'shift-ends',
    )
  }

  #forgetUnused(nowMs: number): void {
    for (const shift of this.#shifts.values()) {
      const { id, keys, unusedMs } = shift
      if (this.#orderOf(shift) !== undefined) continue
      if (keys.size === 0 && nowMs - unusedMs >= FORGET_MS) this.#shifts.delete(id)
    }
  }

  #create(hostKey: string, planText: string, nowMs: number): Shift {
    const id = idOf(hostKey, planText)
    const progress: Progress = { step: 0, outcome: 'running', reason: '' }
    const rest = { state: undefined, keys: new Set<string>(), unusedMs: nowMs }
    const times = { sinceMs: nowMs, endsMs: 0 }
    const shift: Shift = { id, hostKey, planText, progress, ...times, ...rest }
    this.#shifts.set(id, shift)
    return shift
  }

  #update(shift: Shift, { to, steps, bakeMs }: ShiftPlan, progress: Progress): void {
    const { clock } = this.#options
    this.#isChanged = true
    const leftMs = shift.sinceMs + bakeMs - clock.monotonic()
    // A state file may have been edited by hand.
    const step = Math.min(progress.step, steps.length - 1)
    shift.progress = { ...progress, step }
    shift.endsMs = clock.now() + leftMs
    shift.state = stateOf({ to, steps, bakeMs }, shift.progress, shift.endsMs)
  }

  /** Reverts the shift of a record with a target out of service. Returns the keys of its records. */
  #check(record: StoredRecord): Iterable<string> {
    const known = this.#byRecord.get(record.key)
    if (known === undefined || known.shift.progress.outcome !== 'running') return []
    const { shift, plan } = known
    const reason = this.#findOut(record, plan)
    if (reason === '') return []
    this.#update(shift, plan, { ...shift.progress, outcome: 'reverted', reason })
    this.#options.log.warning(`shift of ${print(shift)}`, 'shift')
    this.#noteChange()
    return shift.keys
  }

  /** Returns why a target of the shift is out of service; '' = none is. */
  #findOut(record: StoredRecord, { to }: ShiftPlan): string {
    const { health, drains } = this.#options.table.rowOf(record)
    const { endpoints } = unpackRecord(record.packed)
    const { out, drained } = findOutTargets(endpoints, health.down, drains)
    for (const [i, { setIdentifier, type, rdata }] of endpoints.entries()) {
      if (setIdentifier !== to) continue
      for (const index of out[i]!) {
        const state = drained?.[i]?.has(index) === true ? 'drained' : 'down'
        return `${printTarget(type, rdata[index]!)} is ${state}`
      }
    }
    return ''
  }

  #step(): void {
    const nowMs = this.#options.clock.monotonic()
    const changed = new Set<string>()
    for (const { shift, plan } of this.#byRecord.values()) {
      if (shift.progress.outcome !== 'running' || dueMs(shift, plan) > nowMs + SLACK_MS) continue
      const { step } = shift.progress
      // Not the time when it was due: each step lasts its time, also in a process that was stopped.
      shift.sinceMs = nowMs
      const isLast = step === plan.steps.length - 1
      const next = isLast ? { step, outcome: 'finished' as const } : { step: step + 1 }
      this.#update(shift, plan, { ...shift.progress, ...next })
      this.#options.log.info(`shift of ${print(shift)}`, 'shift')
      for (const key of shift.keys) changed.add(key)
    }
    this.#noteChange()
    this.#options.table.announce(changed)
  }

  /** Stores the shifts, and waits for the next step. */
  #noteChange(): void {
    if (!this.#isChanged) return
    this.#isChanged = false
    const { clock, timers, file } = this.#options
    const nowMs = clock.monotonic()
    file?.noteChange()
    this.#stopTimer()
    this.#stopTimer = () => {}
    const due = [...this.#byRecord.values()]
      .filter(({ shift }) => shift.progress.outcome === 'running')
      .map(({ shift, plan }) => dueMs(shift, plan))
    if (due.length === 0) return
    const delayMs = Math.max(0, Math.min(...due) - nowMs)
    this.#stopTimer = timers.after(delayMs, () => void this.#guarded(() => this.#step()))
  }
}

function reportOrder({ hostKey }: Shift, order: ShiftOrder): ShiftOrderReport {
  const { id, actor, reason, createdMs } = order
  const name = printName(Buffer.from(hostKey, 'latin1'))
  return { id, name, actor, reason, created: printTime(createdMs) }
}

function idOf(hostKey: string, planText: string): string {
  return `${hostKey}\n${planText}`
}

function dueMs({ sinceMs }: Shift, { bakeMs }: ShiftPlan): number {
  return sinceMs + bakeMs
}

function print({ keys, state }: Shift): string {
  const [key = ''] = keys
  return `${key} to ${state?.to ?? ''}: ${state?.text ?? ''}`
}
