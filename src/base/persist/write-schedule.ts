import type { Clock } from '../clock.ts'
import { type Guarded, guarding } from '../telemetry/guard.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Timers } from '../timers.ts'

/** Delay from a change to the write, because changes often come in groups. */
const SETTLE_MS = 1000
const RETRY_MS = 10_000
/**
 * The next write waits this many times the duration of the last one, so that large files are
 * written rarely.
 */
const REST_FACTOR = 4

interface WriteScheduleOptions {
  /** What is written, for the log: `probe states in PATH`. */
  readonly subject: string
  /** Minimum time from the end of one write to the next. */
  readonly gapMs: number
  /** Returns why the write failed; '' = it succeeded; undefined = it is not possible yet. */
  readonly write: () => string | undefined | Promise<string | undefined>
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/** Logs that writes begin to fail, or succeed again. `before`: the fault of the write before; '' = it succeeded. */
export function logWriteFault(log: Logger, subject: string, before: string, fault: string): void {
  if (fault !== '' && before === '')
    log.error(`${subject} cannot be written: ${fault}`, 'state-write-failed')
  if (fault === '' && before !== '')
    log.info(`${subject} can be written again`, 'state-write-recovered')
}

/**
 * Decides when a file that survives a restart is written: soon after a change, rarely if changes
 * are frequent, and again after a failure. Failure and recovery are logged once.
 */
export class WriteSchedule {
  readonly #options: WriteScheduleOptions
  readonly #guarded: Guarded
  #isDirty = false
  #isWriting = false
  #isStopped = false
  #endedMs = Number.NEGATIVE_INFINITY
  #restMs = 0
  #cancelTimer: (() => void) | undefined
  /** Why the last write failed; '' = it succeeded. */
  fault = ''
  /** Monotonic clock at the start of the last write, so the age of its content; -Infinity = not written yet. */
  writtenMs = Number.NEGATIVE_INFINITY

  constructor(options: WriteScheduleOptions) {
    this.#options = options
    this.#guarded = guarding(options.log, `Writing ${options.subject}`)
  }

  /** Notes a change, which is written soon. */
  noteChange(): void {
    this.#isDirty = true
    const sinceMs = this.#options.clock.monotonic() - this.#endedMs
    this.#writeLater(Math.max(SETTLE_MS, this.#gapMs - sinceMs))
  }

  /** Writes a pending change now, without waiting for the gap. */
  async flush(): Promise<void> {
    if (!this.#isDirty || this.#isWriting || this.#isStopped) return
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    await this.#guarded(() => this.#write())
  }

  /**
   * Checks now whether a write is possible, and again until it is or until the first write: a fault is found at the
   * start, not with the first change. `find`: returns the fault; '' = none.
   */
  checkPlace(find: () => string): void {
    const isWritten = this.writtenMs !== Number.NEGATIVE_INFINITY
    if (this.#isStopped || this.#isDirty || this.#isWriting || isWritten) return
    this.#report(find())
    if (this.fault === '') return
    this.#options.timers.after(RETRY_MS, () => this.checkPlace(find))
  }

  /** Starts no more writes. Returns true if a change is not written, or is being written. */
  stop(): boolean {
    this.#isStopped = true
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    return this.#isDirty || this.#isWriting
  }

  /** Notes the result of a write: why it failed, or ''. `startMs`: absent = the write just ran. */
  note(fault: string, startMs = this.#options.clock.monotonic()): void {
    this.#report(fault)
    if (fault === '') {
      this.writtenMs = startMs
      return
    }
    this.#isDirty = true
    this.#writeLater(Math.max(RETRY_MS, this.#gapMs))
  }

  #report(fault: string): void {
    const { log, subject } = this.#options
    logWriteFault(log, subject, this.fault, fault)
    this.fault = fault
  }

  get #gapMs(): number {
    return Math.max(this.#options.gapMs, this.#restMs)
  }

  #writeLater(delayMs: number): void {
    if (this.#cancelTimer !== undefined || this.#isWriting || this.#isStopped) return
    this.#cancelTimer = this.#options.timers.after(delayMs, () => {
      this.#cancelTimer = undefined
      void this.#guarded(() => this.#write())
    })
  }

  async #write(): Promise<void> {
    const { clock, write } = this.#options
    this.#isDirty = false
    this.#isWriting = true
    const startMs = clock.monotonic()
    let fault: string | undefined = 'it failed'
    try {
      fault = await write()
    } finally {
      this.#isWriting = false
      if (!this.#isStopped) this.#end(fault, startMs)
    }
  }

  #end(fault: string | undefined, startMs: number): void {
    if (fault !== undefined) {
      this.#endedMs = this.#options.clock.monotonic()
      this.#restMs = REST_FACTOR * (this.#endedMs - startMs)
      this.note(fault, startMs)
    }
    if (fault === undefined || this.#isDirty) this.noteChange()
  }
}
