import { accessSync, constants, fsync, lstatSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Clock } from '../clock.ts'
import { runInSlices, runWhole } from '../slices.ts'
import { stampOf } from '../stat.ts'
import { isSystemError } from '../system-error.ts'
import type { Logger } from '../telemetry/log.ts'
import { oneProblem, type ProblemGroup } from '../telemetry/problems.ts'
import type { Timers } from '../timers.ts'
import { NextFile } from './next-file.ts'
import { openInSlices, type RefusedText, refuse, type SealedForm, sealText } from './sealed-text.ts'
import { WriteSchedule } from './write-schedule.ts'

/** Maximum number of attempts if another process writes at the same time. */
const TRIES_MAX = 12
const PAUSE_MS_MAX = 64
const CONTENDED = 'another process writes it constantly'

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
  /** Plural, such as `probe states`. */
  readonly contents: string
  /** The effect of starting without the file, for the log. */
  readonly loss: string
  /** Reads the output of `print`; undefined = a line has another format. */
  readonly scan: (lines: readonly string[], mark?: string) => T | RefusedText | undefined
  /** As `scan`; it may pause. */
  readonly scanInSlices?: (lines: readonly string[]) => Generator<void, T | undefined>
}

interface StateFileOptions<T> {
  /** Absolute path. */
  readonly path: string
  readonly kind: StateKind<T>
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
  /** Returns the data to store, in lines. */
  readonly print: () => Iterable<string>
  /**
   * Called before a write with the data that another process wrote since; absent = the last write
   * wins.
   */
  readonly merge?: (found: T) => void
}

/**
 * Stores data over a restart. If the process dies at any time, the file is the old or the new
 * version.
 *
 * While a new process replaces an old one, both write the file. If both have the same data, the
 * last write wins. Otherwise (`merge`) a process reads the other's version before it replaces it.
 */
export class StateFile<T> {
  readonly #options: StateFileOptions<T>
  readonly #schedule: WriteSchedule
  #isForeign = false
  #isClosed = false
  /** Version of the file that this process read or wrote last; '' = none. */
  #stamp = ''
  /** Size of the file; 0 = nothing was written. */
  octets = 0

  constructor(options: StateFileOptions<T>) {
    const { path, kind, clock, timers, log } = options
    this.#options = options
    const write = (): string | Promise<string> => {
      return kind.isLarge ? this.#tryInSlices() : this.#tryToWrite()
    }
    const subject = `${kind.contents} in ${path}`
    this.#schedule = new WriteSchedule({ subject, gapMs: kind.gapMs, write, clock, timers, log })
  }

  /** Why the data can't be stored now; '' = it is stored. */
  get fault(): string {
    return this.#schedule.fault
  }

  /** Why the data can't be stored now, as a problem of the server. */
  get problems(): readonly ProblemGroup[] {
    const { path, kind } = this.#options
    return problemsOfFile(path, kind.contents, this.fault, `after a restart, ${kind.loss}`)
  }

  /** Monotonic clock at the start of the last write; -Infinity = not written yet. */
  get writtenMs(): number {
    return this.#schedule.writtenMs
  }

  /** Returns the data of an earlier process. An invalid file is logged and ignored. */
  open(): T | undefined {
    this.#stamp = this.#stampNow() ?? ''
    const found = this.#read()
    this.#checkPlace()
    return found
  }

  /** As `open`. Other work runs meanwhile. */
  async openInSlices(): Promise<T | undefined> {
    const { path, kind, clock } = this.#options
    this.#stamp = this.#stampNow() ?? ''
    const found = this.#accept(await runInSlices(readState(path, kind), clock))
    this.#checkPlace()
    return found
  }

  /**
   * Merges what another process wrote since. Returns true if another process replaced or removed
   * the file.
   */
  catchUp(): boolean {
    const stamp = this.#isForeign ? undefined : this.#stampNow()
    if (stamp === undefined || stamp === this.#stamp) return false
    this.#stamp = stamp
    const found = this.#read()
    if (found !== undefined) this.#options.merge?.(found)
    return true
  }

  /** Notes a change, which is written soon. */
  noteChange(): void {
    this.#schedule.noteChange()
  }

  /**
   * Writes the complete file with that mark. Returns true once the data survives a crash; false if
   * the file cannot be written now. In that case it is written as soon as possible.
   */
  writeNow(mark: string): boolean {
    if (this.fault !== '') return false
    this.#schedule.note(this.#tryToWrite(mark))
    return this.fault === ''
  }

  /** Writes the complete file and stops. */
  close(): void {
    this.#isClosed = true
    const isBehind = this.#schedule.stop()
    if (isBehind && !this.#isForeign) this.#schedule.note(this.#tryToWrite())
  }

  #checkPlace(): void {
    const { path } = this.#options
    if (!this.#isForeign) this.#schedule.checkPlace(() => findPlaceFault(path))
  }

  #read(): T | undefined {
    const { path, kind } = this.#options
    return this.#accept(runWhole(readState(path, kind)))
  }

  #accept(found: T | RefusedText | undefined): T | undefined {
    const { path, kind, log } = this.#options
    if (found === undefined || !isRefused(found)) return found
    if (found.isForeign) {
      this.#isForeign = true
      this.#schedule.fault = found.reason
      this.#schedule.stop()
    }
    log.warning(printRefused(path, kind, found), 'state-file-refused')
    return undefined
  }

