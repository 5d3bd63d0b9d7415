import type { Logger } from '../../base/telemetry/log.ts'
import type { Consolidation } from './consolidation.ts'

/** Logs or counts errors of all threads. Only on the control thread, because it has timers. */
export class ErrorLog {
  readonly #log: Logger
  readonly #consolidations: readonly Consolidation[]

  constructor(log: Logger, consolidations: readonly Consolidation[]) {
    this.#log = log
    this.#consolidations = consolidations
  }

  /** `report`: the query that failed, a NUL, the text of the error. The line contains both. */
  take(report: string): void {
    const nul = report.indexOf('\0')
    const text = report.slice(nul + 1)
    const line = report.slice(0, nul) + text
    for (const consolidation of this.#consolidations) {
      if (consolidation.take(text, line)) return
    }
    this.#log.error(line, 'query-failed')
  }
}
