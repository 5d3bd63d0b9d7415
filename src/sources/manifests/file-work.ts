import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'

/**
 * Work on the files of a directory, one after the other: checks of changed files, and surveys of all files. A survey
 * changes nothing itself and may take long, so checks do not wait for it. Errors are logged.
 */
export class FileWork {
  readonly guarded: Guarded
  readonly #survey: () => Promise<void>
  #checks: Promise<void> = Promise.resolve()
  #surveys: Promise<void> = Promise.resolve()
  /** A survey is requested and has not started. */
  #isSurveyDue = false
  #isClosed = false

  constructor(directory: string, log: Logger, survey: () => Promise<void>) {
    this.guarded = guarding(log, `Checking for changes in ${directory}`)
    this.#survey = survey
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** What has not started is not done any more. */
  close(): void {
    this.#isClosed = true
  }

  /** Resolves once this and all earlier checks are done. */
  check(work: () => Promise<void>): Promise<void> {
    this.#checks = this.#checks.then(async () => {
      if (!this.#isClosed) await this.guarded(work)
    })
    return this.#checks
  }

  /** Requests a survey. A survey that has not started yet will see all changes until then. */
  surveySoon(): void {
    if (this.#isSurveyDue) return
    this.#isSurveyDue = true
    this.#surveys = this.#surveys.then(async () => {
      this.#isSurveyDue = false
      if (!this.#isClosed) await this.guarded(this.#survey)
    })
  }

  /** Resolves once all that was requested so far is done. */
  async settled(): Promise<void> {
    await this.#surveys
    await this.#checks
  }
}
