/** The source of timers, which tests replace. */
export interface Timers {
  /** Runs `run` every `intervalMs` until the returned function is called. */
  every(intervalMs: number, run: () => void): () => void
  /** Runs `run` once after `delayMs`, unless the returned function is called before. */
  after(delayMs: number, run: () => void): () => void
}

/** setTimeout holds delays in 31 bits. A longer one would fire at once. */
export const DELAY_MAX_MS: number = 2 ** 31 - 1

/** The process's own timers. None of them keeps the process alive. */
export const systemTimers: Timers = {
  every: (intervalMs, run) => {
    const timer = setInterval(run, Math.min(intervalMs, DELAY_MAX_MS)).unref()
    return () => clearInterval(timer)
  },
  after: (delayMs, run) => {
    const timer = setTimeout(run, Math.min(delayMs, DELAY_MAX_MS)).unref()
    return () => clearTimeout(timer)
  },
}
