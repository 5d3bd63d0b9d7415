import { readFileSync, statSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { Timers } from '../../base/timers.ts'
import { stampOf } from '../../persist/next-file.ts'
import { type Guarded, guarding } from '../../telemetry/guard.ts'
import type { Logger } from '../../telemetry/log.ts'
import { type EndpointDrain, isActive, isSameDrain, printDrain } from './drain.ts'
import { DRAIN_FILE_OCTETS_MAX, type DrainText, scanDrains } from './drain-text.ts'

/** Interval of the checks for a changed file, and for drains that end. */
export const DRAIN_CHECK_MS = 200

export interface DrainFileOptions {
  /** Absolute path. */
  readonly path: string
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/** The drains that began and ended. */
export interface DrainsChange {
  readonly begun: readonly EndpointDrain[]
  readonly ended: readonly EndpointDrain[]
}

/**
 * Follows a drain file. A missing file has no drains. An invalid file is logged with its lines, and
 * the last valid state is kept; at the start, the valid lines are used. Whether a drain has ended
 * is decided by the wall clock at every check, so that a change of the clock loses nothing.
 */
export class DrainFile {
  readonly #options: DrainFileOptions
  readonly #listeners = new Set<(change: DrainsChange) => void>()
  readonly #guarded: Guarded
  readonly #stop: () => void
  /** The last valid state of the file, with drains that have ended. */
  #all: readonly EndpointDrain[] = []
  #active: readonly EndpointDrain[] = []
  /** Version of the file that was read last, and at the last check. */
  #readStamp = ''
  #seenStamp = ''
  #fault = ''

  constructor(options: DrainFileOptions) {
    const { timers, log, path } = options
    this.#options = options
    this.#guarded = guarding(log, `Following the drain file ${path}`)
    this.#readStamp = this.#seenStamp = this.#stampNow()
    const found = this.#read()
    this.#all = found.drains.map(({ drain }) => drain)
    this.#report(found.faults, 'these lines are not used')
    this.#activate()
    this.#stop = timers.every(DRAIN_CHECK_MS, () => void this.#guarded(() => this.#check()))
  }

  get path(): string {
    return this.#options.path
  }

  /** The drains that have not ended, in the order of the file. */
  get drains(): readonly EndpointDrain[] {
    return this.#active
  }

  /** What is wrong with the file; '' = nothing. For the ready page. */
  get fault(): string {
    return this.#fault
  }

  /** Calls `listener` after drains began or ended; returns the function that unsubscribes it. */
  subscribe(listener: (change: DrainsChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#stop()
    this.#listeners.clear()
  }

  #check(): void {
    const stamp = this.#stampNow()
    // A file that replaced another one is complete. Any other one may still be written, or its
    // editor may be between removing and creating it.
    const isComplete = stamp === this.#seenStamp || isAnother(stamp, this.#seenStamp)
    this.#seenStamp = stamp
    if (isComplete && stamp !== this.#readStamp) this.#load(stamp)
    this.#activate()
  }

  #load(stamp: string): void {
    const { log, path } = this.#options
    this.#readStamp = stamp
    const found = this.#read()
    const wasFaulty = this.#fault !== ''
    this.#report(found.faults, 'the last valid state is kept')
    if (found.faults.length > 0) return
    if (wasFaulty) log.info(`drain file ${path} is valid again`)
    this.#all = found.drains.map(({ drain }) => {
      return this.#all.find((known) => isSameDrain(known, drain)) ?? drain
    })
  }

  #report(faults: readonly InputError[], effect: string): void {
    const { log, path } = this.#options
    const [first, ...others] = faults
    const more = others.length === 0 ? '' : `, and ${others.length} more faults`
    this.#fault = first === undefined ? '' : `drain file: ${first.print()}${more}`
    if (first !== undefined) log.error(`drain file ${path}: ${first.print()}${more}; ${effect}`)
  }

  /** Ends drains whose time has come, and begins new ones. */
  #activate(): void {
    const { clock, log } = this.#options
    const nowMs = clock.now()
    const active = this.#all.filter((drain) => isActive(drain, nowMs))
    const begun = active.filter((drain) => !this.#active.includes(drain))
    const ended = this.#active.filter((drain) => !active.includes(drain))
    this.#active = active
    if (begun.length === 0 && ended.length === 0) return
    for (const drain of begun) log.info(`drain begins: ${printDrain(drain)}`)
    for (const drain of ended) {
      const replaced = begun.some(({ selector }) => selector.text === drain.selector.text)
      if (!replaced) log.info(`drain ends: ${printDrain(drain)}`)
    }
    for (const listener of this.#listeners) listener({ begun, ended })
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
  return { drains: [], faults: [new InputError({ file, line: 1 }, `drain file: ${reason}`)] }
}
