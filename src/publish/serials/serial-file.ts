import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { Timers } from '../../base/timers.ts'
import { replaceFile, stampOf } from '../../persist/replace-file.ts'
import { type Guarded, guarding } from '../../telemetry/guard.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { SerialEntry, SerialIndex } from './serial-index.ts'
import {
  printSerials,
  type RefusedSerials,
  type SerialFileState,
  scanSerials,
  UNSAVED_MAX,
} from './serial-text.ts'

/** Interval between writes after many writes. */
const WRITE_INTERVAL_MS = 1000
/**
 * Maximum number of consecutive writes without delay, because an edit may affect several blocks.
 */
const TURNS_MAX = 8
const RETRY_MS = 10_000
/** Maximum number of attempts if another process writes at the same time. */
const TRIES_MAX = 8
/** Larger files are refused; this is enough for a million zones. */
const OCTETS_MAX = 256 * 1024 * 1024

export interface SerialFileOptions {
  /** Absolute path. */
  readonly path: string
  readonly index: SerialIndex
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * Stores serials over a restart. Each version of the file is complete before it replaces the
 * previous one, and it is on the disk before the serial is served. Frequent changes need few
 * writes:
 *
 *     the first changes    written, clean
 *     more than one a second
 *                          written, open: from here on up to UNSAVED_MAX changes need no write
 *     1 s later            written, clean
 *
 * After a crash with an open file, serials continue above all that may have been served.
 *
 * While a new process replaces an old one, both write the file. Each process reads the other's
 * version before it chooses a serial, and before each write.
 */
export class SerialFile {
  readonly #options: SerialFileOptions
  readonly #zones = new Set<string>()
  /** State of the file on the disk. */
  #state: SerialFileState | 'none' = 'none'
  /** Stamp of the last version that was loaded into the index. */
  #stamp = ''
  /** Number of commits since the last write. */
  #unsaved = 0
  /** Number of clean writes that are allowed now; grows by one each WRITE_INTERVAL_MS. */
  #turns = TURNS_MAX
  #turnsMs = 0
  #cancelTimer: (() => void) | undefined
  #isForeign = false
  readonly #guarded: Guarded
  #isFailing = false

  constructor(options: SerialFileOptions) {
    this.#options = options
    this.#guarded = guarding(options.log, `Keeping serials in ${options.path}`)
  }

  /** Loads the file of an earlier process. An invalid file is logged and ignored. */
  open(): void {
    this.#takeIn(this.#stampNow() ?? '')
  }

  /** Loads what another process wrote since. The caller calls this before it chooses a serial. */
  catchUp(): void {
    if (this.#isForeign) return
    const stamp = this.#stampNow()
    if (stamp !== undefined && stamp !== this.#stamp) this.#takeIn(stamp)
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

  #takeIn(stamp: string): void {
    const { path, index, log } = this.#options
    this.#stamp = stamp
    // The other process's file does not account for this process's unsaved commits.
    this.#state = 'none'
    const found = readSerials(path)
    if (found === undefined) return
    if (!('kind' in found)) {
      for (const { zone } of found) this.#zones.add(zone)
      index.restore(found)
      return
    }
    this.#isForeign = found.isForeign
    log.warning(printRefused(path, found))
  }

  /** True if the file has serials of this zone, or will have them. */
  knows(zone: string): boolean {
    return this.#zones.has(zone)
  }

  /** Notes that a commit changed serials of these zones. Returns once they will survive a crash. */
  save(zones: readonly string[]): void {
    for (const zone of zones) this.#zones.add(zone)
    this.#unsaved++
    if (this.#isForeign) return
    if (this.#state === 'open' && this.#unsaved <= UNSAVED_MAX) return
    if (this.#isFailing) return
    if (this.#takeTurn()) this.#write('clean')
    else {
      this.#write('open')
      this.#writeLater(WRITE_INTERVAL_MS)
    }
  }

  #takeTurn(): boolean {
    const nowMs = this.#options.clock.monotonic()
    const fresh = (nowMs - this.#turnsMs) / WRITE_INTERVAL_MS
    this.#turns = Math.min(TURNS_MAX, this.#turns + fresh)
    this.#turnsMs = nowMs
    if (this.#turns < 1) return false
    this.#turns--
    return true
  }

  /** Writes the complete file and stops. */
  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#finish()
  }

  #finish(): void {
    if (this.#isForeign || (this.#unsaved === 0 && this.#state !== 'open')) return
    this.#write('clean')
  }

  #writeLater(delayMs: number): void {
    if (this.#cancelTimer !== undefined) return
    this.#cancelTimer = this.#options.timers.after(delayMs, () => {
      this.#cancelTimer = undefined
      void this.#guarded(() => this.#finish())
    })
  }

  #write(state: SerialFileState): void {
    const { path, log } = this.#options
    const fault = this.#tryToWrite(state)
    if (this.#isForeign) return
    if (fault !== '') {
      if (!this.#isFailing) log.error(`serials can't be kept in ${path}: ${fault}`)
      this.#isFailing = true
      this.#writeLater(RETRY_MS)
      return
    }
    if (this.#isFailing) log.info(`serials are kept in ${path} again`)
    this.#isFailing = false
    this.#state = state
    this.#unsaved = 0
  }

  /**
   * Returns why the write failed; '' = it succeeded, or the file now belongs to another program.
   */
  #tryToWrite(state: SerialFileState): string {
    const { path, index } = this.#options
    try {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        this.catchUp()
        if (this.#isForeign) return ''
        const entries = [...this.#zones].sort().flatMap((zone) => index.entriesOf(zone))
        const stamp = replaceFile(path, this.#stamp, printSerials(state, entries))
        if (stamp === undefined) continue
        this.#stamp = stamp
        return ''
      }
      return 'another process writes it all the time'
    } catch (error) {
      if (!isSystemError(error)) throw error
      return error.message
    }
  }
}

/** Returns why the file can't be used or written; '' = it can. For `sextant check`. */
export function checkSerialFile(path: string): string {
  const found = readSerials(path)
  if (found !== undefined) return 'kind' in found ? printRefused(path, found) : ''
  try {
    return statSync(dirname(path)).isDirectory() ? '' : `${dirname(path)} is no directory`
  } catch (error) {
    if (!isSystemError(error)) throw error
    return `serials can't be kept in ${path}: ${error.message}`
  }
}

/** Undefined = the file does not exist yet. */
function readSerials(path: string): readonly SerialEntry[] | RefusedSerials | undefined {
  try {
    const stats = statSync(path)
    if (!stats.isFile() || stats.size > OCTETS_MAX) {
      return { kind: 'refused', reason: 'it is no file, or too large for one', isForeign: true }
    }
    return scanSerials(readFileSync(path, 'utf8'))
  } catch (error) {
    if (!isSystemError(error)) throw error
    if (error.code === 'ENOENT') return undefined
    return { kind: 'refused', reason: error.message, isForeign: true }
  }
}

function printRefused(path: string, { reason, isForeign }: RefusedSerials): string {
  const cure = isForeign
    ? 'serials are not kept; remove it or name another file'
    : 'serials start at the time; the file will be replaced'
  return `serials in ${path} are not used: ${reason}; ${cure}`
}
