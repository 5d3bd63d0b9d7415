import { readFileSync, statSync } from 'node:fs'
import { InputError } from '../../base/errors.ts'
import { stampOf } from '../../base/stat.ts'
import { isSystemError } from '../../base/system-error.ts'
import { type ProblemText, problemOf } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import { isActive } from './drain.ts'
import { type DrainScheduleParts, ScheduledDrains } from './drain-schedule.ts'
import { DRAIN_FILE_OCTETS_MAX, type DrainText, scanDrains } from './drain-text.ts'

interface DrainFileOptions extends DrainScheduleParts {
  /** Absolute path. */
  readonly path: string
  readonly timers: Timers
}

/**
 * Follows a drain file. A missing file has no drains. An invalid file is logged with its lines, and
 * the last valid state is kept; at the start, the valid lines are used.
 */
export class DrainFile extends ScheduledDrains {
  readonly #options: DrainFileOptions
  /** Version of the file that was read last, and at the last check. */
  #readStamp = ''
  #seenStamp = ''
  #problems: readonly ProblemText[] = []

  constructor(options: DrainFileOptions) {
    super(options)
    const { timers, path } = options
    this.#options = options
    this.#readStamp = this.#seenStamp = this.#stampNow()
    const found = this.#read()
    this.set(found.drains.map(({ drain }) => drain))
    this.#report(found.faults, 'these lines are not used')
    super.check()
    this.checkAlways(timers, `Following the drain file ${path}`)
  }

  get problems(): readonly ProblemText[] {
    return this.#problems
  }

  protected override check(): void {
    const stamp = this.#stampNow()
    // A file that replaced another one is complete. Any other one may still be written, or its
    // editor may be between removing and creating it.
    const isComplete = stamp === this.#seenStamp || isAnother(stamp, this.#seenStamp)
    this.#seenStamp = stamp
    if (isComplete && stamp !== this.#readStamp) this.#load(stamp)
    super.check()
  }

  #load(stamp: string): void {
    const { log, path } = this.#options
    this.#readStamp = stamp
    const found = this.#read()
    const wasFaulty = this.#problems.length > 0
    this.#report(found.faults, 'the last valid state is kept')
    if (found.faults.length > 0) return
    if (wasFaulty) log.info(`drain file ${path} is valid again`, 'drain-file-valid')
    this.set(found.drains.map(({ drain }) => drain))
  }

  #report(faults: readonly InputError[], effect: string): void {
    const { log, path } = this.#options
    const [first, ...others] = faults
    const more = others.length === 0 ? '' : `, and ${others.length} more faults`
    this.#problems = faults.map((fault) => {
      const reason = `drain file ${path}: ${fault.message}; ${effect}`
      return { ...problemOf(fault, path), reason }
    })
    if (first !== undefined)
      log.error(`drain file ${path}: ${first.print()}${more}; ${effect}`, 'drain-file-invalid')
  }

  #read(): DrainText {
    const { path } = this.#options
    return readDrainFile(path)
  }

  /** A file whose stamp can't be read is read again at every change of the reason. */
  #stampNow(): string {
    try {
      return stampOf(this.#options.path)
    } catch (error) {
      if (!isSystemError(error)) throw error
      return error.message
    }
  }
}

/** True if both versions are files, and different ones. */
function isAnother(stamp: string, before: string): boolean {
  const [inode = '', , size] = stamp.split(' ')
  const [inodeBefore = ''] = before.split(' ')
  return inode !== '' && inodeBefore !== '' && inode !== inodeBefore && size !== '0'
}

/** True if drains of the file may have begun since that time, in milliseconds since the epoch. */
export function hasDrainsSince(path: string, sinceMs: number, nowMs: number): boolean {
  const { drains } = readDrainFile(path)
  if (!drains.some(({ drain }) => isActive(drain, nowMs))) return false
  // Unlike the time of the content, this time also changes when a file is moved here.
  return (statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0) >= sinceMs
}

/** Reads a drain file. A missing file has no drains; a file that can't be read is a fault. */
export function readDrainFile(path: string): DrainText {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return { drains: [], faults: [] }
    if (!stats.isFile()) return failed(path, 'it is not a regular file')
    if (stats.size > DRAIN_FILE_OCTETS_MAX) return failed(path, 'it is larger than 1 MiB')
    return scanDrains(readFileSync(path, 'utf8'), path)
  } catch (error) {
    if (!isSystemError(error)) throw error
    return failed(path, error.message)
  }
}

function failed(file: string, reason: string): DrainText {
  return { drains: [], faults: [new InputError({ file, line: 1 }, reason)] }
}
