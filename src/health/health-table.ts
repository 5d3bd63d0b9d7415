import type { StoredRecord } from '../records/record-source.ts'
import {
  type AddressHealth,
  type RecordHealth,
  type RecordState,
  UNKNOWN_HEALTH,
} from './address-health.ts'
import { NO_DRAINS, type RecordDrains } from './drain/drain.ts'
import { DrainColumn, type DrainColumnOptions } from './drain/drain-column.ts'
import type { ShiftState } from './shift/shift.ts'
import { NO_SLOW_STARTS, type SlowStartUnits } from './slow-start-units.ts'

/** A record, and what each writer of the table says of it. RRsets are built from rows. */
export interface HealthRow extends RecordState {
  readonly drains: RecordDrains
  /** Undefined = its traffic is not shifted. */
  readonly shift: ShiftState | undefined
  /** Addresses in slow start, sorted. */
  readonly slowStart: readonly SlowStartUnits[]
}

/** The row of a record that no writer says anything of, without the record. */
export const UNKNOWN_ROW: Omit<HealthRow, 'record'> = {
  health: UNKNOWN_HEALTH,
  drains: NO_DRAINS,
  shift: undefined,
  slowStart: NO_SLOW_STARTS,
}

type Listener = (keys: ReadonlySet<string>) => void

/** The rows that the zones of a block read. */
export interface HealthView {
  rowOf(record: StoredRecord): HealthRow
  /** True while further changes of the same batch follow; missing = each call of a listener has a whole batch. */
  readonly isChanging?: boolean
  /**
   * Calls `listener` with the keys of records whose rows changed, once per batch of changes or part of one; returns
   * the function that unsubscribes it. A listener that has read the row after the change need not read it again.
   */
  subscribe(listener: Listener): () => void
}

/** The columns that are derived from the others. Each block has its own, or none. */
interface DerivedColumns {
  readonly shifts?: { shiftOf(record: StoredRecord): ShiftState | undefined } | undefined
  readonly slowStart?: { slowStartOf(record: StoredRecord): readonly SlowStartUnits[] } | undefined
}

/** Records whose addresses are those of other records. */
export interface HealthLoans {
  /** Returns the keys of the records whose addresses a record has, too. */
  lendersOf(key: string): Iterable<string>
  /** Returns the keys of the records that have addresses of a record, too. */
  borrowersOf(key: string): Iterable<string>
}

export interface HealthTableOptions extends Omit<DrainColumnOptions, 'onChange'> {
  /** What is found of the addresses of one record counts for others, too; missing = it does not. */
  readonly loans?: HealthLoans | undefined
  /** What is found of our own records, and of records of other sites. Down in one of them is down. */
  readonly found: readonly AddressHealth[]
  readonly onClose?: (() => void) | undefined
}

/**
 * The health of the records that are served, with one row per record. Each column has one writer:
 *
 *     found   AddressHealth: probes, the status of DNSHealthCheckProbes, peers
 *     drains  DrainColumn: files, ConfigMaps, Namespaces, groups, annotations
 *     shifts, slowStart   derived from the other two, and from the time
 *
 * A change of `found` or `drains` first goes to the followers, which derive columns from it. Then the readers are
 * notified once of everything that changed.
 */
export class HealthTable implements HealthView {
  readonly drains: DrainColumn
  readonly #found: readonly AddressHealth[]
  readonly #loans: HealthLoans | undefined
  readonly #followers = new Set<(keys: Set<string>) => void>()
  readonly #readers = new Set<Listener>()
  readonly #stops: readonly (() => void)[]

  constructor({ found, loans, onClose = () => {}, ...options }: HealthTableOptions) {
    this.#found = found
    this.#loans = loans
    const onChange = (keys: ReadonlySet<string>): void => this.change(keys)
    this.drains = new DrainColumn({ ...options, onChange })
    this.#stops = [...found.map((one) => one.subscribe(onChange)), onClose]
  }

  /** Yields the keys of records with known health or drains. A key may occur twice. */
  *recordKeys(): Iterable<string> {
    for (const { recordKeys } of [...this.#found, this.drains]) yield* recordKeys
  }

  /** `derived`: missing = the row has neither a shift nor slow starts. */
  rowOf(record: StoredRecord, { shifts, slowStart }: DerivedColumns = {}): HealthRow {
    const health = this.#healthOf(record.key)
    const drains = this.drains.drainsOf(record)
    const shift = shifts?.shiftOf(record)
    return {
      record,
      health,
      drains,
      shift,
      slowStart: slowStart?.slowStartOf(record) ?? NO_SLOW_STARTS,
    }
  }

  /** Returns why an address of a record was found down; '' = it was not, or the reason is not known. */
  reasonOf(recordKey: string, address: string): string {
    for (const key of [recordKey, ...(this.#loans?.lendersOf(recordKey) ?? [])]) {
      for (const found of this.#found) {
        const reason = found.reasonOf(key, address)
        if (reason !== '') return reason
      }
    }
    return ''
  }

  get isChanging(): boolean {
    return this.drains.isChanging
  }

  subscribe(reader: Listener): () => void {
    this.#readers.add(reader)
    return () => this.#readers.delete(reader)
  }

  /** Returns the rows with the columns of a block. */
  with(derived: DerivedColumns): HealthView {
    const { drains } = this
    return {
      rowOf: (record) => this.rowOf(record, derived),
      get isChanging() {
        return drains.isChanging
      },
      subscribe: (reader) => this.subscribe(reader),
    }
  }

  /**
   * Calls `follower` with the keys of records whose health or drains changed, before the readers; returns the function
   * that ends this. The follower adds the keys of further records that it changes.
   */
  follow(follower: (keys: Set<string>) => void): () => void {
    this.#followers.add(follower)
    return () => this.#followers.delete(follower)
  }

  /** Notifies followers, then readers, that health or drains of these records may have changed. */
  change(keys: ReadonlySet<string>): void {
    if (keys.size === 0) return
    const all = new Set(keys)
    for (const key of keys) for (const one of this.#loans?.borrowersOf(key) ?? []) all.add(one)
    for (const follower of this.#followers) follower(all)
    this.announce(all)
  }

  /** Notifies the readers that only derived columns of these records changed. */
  announce(keys: ReadonlySet<string>): void {
    if (keys.size > 0) for (const reader of this.#readers) reader(keys)
  }

  close(): void {
    this.drains.close()
    for (const stop of this.#stops) stop()
    this.#followers.clear()
    this.#readers.clear()
  }

  #healthOf(key: string): RecordHealth {
    const own = this.#foundOf(key)
    const lenders = [...(this.#loans?.lendersOf(key) ?? [])]
    const lent = lenders.flatMap((lender) => this.#foundOf(lender).down)
    return lent.length === 0 ? own : { ...own, down: unite(own.down, lent) }
  }

  #foundOf(key: string): RecordHealth {
    let health = UNKNOWN_HEALTH
    for (const one of this.#found) {
      const found = one.healthOf(key)
      if (found === UNKNOWN_HEALTH) continue
      const isFirst = health === UNKNOWN_HEALTH
      health = isFirst ? found : { ...health, down: unite(health.down, found.down) }
    }
    return health
  }
}

function unite(a: readonly string[], b: readonly string[]): readonly string[] {
  return b.length === 0 ? a : [...new Set([...a, ...b])].sort()
}
