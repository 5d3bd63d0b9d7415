/** How often the turns of a thread are checked. */
export const CHECK_MS = 1000
/**
 * Checks in a row without a turn before a thread can count as hung. A sleeping thread takes a turn
 * each second.
 */
const STILL_CHECKS_MIN = 10
/** Processor time without a turn that only an endless loop uses. A batch takes some milliseconds. */
const LOOP_PROCESSOR_MS = 5000
/** Checks in a row without a turn after which a thread counts as hung that uses no processor time. */
const STILL_CHECKS_MAX = 60

/**
 * Distinguishes a thread that hangs from one that sleeps, is slow or gets no processor. It counts
 * checks, not time: while the control thread stands still too (a suspended machine, a stopped
 * process), there are no checks. It asks how much processor time the thread used: on a machine
 * without a free processor, a sound thread uses little.
 */
export class HangWatchdog {
  #turns = 0
  #stillChecks = 0
  /** Processor time of the thread at the first check without a turn. */
  #sinceMs = 0
  #isReported = false

  /**
   * Checks the thread once. `turns`: turns of the thread so far, 0 = it is starting. `processorMs`
   * returns the processor time that it has used so far, NaN = unknown. Returns the reason why the
   * thread hangs, once; '' = it does not hang.
   */
  check(turns: number, processorMs: () => number): string {
    if (turns === 0 || turns !== this.#turns) {
      this.#turns = turns
      this.#stillChecks = 0
      this.#isReported = false
      return ''
    }
    this.#stillChecks++
    if (this.#stillChecks === 1) this.#sinceMs = processorMs()
    if (this.#stillChecks < STILL_CHECKS_MIN || this.#isReported) return ''
    const usedMs = processorMs() - this.#sinceMs
    if (usedMs < LOOP_PROCESSOR_MS && this.#stillChecks < STILL_CHECKS_MAX) return ''
    this.#isReported = true
    const used = Number.isNaN(usedMs) ? '' : `, ${usedMs / 1000} s of processor time`
    return `no turn in ${this.#stillChecks} s${used}`
  }
}
