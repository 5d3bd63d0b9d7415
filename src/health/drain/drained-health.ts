import { unpackRecord } from '../../dnsrecord/pack.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../../dnsrecord/record-source.ts'
import { type Guarded, guarding } from '../../telemetry/guard.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { HealthTable, RecordHealth } from '../address-health.ts'
import type { SlowStartUnits } from '../slow-start-units.ts'
import {
  type EndpointDrain,
  isSameDrains,
  NO_DRAINS,
  printDrain,
  type RecordDrains,
} from './drain.ts'
import type { DrainFile, DrainsChange } from './drain-file.ts'

export interface DrainedHealthOptions {
  /** The records that are served. */
  readonly source: RecordSource
  readonly health: HealthTable
  readonly file: DrainFile
  /** Returns the sites that reported each endpoint of a record, in the record's order. */
  readonly sitesOf: (record: StoredRecord) => readonly (readonly string[])[]
  readonly log: Logger
}

/** The drains of a record in one of its versions. */
interface Marked {
  readonly record: StoredRecord
  readonly drains: RecordDrains
}

/**
 * The health of addresses together with the drains of a file. If drains begin or end, only the
 * records with selected endpoints change: they are found without unpacking the other records.
 */
export class DrainedHealth implements HealthTable {
  readonly #options: DrainedHealthOptions
  /** Records with drained endpoints, by key. */
  readonly #marked = new Map<string, Marked>()
  readonly #listeners = new Set<(keys: ReadonlySet<string>) => void>()
  readonly #stops: readonly (() => void)[]
  readonly #guarded: Guarded

  constructor(options: DrainedHealthOptions) {
    const { source, file, log } = options
    this.#options = options
    this.#guarded = guarding(log, 'Applying drains')
    this.#stops = [
      source.subscribe((changes) => this.#follow(changes)),
      file.subscribe((change) => void this.#guarded(() => this.#apply(change))),
    ]
    if (file.drains.length > 0) for (const record of source.records()) this.#mark(record)
  }

  /** Lists the drains for the ready page, at most `max`; '' = none. */
  note(max: number): string {
    const { drains, fault } = this.#options.file
    const more = drains.length > max ? ` and ${drains.length - max} more` : ''
    const texts = drains.slice(0, max).map(printDrain)
    const drained = texts.length === 0 ? '' : `drained: ${texts.join(', ')}${more}`
    return [drained, fault].filter((text) => text !== '').join('; ')
  }

  /** Path of the drain file. */
  get path(): string {
    return this.#options.file.path
  }

  get recordKeys(): Iterable<string> {
    return new Set([...this.#options.health.recordKeys, ...this.#marked.keys()])
  }

  healthOf(key: string): RecordHealth {
    return this.#options.health.healthOf(key)
  }

  slowStartOf(record: StoredRecord): readonly SlowStartUnits[] {
    return this.#options.health.slowStartOf(record)
  }

  drainsOf(record: StoredRecord): RecordDrains {
    if (this.#options.file.drains.length === 0) return NO_DRAINS
    const known = this.#marked.get(record.key)
    return known?.record === record ? known.drains : this.#find(record)
  }

  subscribe(listener: (keys: ReadonlySet<string>) => void): () => void {
    const unsubscribe = this.#options.health.subscribe(listener)
    this.#listeners.add(listener)
    return () => {
      unsubscribe()
      this.#listeners.delete(listener)
    }
  }

  close(): void {
    for (const stop of this.#stops) stop()
    this.#listeners.clear()
  }

  #follow(changes: readonly RecordChange[]): void {
    if (this.#options.file.drains.length === 0) return
    for (const { before, after } of changes) {
      if (after === undefined) this.#marked.delete(before!.key)
      else this.#mark(after)
    }
  }

  /** Returns false if the drains of the record are as before. */
  #mark(record: StoredRecord): boolean {
    const was = this.#marked.get(record.key)
    const drains = this.#find(record)
    if (was?.record === record && isSameDrains(was.drains, drains)) return false
    if (drains !== NO_DRAINS) this.#marked.set(record.key, { record, drains })
    else if (!this.#marked.delete(record.key)) return false
    return true
  }

  #apply({ begun }: DrainsChange): void {
    const { source } = this.#options
    const keys = new Set<string>()
    for (const { record } of [...this.#marked.values()]) {
      if (this.#mark(record)) keys.add(record.key)
    }
    if (begun.length > 0) {
      for (const record of source.records()) {
        const isSelected = begun.some(({ selector }) => selector.mayMatch(record))
        if (isSelected && this.#mark(record)) keys.add(record.key)
      }
    }
    if (keys.size === 0) return
    for (const listener of this.#listeners) listener(keys)
  }

  #find(record: StoredRecord): RecordDrains {
    const { file, sitesOf } = this.#options
    return findDrains(record, file.drains, () => sitesOf(record))
  }
}

/** Returns the targets of a record that the drains select. The first drain of a target counts. */
export function findDrains(
  record: StoredRecord,
  drains: readonly EndpointDrain[],
  sitesOf: () => readonly (readonly string[])[],
): RecordDrains {
  const possible = drains.filter(({ selector }) => selector.mayMatch(record))
  if (possible.length === 0) return NO_DRAINS
  const content = unpackRecord(record.packed)
  const at = { record, content, sites: sitesOf() }
  let isEmpty = true
  const endpoints = content.endpoints.map((_, i) => {
    const targets = new Map<number, EndpointDrain>()
    for (const drain of possible) {
      for (const index of drain.selector.targetsOf(at, i)) {
        if (!targets.has(index)) targets.set(index, drain)
      }
    }
    if (targets.size > 0) isEmpty = false
    return targets
  })
  return isEmpty ? NO_DRAINS : { endpoints }
}
