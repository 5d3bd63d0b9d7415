import type { Clock } from '../../base/clock.ts'
import type { InputError } from '../../base/errors.ts'
import { plural } from '../../base/plural.ts'
import { SetsByKey } from '../../base/sets-by-key.ts'
import { FaultLog } from '../../base/telemetry/fault-log.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { nameKey } from '../../dns/name/name.ts'
import type { HealthLoans } from '../../health/health-table.ts'
import {
  isSameOrigin,
  type RecordChange,
  type RecordSource,
  type StoredRecord,
} from '../../records/record-source.ts'
import { ApexCnames } from './apex-cnames.ts'
import type { AliasWorld } from './expand-alias.ts'
import { expandRecord, faultsOf, type ResolvedRecord } from './expand-record.ts'
import { InsideNames } from './inside-names.ts'
import type { OutsideAddresses } from './outside-addresses.ts'

/** Addresses that change within this time are published as one change. */
const GATHER_MS = 50
/** Faults of one record that are logged: it may have a thousand ALIAS endpoints. */
const LOGGED_MAX = 5

/** A record with ALIAS endpoints. */
interface AliasRecord extends ResolvedRecord {
  /** As the source has it. */
  readonly original: StoredRecord
  /** Ends the interest in names outside. */
  readonly releases: readonly (() => void)[]
}

interface AliasSourceOptions {
  /** Has been read. */
  readonly source: RecordSource
  /** Names in them are followed in the records. Lower-case wire names. */
  readonly zones: readonly Uint8Array[]
  /** Undefined = names outside of the zones have no addresses. */
  readonly outside: OutsideAddresses | undefined
  /** As in AliasWorld. */
  readonly refusal: AliasWorld['refusal']
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * The records of a source, with the addresses of the targets of ALIAS endpoints:
 *
 *     source ─────────┬─▶ records with ALIAS ─▶ expand ─▶ records with A and AAAA ─▶ zones, probes, drains
 *     names outside ──┘         (the others pass as they are)
 *
 * The ALIAS endpoint stays in the record, before the endpoints that it stands for, because other sites get it. A record
 * changes if what its targets lead to does, and only that record.
 */
export class AliasSource implements RecordSource, HealthLoans {
  readonly #options: AliasSourceOptions
  readonly #inside: InsideNames
  readonly #apexes: ApexCnames
  readonly #faults: FaultLog
  readonly #records = new Map<string, AliasRecord>()
  /** Keys of the records with ALIAS that depend on an owner, on a name outside, and on the health of a record. */
  readonly #byOwner = new SetsByKey()
  readonly #byOutside = new SetsByKey()
  readonly #byLender = new SetsByKey()
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  readonly #stops: readonly (() => void)[]
  /** Names outside whose addresses changed. */
  readonly #changed = new Set<string>()
  #cancel: (() => void) | undefined

