import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { type Contained, containing } from '../../telemetry/contain.ts'
import type { Logger } from '../../telemetry/log.ts'
import { isSystemError } from '../manifests/directory.ts'
import type { SerialBook, SerialEntry } from './serial-book.ts'
import {
  printSerials,
  type RefusedSerials,
  type SerialFileState,
  scanSerials,
  UNSAVED_MAX,
} from './serial-text.ts'

/** Between two writes once there were many. */
const WRITE_INTERVAL_MS = 1000
/** Writes that may follow each other at once: an edit may concern several blocks. */
const TURNS_MAX = 8
const RETRY_MS = 10_000
/** Larger files are none of ours: this is a million zones. */
const OCTETS_MAX = 256 * 1024 * 1024

export interface SerialFileOptions {
  /** Absolute. */
  readonly path: string
  readonly book: SerialBook
  readonly log: Logger
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * Keeps serials over a restart. Each version of the file is complete before it takes the place of the
 * last, and is there before the serial is served. The disk is spared where changes come in a row:
 *
 *     the first changes    written, clean
 *     more than one a second
 *                          written, open: from here on up to UNSAVED_MAX changes need no write
 *     1 s later            written, clean
 *
 * After a crash while the file was open, serials go on above all that may have been served.
 */
export class SerialFile {
  readonly #options: SerialFileOptions
  readonly #zones = new Set<string>()
  /** What is on the disk. */
  #state: SerialFileState | 'none' = 'none'
  /** Commits that the file on the disk knows nothing of. */
  #unsaved = 0
  /** Clean writes that may be done now; one more each WRITE_INTERVAL_MS. */
  #turns = TURNS_MAX
  #turnsMs = 0
  #cancelTimer: (() => void) | undefined
  #isForeign = false
  readonly #contained: Contained
  #isFailing = false

  constructor(options: SerialFileOptions) {
    this.#options = options
    this.#contained = containing(options.log, `Keeping serials in ${options.path}`)
  }

  /** Takes over what an earlier process left. A file that is no good is told of, and done without. */
  open(): void {
    const { path, book, log } = this.#options
    const found = readSerials(path)
    if (found === undefined) return
    if (!('kind' in found)) {
      for (const { zone } of found) this.#zones.add(zone)
      book.restore(found)
      return
    }
    this.#isForeign = found.isForeign
    log.warning(printRefused(path, found))
  }

  /** True if serials of this zone are in the file, or will be. */
  knows(zone: string): boolean {
    return this.#zones.has(zone)
  }

  /** Notes that a commit changed serials of these zones; returns once they will outlast a crash. */
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

  /** Leaves the file complete. */
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
      void this.#contained(() => this.#finish())
    })
  }

  #write(state: SerialFileState): void {
    const { path, book, log } = this.#options
    const entries = [...this.#zones].sort().flatMap((zone) => book.entriesOf(zone))
    try {
      replaceFile(path, printSerials(state, entries))
    } catch (error) {
      if (!isSystemError(error)) throw error
      if (!this.#isFailing) log.error(`serials can't be kept in ${path}: ${error.message}`)
      this.#isFailing = true
      this.#writeLater(RETRY_MS)
      return
    }
    if (this.#isFailing) log.info(`serials are kept in ${path} again`)
    this.#isFailing = false
    this.#state = state
    this.#unsaved = 0
  }
}

/** Why the file could not be used or kept; '' = nothing speaks against it. For `sextant check`. */
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

/** Undefined where there is no such file yet. */
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

/** Puts a new version in the place of the file: after a crash it is either the old or the new one. */
function replaceFile(path: string, text: string): void {
  const next = `${path}.next`
  const file = openSync(next, 'w', 0o644)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(next, path)
  const directory = openSync(dirname(path), 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
