import type { Counter, MetricsRegistry } from '../../base/telemetry/metrics.ts'

interface File {
  readonly path: string
  /** Unix seconds; 0 = unknown. */
  readonly builtSeconds: number
}

/** Faults that are counted: the blocks that share a file all report them. */
const counted = new WeakSet<Error>()

/** Exports the age of location databases, and how often a changed one could not be used. */
export class GeoipMetrics {
  readonly #registry: MetricsRegistry
  #failures: Counter | undefined
  /** Ends the export. */
  stop: () => void = () => {}

  constructor(registry: MetricsRegistry) {
    this.#registry = registry
  }

  /** `files`: returns the files in use. */
  start(files: () => readonly File[]): void {
    const failures = this.#registry.counter(
      'sextant_geoip_reload_failures_total',
      'Changed location databases that cannot be used.',
      ['file'],
    )
    const built = this.#registry.gauge(
      'sextant_geoip_database_build_timestamp_seconds',
      'When the location database in use was built; 0 = unknown.',
      ['file'],
    )
    this.#failures = failures
    const exported = new Set<string>()
    const end = this.#registry.onCollect(() => {
      for (const { path, builtSeconds } of files()) {
        built.set({ file: path }, builtSeconds)
        failures.inc({ file: path }, 0)
        exported.add(path)
      }
    })
    this.stop = () => {
      end()
      // If another block or the next instance uses the file, the next scrape exports it again.
      for (const path of exported) built.remove({ file: path })
    }
  }

  noteFailure(path: string, fault: Error): void {
    if (counted.has(fault)) return
    counted.add(fault)
    this.#failures?.inc({ file: path })
  }
}
