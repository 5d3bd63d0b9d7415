import { lstatSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { Timers } from '../../base/timers.ts'
import type { ManifestStamp } from '../../yaml/directory.ts'

/** Grace period before a missing file is removed, because editors and copies may restore it. */
const GONE_GRACE_MS = 50
/** Grace period before an emptied file is applied, because it is probably about to be written. */
const EMPTY_GRACE_MS = 500
/** Upper bound of both grace periods while other files are written. */
const GRACE_MS_MAX = 5000

interface SeenFilesParts {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly timers: Pick<Timers, 'after'>
  /** When any file was last written, in monotonic milliseconds. */
  readonly writtenMs: () => number
  /** Checks files again that were missing or empty. */
  readonly recheck: (paths: readonly string[]) => void
}

/**
 * The state of each file when it was last read, and which files have a grace period: they are missing, or empty and had
 * records.
 */
export class SeenFiles {
  readonly #parts: SeenFilesParts
  readonly #stamps = new Map<string, ManifestStamp>()
  /** Time since which a file is missing or empty, by path. */
  readonly #suspect = new Map<string, number>()
  /** Grace periods after which all of them are checked again. */
  readonly #rechecksMs = new Set<number>()
  /** When the last changed file was read, in monotonic milliseconds. */
  #readMs = Number.NEGATIVE_INFINITY

  constructor(parts: SeenFilesParts) {
    this.#parts = parts
  }

  /** True if no file is missing or empty. A renamed file exists twice for a moment; the old path is missing then. */
  get isSteady(): boolean {
    return this.#suspect.size === 0
  }

  /** True if the file is as it was last read. */
  isKnown({ path, stamp }: ManifestStamp): boolean {
    return this.#stamps.get(path)?.stamp === stamp
  }

  noteRead(file: ManifestStamp): void {
    this.#stamps.set(file.path, file)
  }

  /** Notes that a file was read because it had changed. */
  noteChange(): void {
    this.#readMs = this.#parts.clock.monotonic()
  }

  forget(path: string): void {
    this.#suspect.delete(path)
    this.#stamps.delete(path)
  }

  /** Ends the grace period of a file: it is there, and not empty. */
  trust(path: string): void {
    this.#suspect.delete(path)
  }

  /** True once a missing file must be removed. Otherwise it is checked again. */
  isGone(path: string): boolean {
    return this.#isOver(path, GONE_GRACE_MS)
  }

  /** True once an emptied file counts as empty. Otherwise it is checked again. */
  isEmpty(path: string): boolean {
    return this.#isOver(path, EMPTY_GRACE_MS)
  }

  /** True if another file than the one last read is at the path, and it is not empty. */
  isReplaced(path: string): boolean {
    const known = this.#stamps.get(path)
    if (known === undefined || this.#suspect.has(path)) return false
    try {
      const stats = lstatSync(path)
      return stats.isFile() && stats.size > 0 && stats.ino !== known.inode
    } catch (error) {
      if (!isSystemError(error)) throw error
      return false
    }
  }

  /**
   * True once `path` has been missing or empty for `graceMs`, and no file was written or read for
   * that time (or GRACE_MS_MAX has passed). The second condition is for git, which removes a file
   * before it writes the same records under another name.
   */
  #isOver(path: string, graceMs: number): boolean {
    const { clock, timers, writtenMs, recheck } = this.#parts
    const nowMs = clock.monotonic()
    const sinceMs = this.#suspect.get(path)
    if (sinceMs !== undefined && nowMs - sinceMs >= graceMs) {
      const activeMs = Math.max(writtenMs(), this.#readMs)
      if (nowMs - activeMs >= graceMs || nowMs - sinceMs >= GRACE_MS_MAX) return true
    }
    if (sinceMs === undefined) this.#suspect.set(path, nowMs)
    // One timer for all files, because a hundred thousand files may be removed at once.
    if (this.#rechecksMs.has(graceMs)) return false
    this.#rechecksMs.add(graceMs)
    timers.after(graceMs, () => {
      this.#rechecksMs.delete(graceMs)
      recheck([...this.#suspect.keys()])
    })
    return false
  }
}
