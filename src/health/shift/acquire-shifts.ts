import type { ResourceLease, ResourceRegistry } from '../../base/resource-registry.ts'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
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

/**
 * Returns the shifts of the named source. Callers with the same arguments share them. If a reload
 * replaces the source, the new shifts continue the old ones.
 */
export function acquireShifts(
  options: Omit<ShiftsOptions, 'known' | 'file' | 'onClose'>,
  { name, path, resources, metrics }: AcquireShiftsParts,
): ResourceLease<Shifts> {
  const { source, table } = options
  const prefix = `${name}\n`
  const key = `${prefix}${path}\n${numberOf(source, resources)}\n${numberOf(table, resources)}`
  return resources.acquire(Shifts, key, () => {
    const open = (): ShiftFile => new ShiftFile({ ...options, path })
    const file = path === '' ? undefined : resources.acquire(ShiftFile, path, open)
    const known = resources.withPrefix(Shifts, prefix).flatMap((other) => [...other.shifts()])
    let stopMeasuring = (): void => {}
    const onClose = (): void => {
      file?.release()
      stopMeasuring()
    }
    const shifts = new Shifts({ ...options, file: file?.item, known, onClose })
    stopMeasuring = measureShifts(metrics, name, shifts)
    return shifts
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