  /** Returns undefined if the stamp can't be read now; a write will report the reason. */
  #stampNow(): string | undefined {
    try {
      return stampOf(this.#options.path)
    } catch (error) {
      if (!isSystemError(error)) throw error
      return undefined
    }
  }

  /** Returns the version to replace, once its data is merged. Throws the system's error. */
  #current(): string {
    const { path, merge } = this.#options
    if (merge === undefined) return stampOf(path)
    this.catchUp()
    return this.#stamp
  }

  /** Returns why the write failed; '' = it succeeded. */
  #tryToWrite(mark?: string): string {
    const { path, kind } = this.#options
    return named(() => {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        if (tries > 0) Atomics.wait(NEVER, 0, 0, pauseMs(tries))
        const stamp = this.#current()
        if (this.#isForeign) return this.fault
        const next = new NextFile(path, kind.mode)
        try {
          runWhole(this.#fill(next, mark))
          next.sync()
          if (this.#put(next, stamp)) return ''
        } finally {
          next.close()
        }
      }
      return CONTENDED
    })
  }

  /** As `#tryToWrite`, in slices. If the file is closed meanwhile, `close` has written it. */
  async #tryInSlices(): Promise<string> {
    const { path, kind, clock } = this.#options
    let next: NextFile | undefined
    try {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        if (tries > 0) await delay(pauseMs(tries))
        const stamp = this.#current()
        if (this.#isForeign) return this.fault
        next?.close()
        next = new NextFile(path, kind.mode)
        await runInSlices(this.#fill(next), clock)
        next.flush()
        await syncLater(next.file)
        if (this.#isClosed || this.#put(next, stamp)) return ''
      }
      return CONTENDED
    } catch (error) {
      if (!isSystemError(error)) throw error
      return error.message
    } finally {
      next?.close()
    }
  }

  *#fill(next: NextFile, mark?: string): Generator<void, void> {
    const { kind, print } = this.#options
    for (const piece of sealText(kind, print(), mark ?? kind.marks?.[0])) {
      next.write(piece)
      yield
    }
  }

  #put(next: NextFile, replaced: string): boolean {
    const stamp = next.put(replaced)
    if (stamp === undefined) return false
    this.#stamp = stamp
    this.octets = next.octets
    return true
  }
}

const syncLater = promisify(fsync)

/** `Atomics.wait` on it ends when the time is over. */
const NEVER = new Int32Array(new SharedArrayBuffer(4))

/**
 * Two processes that write at the same time undo each other's attempt. Without a random pause before
 * the next one, they could go on until both give up.
 */
function pauseMs(tries: number): number {
  return Math.random() * Math.min(2 ** tries, PAUSE_MS_MAX)
}

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
  const found = runWhole(readState(path, kind))
  if (found !== undefined) return isRefused(found) ? printRefused(path, kind, found) : ''
  return checkDirectoryOf(path)
}

/** Returns the data of a file; undefined = it does not exist, or can't be used. */
export function readStateFile<T>(path: string, kind: StateKind<T>): T | undefined {
  const found = runWhole(readState(path, kind))
  return found === undefined || isRefused(found) ? undefined : found
}

/** Returns why a file cannot be written; '' = it probably can. */
export function findPlaceFault(path: string): string {
  return named(() => {
    accessSync(dirname(path), constants.W_OK | constants.X_OK)
    return ''
  })
}

/** Why `contents` cannot be stored, as a problem of the server. `fault`: '' = they can. `loss`: the effect. */
export function problemsOfFile(
  path: string,
  contents: string,
  fault: string,
  loss: string,
): readonly ProblemGroup[] {
  if (fault === '') return []
  const reason = `${contents} in ${path} cannot be written: ${fault}; make it writable; otherwise, ${loss}`
  return [oneProblem('state-file', path, { place: path, object: path, reason })]
}

/** Returns why a file cannot be created; '' = its directory exists. */
export function checkDirectoryOf(path: string): string {
  const directory = statSync(dirname(path), { throwIfNoEntry: false })
  return directory?.isDirectory() === true ? '' : `${dirname(path)} is not a directory`
}

/** Undefined = the file does not exist yet. It may pause. */
function* readState<T>(
  path: string,
  kind: StateKind<T>,
): Generator<void, T | RefusedText | undefined> {
  try {
    const stats = lstatSync(path)
    if (!stats.isFile() || stats.size > kind.octetsMax) {
      return refuse('it is not a regular file, or is too large', true)
    }
    const opened = yield* openInSlices(readFileSync(path, 'utf8'), kind)
    if (opened.kind === 'refused') return opened
    const { lines, mark } = opened
    const found = kind.scanInSlices ? yield* kind.scanInSlices(lines) : kind.scan(lines, mark)
    return found ?? refuse('it has an invalid line', false)
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
    ? 'the file is not replaced; remove it or name another one'
    : `${kind.loss}; the file will be replaced`
  return `${kind.contents}: ${path} is not used: ${refused.reason}; ${cure}`
}