  constructor(options: AliasSourceOptions) {
    const { source, zones, outside, log, clock } = options
    this.#options = options
    this.#inside = new InsideNames(zones, () => source.records())
    this.#apexes = new ApexCnames(zones)
    this.#faults = new FaultLog(log, clock)
    for (const record of source.records()) if (this.#apexes.isIn(record.packed)) this.#put(record)
    this.#stops = [
      source.subscribe((changes) => this.#take(changes)),
      outside?.subscribe((names) => this.#noteOutside(names)) ?? (() => {}),
    ]
  }

  /** Resolves once the targets of ALIAS endpoints were asked for, or after some seconds. */
  async ready(): Promise<void> {
    await this.#options.outside?.settled()
    this.#applyOutside()
  }

  *records(): Generator<StoredRecord> {
    for (const record of this.#options.source.records()) yield this.#expandedOf(record)
  }

  find(key: string): StoredRecord | undefined {
    const record = this.#options.source.find(key)
    return record && this.#expandedOf(record)
  }

  get recordCount(): number {
    return this.#options.source.recordCount
  }

  problems(): readonly InputError[] {
    return this.#options.source.problems()
  }

  /** Names outside that no server has answered for may have had addresses before this process. */
  unreadyReason(): string {
    const { source, outside } = this.#options
    const count = outside?.unansweredCount ?? 0
    const unanswered =
      count === 0 ? '' : `${plural(count, 'target')} of ALIAS endpoints not resolved yet`
    return source.unreadyReason() || unanswered
  }

  get isChanging(): boolean {
    return this.#options.source.isChanging === true
  }

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** What is wrong with ALIAS endpoints, with the keys of their records. */
  *faults(): Generator<{ readonly key: string; readonly text: string }> {
    for (const [key, one] of this.#records) {
      for (const { text } of faultsOf(one)) yield { key, text }
    }
  }

  *lendersOf(key: string): Generator<string> {
    for (const { expanded } of this.#records.get(key)?.aliases ?? []) yield* expanded.lenders
  }

  borrowersOf(key: string): Iterable<string> {
    return this.#byLender.of(key)
  }

  close(): void {
    this.#cancel?.()
    for (const stop of this.#stops) stop()
    for (const { releases } of this.#records.values()) for (const release of releases) release()
    this.#records.clear()
    this.#listeners.clear()
  }

  #expandedOf(record: StoredRecord): StoredRecord {
    return this.#records.get(record.key)?.record ?? record
  }

  #take(changes: readonly RecordChange[]): void {
    const owners = this.#inside.apply(changes)
    const isConcerned = ({ before, after }: RecordChange): boolean => {
      return [before, after].some(
        (record) => record !== undefined && this.#apexes.isIn(record.packed),
      )
    }
    if (this.#records.size === 0 && !changes.some(isConcerned)) {
      this.#publish(changes)
      return
    }
    const mapped = changes.map((change): RecordChange => {
      const { before, after } = change
      if (!isConcerned(change)) return change
      const old = before && this.#expandedOf(before)
      if (after === undefined) this.#remove(before!.key)
      else if (!this.#apexes.isIn(after.packed)) this.#remove(after.key)
      else this.#put(after)
      return { before: old, after: after && this.#expandedOf(after) }
    })
    const done = new Set(changes.map(({ before, after }) => (after ?? before)!.key))
    const dependent = keysOf(owners, this.#byOwner)
    const further = this.#expandAgain([...dependent].filter((key) => !done.has(key)))
    this.#publish([...mapped, ...further])
  }

  #noteOutside(names: ReadonlySet<string>): void {
    for (const name of names) this.#changed.add(name)
    const apply = (): void => {
      void guarding(
        this.#options.log,
        'Applying the addresses of ALIAS endpoints',
      )(() => {
        this.#applyOutside()
      })
    }
    this.#cancel ??= this.#options.timers.after(GATHER_MS, apply)
  }

  #applyOutside(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const keys = keysOf(this.#changed, this.#byOutside)
    this.#changed.clear()
    this.#publish(this.#expandAgain([...keys]))
  }

  /** Returns the changes of records with ALIAS whose source has not changed. */
  #expandAgain(keys: readonly string[]): RecordChange[] {
    return keys.flatMap((key): RecordChange[] => {
      const before = this.#records.get(key)
      if (before === undefined) return []
      const after = this.#put(before.original)
      return after === before.record ? [] : [{ before: before.record, after }]
    })
  }

  /** Expands a record with ALIAS, and returns the result: the same object if it is the same. */
  #put(original: StoredRecord): StoredRecord {
    const { key } = original
    const before = this.#records.get(key)
    const releases: (() => void)[] = []
    const expanded = expandRecord(original, this.#worldOf(releases), this.#apexes)
    const isSame =
      before?.record.packed === expanded.record.packed && isSameHolder(before.original, original)
    const record = isSame ? before.record : expanded.record
    const { aliases } = expanded
    if (before !== undefined) this.#forget(key, before)
    this.#records.set(key, { original, record, aliases, releases })
    for (const { expanded: one } of aliases) {
      for (const owner of one.insideOwners) this.#byOwner.add(owner, key)
      for (const name of one.outsideNames.keys()) this.#byOutside.add(name, key)
      for (const lender of one.lenders) this.#byLender.add(lender, key)
    }
    this.#report(key, expanded)
    return record
  }

  #report(key: string, expanded: ResolvedRecord): void {
    const faults = [...faultsOf(expanded)].map(({ text }) => text)
    if (faults.length === 0) {
      this.#faults.clear(key)
      return
    }
    const more = faults.length > LOGGED_MAX ? [`and ${faults.length - LOGGED_MAX} more`] : []
    this.#faults.report(key, `${key}: ${[...faults.slice(0, LOGGED_MAX), ...more].join('; ')}`)
  }

  #remove(key: string): void {
    const before = this.#records.get(key)
    if (before === undefined) return
    this.#forget(key, before)
    this.#records.delete(key)
    this.#faults.clear(key)
  }

  #forget(key: string, { aliases, releases }: AliasRecord): void {
    for (const release of releases) release()
    for (const { expanded } of aliases) {
      for (const owner of expanded.insideOwners) this.#byOwner.delete(owner, key)
      for (const name of expanded.outsideNames.keys()) this.#byOutside.delete(name, key)
      for (const lender of expanded.lenders) this.#byLender.delete(lender, key)
    }
  }

  /** `releases`: gets what ends the interest in names outside. */
  #worldOf(releases: (() => void)[]): AliasWorld {
    const { outside, refusal } = this.#options
    return {
      inside: (name, note) => this.#inside.find(name, note),
      outside: (name) => {
        if (outside === undefined) return undefined
        releases.push(outside.want(name))
        return outside.of(nameKey(name))
      },
      refusal,
    }
  }

  #publish(changes: readonly RecordChange[]): void {
    if (changes.length === 0) return
    for (const listener of this.#listeners) listener(changes)
  }
}

function isSameHolder(a: StoredRecord, b: StoredRecord): boolean {
  const isSame = isSameOrigin(a.origin, b.origin) && a.original === b.original
  return isSame && a.heldSinceSeconds === b.heldSinceSeconds
}

function keysOf(names: ReadonlySet<string>, index: SetsByKey): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const name of names) for (const key of index.of(name)) keys.add(key)
  return keys
}
