import type { StoredRecord } from '../dnsrecord/record-source.ts'
import {
  type AddressHealth,
  type HealthTable,
  type RecordHealth,
  UNKNOWN_HEALTH,
} from '../health/address-health.ts'
import { NO_DRAINS, type RecordDrains } from '../health/drain/drain.ts'
import { NO_SLOW_STARTS, type SlowStartUnits } from '../health/slow-start-units.ts'

/** The health of our own records and that of the records of other sites. No key is in both tables. */
export class JoinedHealth implements HealthTable {
  readonly #own: AddressHealth
  readonly #others: AddressHealth

  constructor(own: AddressHealth, others: AddressHealth) {
    this.#own = own
    this.#others = others
  }

  get recordKeys(): Iterable<string> {
    return [...this.#own.recordKeys, ...this.#others.recordKeys]
  }

  healthOf(key: string): RecordHealth {
    const health = this.#others.healthOf(key)
    return health === UNKNOWN_HEALTH ? this.#own.healthOf(key) : health
  }

  slowStartOf(_record: StoredRecord): readonly SlowStartUnits[] {
    return NO_SLOW_STARTS
  }

  drainsOf(_record: StoredRecord): RecordDrains {
    return NO_DRAINS
  }

  subscribe(listener: (keys: ReadonlySet<string>) => void): () => void {
    const stops = [this.#own.subscribe(listener), this.#others.subscribe(listener)]
    return () => {
      for (const stop of stops) stop()
    }
  }
}
