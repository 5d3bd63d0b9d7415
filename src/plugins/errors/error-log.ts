import type { Logger } from '../../telemetry/log.ts'
import type { Consolidation } from './consolidation.ts'

/** Logs errors or counts them; on the control thread only, wherever they come from: it has timers. */
export class ErrorLog {
  readonly #log: Logger
  readonly #consolidations: readonly Consolidation[]

  constructor(log: Logger, consolidations: readonly Consolidation[]) {
    this.#log = log
    this.#consolidations = consolidations
  }

  /** `report`: whose error it is, a NUL, its text. The line is both. */
  take(report: string): void {
    const nul = report.indexOf('\0')
    const text = report.slice(nul + 1)
    const line = report.slice(0, nul) + text
    for (const consolidation of this.#consolidations) {
      if (consolidation.take(text, line)) return
    }
    this.#log.error(line)
  }
}
