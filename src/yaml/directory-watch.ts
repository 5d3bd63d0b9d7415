import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { isSystemError } from '../base/system-error.ts'
import type { Timers } from '../base/timers.ts'
import { isManifest } from './directory.ts'

/** Quiet time before a change is read, so that several steps of one writer are one change. */
const QUIET_MS = 4
/** Maximum delay while a writer continues. */
const PATIENCE_MS = 40
/**
 * Interval between checks of files that need no quiet time. It combines some edits when a thousand
 * arrive per second. It is short, because queries wait while this thread uses the processor.
 */
const HURRY_MS = 1

/** What changed: some files, or possibly everything. */
export interface Disturbance {
  readonly paths: ReadonlySet<string>
  readonly isEverything: boolean
}

interface WatchListener {
  /** Called when files must be checked. */
  onDisturbance(disturbance: Disturbance): void
  /** Called when the system refuses a watch. From then on only polling detects changes there. */
  onFailure(reason: string): void
  /**
   * True if `path` is now a different, non-empty file than at the last check. False if that check
   * was before the watch of the directory began (`watchedMs`, by the monotonic clock).
   */
  isAnother(path: string, watchedMs: number): boolean
}

interface Watched {
  readonly directory: string
  /** Common prefix of the paths of its files. */
  readonly prefix: string
  readonly sinceMs: number
}

/** Number of steps of a file that may be incomplete, regardless of later events. */
const WRITTEN = Number.POSITIVE_INFINITY

/**
 * Watches directories and reports what to check. It reports a few milliseconds after the last
 * event, so that no file is read half written.
 *
 * A file replaced in one step (rename(2) over it) is complete and is reported at once. Only that
 * step makes a single event of the directory's entry and leaves a different file there. Removing a
 * file and creating a new one are two events. The second event may not have been delivered yet, but
 * it is queued before any write to the file. So pending events are processed once more after the
 * check that finds a different file.
 */
export class DirectoryWatch {
  /** Watched directories, by path. */
  readonly #watched = new Map<string, Watched & { readonly watcher: FSWatcher }>()
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #listener: WatchListener
  /** Files to check, with their directories, by path. */
  #paths = new Map<string, Watched>()
  /** Number of events of each path's entry since the last check, or WRITTEN. */
  readonly #steps = new Map<string, number>()
  #isEverything = false
  /** When the first pending event arrived, in monotonic milliseconds. */
  #firstMs = 0
  #lastMs = 0
  #cancel: (() => void) | undefined
  #isHurrying = false
  #hurriedMs = Number.NEGATIVE_INFINITY
  #isClosed = false
  /** When the last write to a manifest was noticed, in monotonic milliseconds. */
  writtenMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, timers: Timers, listener: WatchListener) {
    this.#clock = clock
    this.#timers = timers
    this.#listener = listener
  }

  /** Watches exactly these directories. */
  setDirectories(directories: readonly string[]): void {
    const wanted = new Set(directories)
    for (const directory of this.#watched.keys()) if (!wanted.has(directory)) this.#drop(directory)
    for (const directory of wanted) if (!this.#watched.has(directory)) this.#add(directory)
  }

  /** True if the file had an event a moment ago, so that it will be checked. */
  isWaitingFor(path: string): boolean {
    return this.#paths.has(path)
  }

  /** The caller calls this before each check of a file. */
  willCheck(path: string): void {
    this.#steps.delete(path)
  }

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
    for (const directory of [...this.#watched.keys()]) this.#drop(directory)
  }

  #add(directory: string): void {
    try {
      const prefix = join(directory, 'x').slice(0, -1)
      const watched = { directory, prefix, sinceMs: this.#clock.monotonic() }
      const watcher = watch(directory, { persistent: false }, (event, name) =>
        this.#notice(watched, name, event === 'rename'),
      )
      watcher.on('error', () => this.#drop(directory))
      this.#watched.set(directory, { ...watched, watcher })
    } catch (error) {
      if (!isSystemError(error)) throw error
      this.#listener.onFailure(`can't watch ${directory}: ${error.message}`)
    }
  }

  #drop(directory: string): void {
    this.#watched.get(directory)?.watcher.close()
    this.#watched.delete(directory)
  }

  /**
   * `isOfEntry`: true = a name appeared or disappeared; false = the content or attributes changed.
   */
  #notice(watched: Watched, name: string | null, isOfEntry: boolean): void {
    if (name !== null && isManifest(name)) this.#noticeFile(watched, name, isOfEntry)
    // `..data`: a ConfigMap volume replaces all its files at once. A name without a dot may be a
    // new directory.
    else if (name === null || name.startsWith('..') || !name.includes('.'))
      this.#isEverything = true
    else return
    this.#lastMs = this.#clock.monotonic()
    if (this.#cancel !== undefined) return
    this.#firstMs = this.#lastMs
    this.#waitForQuiet(QUIET_MS)
  }

  /** One timer for all events of a burst. */
  #waitForQuiet(waitMs: number): void {
    const lastMs = this.#lastMs
    this.#cancel = this.#timers.after(waitMs, () => {
      const nowMs = this.#clock.monotonic()
      const isQuiet = this.#lastMs === lastMs
      if (isQuiet || nowMs - this.#firstMs > PATIENCE_MS) this.#flush()
      else this.#waitForQuiet(Math.max(1, this.#lastMs + QUIET_MS - nowMs))
    })
  }

  #noticeFile(watched: Watched, name: string, isOfEntry: boolean): void {
    const path = watched.prefix + name
    this.#paths.set(path, watched)
    if (!isOfEntry) this.writtenMs = this.#clock.monotonic()
    const steps = isOfEntry ? (this.#steps.get(path) ?? 0) + 1 : WRITTEN
    this.#steps.set(path, steps)
    if (steps === 1) this.#hurry()
  }

  #hurry(): void {
    if (this.#isHurrying) return
    this.#isHurrying = true
    const waitMs = this.#hurriedMs + HURRY_MS - this.#clock.monotonic()
    if (waitMs > 0) this.#timers.after(waitMs, () => this.#findReplaced())
    else setImmediate(() => this.#findReplaced())
  }

  #findReplaced(): void {
    if (this.#isClosed) return
    const replaced: string[] = []
    for (const [path, { directory, sinceMs }] of this.#paths) {
      if (this.#steps.get(path) !== 1) continue
      const isWatched = this.#watched.get(directory)?.sinceMs === sinceMs
      if (isWatched && this.#listener.isAnother(path, sinceMs)) replaced.push(path)
      else this.#steps.set(path, WRITTEN)
    }
    // All events from before this check are delivered before the next turn's immediates.
    setImmediate(() => this.#checkReplaced(replaced))
  }

  #checkReplaced(replaced: readonly string[]): void {
    if (this.#isClosed) return
    this.#isHurrying = false
    this.#hurriedMs = this.#clock.monotonic()
    const ready = replaced.filter((path) => this.#paths.has(path) && this.#steps.get(path) === 1)
    for (const path of ready) this.#paths.delete(path)
    if (this.#paths.size === 0 && !this.#isEverything) {
      this.#cancel?.()
      this.#cancel = undefined
    }
    if (ready.length > 0)
      this.#listener.onDisturbance({ paths: new Set(ready), isEverything: false })
    for (const path of this.#paths.keys()) if (this.#steps.get(path) === 1) this.#hurry()
  }

  #flush(): void {
    const disturbance = { paths: new Set(this.#paths.keys()), isEverything: this.#isEverything }
    this.#paths = new Map()
    this.#isEverything = false
    this.#cancel = undefined
    this.#listener.onDisturbance(disturbance)
  }
}
