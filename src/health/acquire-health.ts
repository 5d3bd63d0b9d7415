import type { ResourceLease, ResourceRegistry } from '../base/resource-registry.ts'
import type { MetricsRegistry } from '../base/telemetry/metrics.ts'
import { DrainFile } from './drain/drain-file.ts'
import { HealthTable, type HealthTableOptions } from './health-table.ts'
import { attemptCounter, measureProbing } from './probes/metrics.ts'
import { RecordProbing, type RecordProbingOptions } from './record-probing.ts'
import { SlowStart, type SlowStartOptions } from './slow-start.ts'
import { SlowStartFile } from './slow-start-file.ts'
import { numberOf } from './source-numbers.ts'

interface AcquireProbingParts {
  readonly resources: ResourceRegistry
  readonly metrics: MetricsRegistry
}

/** A probing and its metrics. */
class MeasuredProbing {
  readonly probing: RecordProbing
  readonly #stopMeasuring: () => void

  constructor(source: string, options: RecordProbingOptions, metrics: MetricsRegistry) {
    this.probing = new RecordProbing(options)
    this.#stopMeasuring = measureProbing(metrics, source, this.probing)
  }

  close(): void {
    this.#stopMeasuring()
    this.probing.close()
  }
}

/**
 * Returns the probing of the named source (no newline in the name) with the settings `how`, as
 * text. Callers with the same arguments share it. If the settings change, as at a reload, the old
 * probing passes its states on.
 */
export function acquireProbing(
  { source, how }: { readonly source: string; readonly how: string },
  { resources, metrics }: AcquireProbingParts,
  options: () => Omit<RecordProbingOptions, 'known' | 'onResult'>,
): { readonly probing: RecordProbing; readonly release: () => void } {
  const prefix = `${source}\n`
  const { item, release } = resources.acquire(MeasuredProbing, `${prefix}${how}`, () => {
    const others = resources.withPrefix(MeasuredProbing, prefix)
    const known = others.flatMap(({ probing }) => [...probing.states()])
    const onResult = attemptCounter(metrics, source)
    return new MeasuredProbing(source, { ...options(), known, onResult }, metrics)
  })
  return { probing: item.probing, release }
}

/**
 * Returns the slow start of the named source (no newline in the name). Callers with the same
 * arguments share it. If a reload replaces the source, the new slow start continues the old one.
 */
export function acquireSlowStart(
  name: string,
  options: Omit<SlowStartOptions, 'known' | 'file' | 'onClose'>,
  path: string,
  resources: ResourceRegistry,
): ResourceLease<SlowStart> {
  const prefix = `${name}\n`
  const { source, table, durationMs } = options
  const numbers = `${numberOf(source, resources)}\n${numberOf(table, resources)}`
  const key = `${prefix}${durationMs}\n${path}\n${numbers}`
  return resources.acquire(SlowStart, key, () => {
    const open = (): SlowStartFile => new SlowStartFile({ ...options, path })
    const file = path === '' ? undefined : resources.acquire(SlowStartFile, path, open)
    const others = resources.withPrefix(SlowStart, prefix)
    const known = others.flatMap((other) => [...other.slowStarts()])
    return new SlowStart({ ...options, file: file?.item, known, onClose: file?.release })
  })
}

/**
 * Returns the table of a source's records, with the drains of a file (`path`; '' = none), of other
 * feeds and of annotations. `fileNote`: what the log says of each drain of the file. All callers with the same file
 * share its reader, and those with the same source, file and feeds share the result.
 */
export function acquireHealthTable(
  {
    fileNote: note,
    ...options
  }: Omit<HealthTableOptions, 'file' | 'onClose'> & { readonly fileNote?: string | undefined },
  path: string,
  resources: ResourceRegistry,
): ResourceLease<HealthTable> {
  const parts = [options.source, ...(options.feeds ?? [])]
  const key = `${parts.map((part) => numberOf(part, resources)).join(' ')}\n${path}`
  return resources.acquire(HealthTable, key, () => {
    const open = (): DrainFile => new DrainFile({ ...options, path, note })
    const file = path === '' ? undefined : resources.acquire(DrainFile, path, open)
    return new HealthTable({ ...options, file: file?.item, onClose: file?.release })
  })
}
