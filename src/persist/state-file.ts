import { fsync, lstatSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import type { Clock } from '../base/clock.ts'
import { runInSlices, runWhole } from '../base/slices.ts'
import { isSystemError } from '../base/system-error.ts'
import type { Timers } from '../base/timers.ts'
import { guarding } from '../telemetry/guard.ts'
import type { Logger } from '../telemetry/log.ts'
import { NextFile, stampOf } from './replace-file.ts'
import { openText, type RefusedText, refuse, type SealedForm, sealText } from './sealed-text.ts'

/** Delay from a change to the write, because changes often come in groups. */
const WRITE_MS = 1000
const RETRY_MS = 10_000
/** Maximum number of attempts if another process writes at the same time. */
const TRIES_MAX = 8
/**
 * The next write waits this many times the duration of the last one, so that large files are
 * written rarely.
 */
const REST_FACTOR = 4

/** A kind of file that stores data over a restart. */
export interface StateKind<T> extends SealedForm {
  /** Larger files are refused. */
  readonly octetsMax: number
  /** Permissions of the file. */
  readonly mode: number
  /** Minimum time from the end of one write to the next. */
  readonly gapMs: number
  /** True: the file may be large. It is written in slices, so that other work runs in between. */
  readonly isLarge: boolean
  /** Such as `probe states`. */
  readonly contents: string
  /** Such as `what probes find`. */
  readonly subject: string
  /** The effect of starting without the file, for the log. */
  readonly loss: string
  /** Reads the output of `print`; undefined = a line has another format. */
  readonly scan: (lines: readonly string[]) => T | RefusedText | undefined
}

export interface StateFileOptions<T> {
  /** Absolute path. */
  readonly path: string
  readonly kind: StateKind<T>
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  /** Returns the data to store, in lines. */
  readonly print: () => Iterable<string>
}

/**
 * Stores data over a restart. If the process dies at any time, the file is the old or the new
 * version. While a new process replaces an old one, both write the file, and the last write wins.
 * That is safe, because both have the same data.
 */
export class StateFile<T> {
  readonly #options: StateFileOptions<T>
  #isForeign = false
  #isDirty = false
  #isWriting = false
  #isClosed = false
  #endedMs = Number.NEGATIVE_INFINITY
  #restMs = 0
  #cancelTimer: (() => void) | undefined
  /** Why the data can't be stored now; '' = it is stored. */
  fault = ''
  /** Monotonic clock of the last write; -Infinity = not written yet. */
  writtenMs = Number.NEGATIVE_INFINITY
  /** Size of the file; 0 = nothing was written. */
  octets = 0

  constructor(options: StateFileOptions<T>) {
    this.#options = options
  }

  /** Returns the data of an earlier process. An invalid file is logged and ignored. */
  open(): T | undefined {
    const { path, kind, log } = this.#options
    const found = readState(path, kind)
    if (found === undefined || !isRefused(found)) return found
    this.#isForeign = found.isForeign
    if (found.isForeign) this.fault = found.reason
    log.warning(printRefused(path, kind, found))
    return undefined
  }

  /** Notes a change, which is written soon. */
  noteChange(): void {
    this.#isDirty = true
    const { clock, kind } = this.#options
    const sinceMs = clock.monotonic() - this.#endedMs
    this.#writeLater(Math.max(WRITE_MS, Math.max(kind.gapMs, this.#restMs) - sinceMs))
  }

  /** Writes the complete file and stops. */
  close(): void {
    this.#isClosed = true
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    const isBehind = this.#isDirty || this.#isWriting
    if (isBehind && !this.#isForeign) this.#note(this.#tryToWrite())
  }

  #writeLater(delayMs: number): void {
    const isBusy = this.#cancelTimer !== undefined || this.#isWriting
    if (isBusy || this.#isForeign || this.#isClosed) return
    const { path, log, timers, kind } = this.#options
    const guarded = guarding(log, `Keeping ${kind.contents} in ${path}`)
    this.#cancelTimer = timers.after(delayMs, () => {
      this.#cancelTimer = undefined
      void guarded(() => this.#write())
    })
  }

  #write(): void | Promise<void> {
    const { kind, clock } = this.#options
    this.#isDirty = false
    const startMs = clock.monotonic()
    const end = (fault: string): void => {
      this.#isWriting = false
      if (this.#isClosed) return
      this.#endedMs = clock.monotonic()
      this.#restMs = REST_FACTOR * (this.#endedMs - startMs)
      this.#note(fault)
    }
    if (!kind.isLarge) return end(this.#tryToWrite())
    this.#isWriting = true
    return this.#tryInSlices().then(end, (error) => {
      end('it failed')
      throw error
    })
  }

  #note(fault: string): void {
    const { path, log, kind, clock } = this.#options
    const wasFailing = this.fault !== ''
    this.fault = fault
    if (fault === '') {
      if (wasFailing) log.info(`${kind.subject} is kept in ${path} again`)
      this.writtenMs = clock.monotonic()
      if (this.#isDirty) this.noteChange()
      return
    }
    if (!wasFailing) log.error(`${kind.subject} can't be kept in ${path}: ${fault}`)
    this.#isDirty = true
    this.#writeLater(RETRY_MS)
  }

  /** Returns why the write failed; '' = it succeeded. */
  #tryToWrite(): string {
    const { path, kind } = this.#options
    return named(() => {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const stamp = stampOf(path)
        const next = new NextFile(path, kind.mode)
        try {
          runWhole(this.#fill(next))
          next.sync()
          if (this.#put(next, stamp)) return ''
        } finally {
          next.close()
        }
      }
      return 'another process writes it all the time'
    })
  }

  /** As `#tryToWrite`, in slices. If the file is closed meanwhile, `close` has written it. */
  async #tryInSlices(): Promise<string> {
    const { path, kind, clock } = this.#options
    let next: NextFile | undefined
    try {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const stamp = stampOf(path)
        next?.close()
        next = new NextFile(path, kind.mode)
        await runInSlices(this.#fill(next), clock)
        next.flush()
        await syncLater(next.file)
        if (this.#isClosed || this.#put(next, stamp)) return ''
      }
      return 'another process writes it all the time'
    } catch (error) {
      if (!isSystemError(error)) throw error
      return error.message
    } finally {
      next?.close()
    }
  }

  *#fill(next: NextFile): Generator<void, void> {
    const { kind, print } = this.#options
    for (const piece of sealText(kind, print())) {
      next.write(piece)
      yield
    }
  }

  #put(next: NextFile, stamp: string): boolean {
    if (next.put(stamp) === undefined) return false
    this.octets = next.octets
    return true
  }
}

