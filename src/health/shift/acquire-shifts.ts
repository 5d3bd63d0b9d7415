import type { ResourceLease, ResourceRegistry } from '../../base/resource-registry.ts'
import type { MetricsRegistry } from '../../telemetry/metrics.ts'
import { numberOf } from '../source-numbers.ts'
import { SHIFT_OUTCOMES } from './shift.ts'
import { ShiftFile } from './shift-file.ts'
import { Shifts, type ShiftsOptions } from './shifts.ts'

interface AcquireShiftsParts {
  /** Name of the source, without a newline. */
  readonly name: string
  /** The file that stores shifts over a restart; '' = none. */
  readonly path: string
  readonly resources: ResourceRegistry
  readonly metrics: MetricsRegistry
}

/** Shifts with their metrics, and the file that stores them. */
class StoredShifts extends Shifts {
  readonly #release: readonly (() => void)[]

  constructor(options: ShiftsOptions, { name, path, resources, metrics }: AcquireShiftsParts) {
    const open = (): ShiftFile => new ShiftFile({ ...options, path })
    const file = path === '' ? undefined : resources.acquire(ShiftFile, path, open)
    // A shift of this process is newer than that of the file.
    const known = [...(file?.item.known ?? []), ...(options.known ?? [])]
    super({ ...options, known, onChange: () => file?.item.noteChange() })
    const removeUser = file?.item.add(() => this.shifts()) ?? (() => {})
    // The file is written once more before this source is removed from it.
    this.#release = [file?.release ?? (() => {}), removeUser, measureShifts(metrics, name, this)]
  }

  override close(): void {
    for (const release of this.#release) release()
    super.close()
  }
}

/**
 * Returns the shifts of the named source. Callers with the same arguments share them. If a reload
 * replaces the source, the new shifts continue the old ones.
 */
export function acquireShifts(
  options: Omit<ShiftsOptions, 'known' | 'onChange'>,
  parts: AcquireShiftsParts,
): ResourceLease<Shifts> {
  const { name, path, resources } = parts
  const { source, table } = options
  const prefix = `${name}\n`
  const key = `${prefix}${path}\n${numberOf(source, resources)}\n${numberOf(table, resources)}`
  return resources.acquire(StoredShifts, key, () => {
    const others = resources.withPrefix(StoredShifts, prefix)
    const known = others.flatMap((other) => [...other.shifts()])
    return new StoredShifts({ ...options, known }, parts)
  })
}

/** Exports the number of shifts at every scrape, until the returned function is called. */
function measureShifts(metrics: MetricsRegistry, source: string, shifts: Shifts): () => void {
  const gauge = metrics.gauge(
    'sextant_kuadrant_shifts',
    'Shifts of traffic between endpoints, by state.',
    ['source', 'state'],
  )
  const stop = metrics.onCollect(() => {
    for (const state of SHIFT_OUTCOMES) gauge.set({ source, state }, shifts.count(state))
  })
  return () => {
    stop()
    for (const state of SHIFT_OUTCOMES) gauge.remove({ source, state })
  }
}
