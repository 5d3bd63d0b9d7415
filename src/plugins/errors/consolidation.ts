import type { LinearRegExp } from '../../base/re2/linear-regexp.ts'
import type { Timers } from '../../base/timers.ts'

interface ConsolidationOptions {
  readonly pattern: LinearRegExp
  /** As the operator wrote it. */
  readonly patternText: string
  readonly periodMs: number
  readonly periodText: string
  readonly write: (text: string) => void
  /** True = the first error of a period is logged at once, in full. */
  readonly showFirst: boolean
  readonly timers: Timers
}

/**
 * Counts errors that match a pattern, and writes one line about them a period after the first:
 * `3 errors like 'RE' occurred in last 30s`.
 */
export class Consolidation {
  readonly #options: ConsolidationOptions
  #count = 0
  #cancel = (): void => {}
  #stopped = false

  constructor(options: ConsolidationOptions) {
    this.#options = options
  }

  /** Accepts an error. Returns false if it doesn't match, or after `stop`. `line`: as logged. */
  take(text: string, line: string): boolean {
    const { pattern, showFirst, periodMs, timers, write } = this.#options
    if (this.#stopped || !pattern.test(text)) return false
    this.#count++
    if (this.#count > 1) return true
    if (showFirst) write(line)
    this.#cancel = timers.after(periodMs, () => this.#report())
    return true
  }

  #report(): void {
    const { patternText, periodText, showFirst, write } = this.#options
    const count = this.#count
    this.#count = 0
    // A single error that was logged already needs no summary.
    if (count === 0 || (showFirst && count === 1)) return
    write(`${count} errors like '${patternText}' occurred in last ${periodText}`)
  }

  /** Logs the errors counted so far, and accepts no more. */
  stop(): void {
    this.#stopped = true
    this.#cancel()
    this.#report()
  }
}