const syncLater = promisify(fsync)

/** Returns the text of a system error instead of throwing it. */
function named(work: () => string): string {
  try {
    return work()
  } catch (error) {
    if (!isSystemError(error)) throw error
    return error.message
  }
}

/** Returns why the file can't be used or written; '' = it can. For `sextant check`. */
export function checkStateFile<T>(path: string, kind: StateKind<T>): string {
  const found = readState(path, kind)
  if (found !== undefined) return isRefused(found) ? printRefused(path, kind, found) : ''
  const directory = statSync(dirname(path), { throwIfNoEntry: false })
  return directory?.isDirectory() === true ? '' : `${dirname(path)} is no directory`
}

/** Undefined = the file does not exist yet. */
function readState<T>(path: string, kind: StateKind<T>): T | RefusedText | undefined {
  try {
    const stats = lstatSync(path)
    if (!stats.isFile() || stats.size > kind.octetsMax) {
      return refuse('it is no file, or too large for one', true)
    }
    const lines = openText(readFileSync(path, 'utf8'), kind)
    if (!Array.isArray(lines)) return lines
    return kind.scan(lines) ?? refuse(`it has a line that is none of ${kind.contents}`, false)
  } catch (error) {
    if (!isSystemError(error)) throw error
    return error.code === 'ENOENT' ? undefined : refuse(error.message, true)
  }
}

function isRefused<T>(found: T | RefusedText): found is RefusedText {
  return typeof found === 'object' && found !== null && 'kind' in found && found.kind === 'refused'
}

function printRefused<T>(path: string, kind: StateKind<T>, refused: RefusedText): string {
  const cure = refused.isForeign
    ? `${kind.subject} is not kept; remove it or name another file`
    : `${kind.loss}; the file will be replaced`
  return `${kind.contents} in ${path} are not used: ${refused.reason}; ${cure}`
}
