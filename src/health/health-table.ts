import type { StoredRecord } from '../dnsrecord/record-source.ts'
import {
  type AddressHealth,
  type ListedHealth,
  type RecordHealth,
  UNKNOWN_HEALTH,
} from './address-health.ts'
import type { RecordDrains } from './drain/drain.ts'
import { DrainColumn, type DrainColumnOptions } from './drain/drain-column.ts'
import { NO_SLOW_STARTS, type SlowStartUnits } from './slow-start-units.ts'

export interface HealthTableOptions extends Omit<DrainColumnOptions, 'onChange'> {
  /** What is found of our own records, and of records of other sites. No key is in two of them. */
  readonly found: readonly AddressHealth[]
  readonly onClose?: (() => void) | undefined
}

/** The health and drains of the records that are served. */
export class HealthTable implements ListedHealth {
  readonly drains: DrainColumn
  readonly #found: readonly AddressHealth[]
  readonly #listeners = new Set<(keys: ReadonlySet<string>) => void>()
  readonly #stops: readonly (() => void)[]

  constructor({ found, onClose = () => {}, ...options }: HealthTableOptions) {
    this.#found = found
    const announce = (keys: ReadonlySet<string>): void => {
      for (const listener of this.#listeners) listener(keys)
    }
    this.drains = new DrainColumn({ ...options, onChange: announce })
    this.#stops = [...found.map((one) => one.subscribe(announce)), onClose]
  }

  get recordKeys(): Iterable<string> {
    return this.#listKeys()
  }

  *#listKeys(): Generator<string, void> {
    for (const { recordKeys } of [...this.#found, this.drains]) yield* recordKeys
  }

  healthOf(key: string): RecordHealth {
    for (const found of this.#found) {
      const health = found.healthOf(key)
      if (health !== UNKNOWN_HEALTH) return health
    }
    return UNKNOWN_HEALTH
  }

  slowStartOf(_record: StoredRecord): readonly SlowStartUnits[] {
    return NO_SLOW_STARTS
  }

  drainsOf(record: StoredRecord): RecordDrains {
    return this.drains.drainsOf(record)
  }

  get isChanging(): boolean {
    return this.drains.isChanging
  }

  subscribe(listener: (keys: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.drains.close()
    for (const stop of this.#stops) stop()
    this.#listeners.clear()
  }
}
