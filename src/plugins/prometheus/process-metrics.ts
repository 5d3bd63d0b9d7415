import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'

/** Exports the process metrics that every Prometheus client exports. */
export function showProcess(m: MetricsRegistry): void {
  const cpu = process.cpuUsage()
  const cpuSeconds = m.counter(
    'process_cpu_seconds_total',
    'Total user and system CPU time spent in seconds.',
  )
  cpuSeconds.reset()
  cpuSeconds.inc((cpu.user + cpu.system) / 1e6)
  m.gauge('process_resident_memory_bytes', 'Resident memory size in bytes.').set(
    process.memoryUsage.rss(),
  )
  m.gauge(
    'process_start_time_seconds',
    'Start time of the process since unix epoch in seconds.',
  ).set(Math.floor(performance.timeOrigin / 1000))
}

/** Metrics of the JavaScript engine: heap and event loop. They need a timer while they are exported. */
export class RuntimeMetrics {
  readonly #metrics: MetricsRegistry
  #delay: IntervalHistogram | undefined

  constructor(metrics: MetricsRegistry) {
    this.#metrics = metrics
  }

  start(): void {
    this.#delay = monitorEventLoopDelay({ resolution: 10 })
    this.#delay.enable()
  }

  stop(): void {
    this.#delay?.disable()
  }

  show(): void {
    const m = this.#metrics
    const memory = process.memoryUsage()
    m.gauge('nodejs_heap_size_total_bytes', 'Process heap size from Node.js in bytes.').set(
      memory.heapTotal,
    )
    m.gauge('nodejs_heap_size_used_bytes', 'Process heap size used from Node.js in bytes.').set(
      memory.heapUsed,
    )
    m.gauge('nodejs_external_memory_bytes', 'Node.js external memory size in bytes.').set(
      memory.external,
    )
    const lag = m.gauge(
      'nodejs_eventloop_lag_seconds',
      'Lag of the event loop since the last scrape.',
      ['quantile'],
    )
    if (this.#delay === undefined) return
    for (const quantile of [50, 90, 99]) {
      lag.set({ quantile: String(quantile / 100) }, this.#delay.percentile(quantile) / 1e9)
    }
    this.#delay.reset()
  }
}
