import { AddressHealth, type Finding } from '../../src/health/address-health.ts'
import type { RecordDrains } from '../../src/health/drain/drain.ts'
import { findDrains } from '../../src/health/drain/drain-column.ts'
import { scanDrains } from '../../src/health/drain/drain-text.ts'
import type { HealthRow } from '../../src/health/health-table.ts'
import { NO_SLOW_STARTS, type SlowStartUnits } from '../../src/health/slow-start-units.ts'
import { unpackRecord } from '../../src/records/pack.ts'
import type { StoredRecord } from '../../src/records/record-source.ts'

/** The health of records that the test fills. */
export class TestHealth extends AddressHealth {
  /** By key of the record. */
  readonly slowStarts = new Map<string, readonly SlowStartUnits[]>()
  /** Lines of a drain file. */
  drains: readonly string[] = []
  /** Sites of every endpoint of every record. */
  sites: readonly string[] = []
  readonly #findings = new Map<string, readonly Finding[]>()

  /** Replaces what was put of the record; listeners are not notified. */
  put(recordKey: string, down: readonly string[] = [], up: readonly string[] = []): void {
    for (const finding of this.#findings.get(recordKey) ?? []) this.remove(finding)
    const findings = [
      ...down.map((address): Finding => ({ recordKey, address, health: 'down' })),
      ...up.map((address): Finding => ({ recordKey, address, health: 'up' })),
    ]
    for (const finding of findings) this.add(finding)
    this.#findings.set(recordKey, findings)
  }

  /** See `HealthView`. */
  rowOf(record: StoredRecord): HealthRow {
    const slowStart = this.slowStarts.get(record.key) ?? NO_SLOW_STARTS
    const health = this.healthOf(record.key)
    return { record, health, drains: this.drainsOf(record), shift: undefined, slowStart }
  }

  drainsOf(record: StoredRecord): RecordDrains {
    const { drains, faults } = scanDrains(this.drains.join('\n'), 'drains')
    if (faults[0] !== undefined) throw faults[0]
    const sitesOf = () => unpackRecord(record.packed).endpoints.map(() => this.sites)
    return findDrains(
      record,
      drains.map(({ drain }) => drain),
      sitesOf,
    )
  }
}
