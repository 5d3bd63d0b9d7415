import { lstatSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Timers } from '../base/timers.ts'
import { replaceFile, stampOf } from '../record/serials/replace-file.ts'
import { containing } from '../telemetry/contain.ts'
import type { Logger } from '../telemetry/log.ts'
import type { ProbeState } from './probe-state.ts'
import { printStates, type RefusedStates, scanStates } from './state-text.ts'
import { isSystemError } from './system-error.ts'

/** From a change to the write: many come at once. */
const WRITE_MS = 1000
const RETRY_MS = 10_000
/** Tries of a write that another process gets in the way of. */
const TRIES_MAX = 8
/** Larger files are none of ours: this is a hundred thousand probes. */
const OCTETS_MAX = 64 * 1024 * 1024

export interface StateFileOptions {
  /** Absolute. */
  readonly path: string
  readonly log: Logger
  readonly timers: Timers
  /** What is to be kept. */
  readonly states: () => Iterable<readonly [id: string, state: ProbeState]>
}

/**
 * Keeps what probes found over a restart. Whenever the process dies, the file is the old one or the new
 * one. While a new process takes over from an old one both write it, and the last one to do so wins:
 * both look at the same addresses.
 */
export class StateFile {
  readonly #options: StateFileOptions
  #isForeign = false
  #isFailing = false
  #isDirty = false
  #cancelTimer: (() => void) | undefined

  constructor(options: StateFileOptions) {
    this.#options = options
  }

  /** What an earlier process left. A file that is no good is told of, and done without. */
  open(): ReadonlyMap<string, ProbeState> {
    const { path, log } = this.#options
    const found = readStates(path)
    if (found === undefined) return new Map()
    if (!('kind' in found)) return found
    this.#isForeign = found.isForeign
    log.warning(printRefused(path, found))
    return new Map()
  }

  /** Notes that something changed: it is on the disk soon. */
  noteChange(): void {
    this.#isDirty = true
    this.#writeLater(WRITE_MS)
  }

  /** Leaves the file complete. */
  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    if (this.#isDirty) this.#write()
  }

  #writeLater(delayMs: number): void {
    if (this.#cancelTimer !== undefined || this.#isForeign) return
    const { path, log, timers } = this.#options
    const contained = containing(log, `Keeping probes in ${path}`)
    this.#cancelTimer = timers.after(delayMs, () => {
      this.#cancelTimer = undefined
      void contained(() => this.#write())
    })
  }

  #write(): void {
    if (this.#isForeign) return
    const { path, log } = this.#options
    const fault = this.#tryToWrite()
    if (fault === '') {
      if (this.#isFailing) log.info(`what probes find is kept in ${path} again`)
      this.#isFailing = false
      this.#isDirty = false
      return
    }
    if (!this.#isFailing) log.error(`what probes find can't be kept in ${path}: ${fault}`)
    this.#isFailing = true
    this.#writeLater(RETRY_MS)
  }

  /** Returns why it can't be done; '' = done. */
  #tryToWrite(): string {
    const { path, states } = this.#options
    try {
      const text = printStates(states())
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        if (replaceFile(path, stampOf(path), text) !== undefined) return ''
      }
      return 'another process writes it all the time'
    } catch (error) {
      if (!isSystemError(error)) throw error
      return error.message
    }
  }
}

/** Why the file could not be used or kept; '' = nothing speaks against it. For `sextant check`. */
export function checkStateFile(path: string): string {
  const found = readStates(path)
  if (found !== undefined) return 'kind' in found ? printRefused(path, found) : ''
  const directory = statSync(dirname(path), { throwIfNoEntry: false })
  return directory?.isDirectory() === true ? '' : `${dirname(path)} is no directory`
}

/** Undefined where there is no such file yet. */
function readStates(path: string): ReadonlyMap<string, ProbeState> | RefusedStates | undefined {
  try {
    const stats = lstatSync(path)
    if (!stats.isFile() || stats.size > OCTETS_MAX) {
      return { kind: 'refused', reason: 'it is no file, or too large for one', isForeign: true }
    }
    return scanStates(readFileSync(path, 'utf8'))
  } catch (error) {
    if (!isSystemError(error)) throw error
    if (error.code === 'ENOENT') return undefined
    return { kind: 'refused', reason: error.message, isForeign: true }
  }
}

function printRefused(path: string, { reason, isForeign }: RefusedStates): string {
  const cure = isForeign
    ? 'what probes find is not kept; remove it or name another file'
    : 'every address counts as healthy until it is probed; the file will be replaced'
  return `probe states in ${path} are not used: ${reason}; ${cure}`
}
