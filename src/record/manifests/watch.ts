import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { isManifest, isSystemError } from './directory.ts'

/** Quiet time before a change is read: a writer's several steps should be one. */
const QUIET_MS = 4
/** Longest wait while a writer goes on and on. */
const PATIENCE_MS = 40
/**
 * Time between two looks at files that need no quiet: of a thousand edits a second some go together, but few, since
 * queries wait for a processor that this thread keeps.
 */
const HURRY_MS = 1

/** What changed: some files, or possibly everything. */
export interface Disturbance {
  readonly paths: ReadonlySet<string>
  readonly isEverything: boolean
}

export interface WatchListener {
  /** Something is to be looked at. */
  onDisturbance(disturbance: Disturbance): void
  /** The system refuses a watch; from then on only polling sees changes there. */
  onFailure(reason: string): void
  /**
   * True if `path` is now another file, and no empty one, than at the last look, which was after the directory was
   * watched (`watchedMs`, by the monotonic clock).
   */
  isAnother(path: string, watchedMs: number): boolean
}

interface Watched {
  readonly directory: string
  /** What the paths of its files begin with. */
  readonly prefix: string
  readonly sinceMs: number
}

/** Steps of a file that may not be complete, whatever else happens to it. */
const WRITTEN = Number.POSITIVE_INFINITY

/**
 * Watches directories and says what to look at: a few milliseconds after things have calmed down, so that no file is
 * read half written. A file that was replaced by another in one step (rename(2) over it) is complete, and looked at at
 * once. That step is the only one that makes one event of the directory's entry and leaves another file there: to take
 * a file away and to make a new one are two. The second may not have been told yet, but it is in the queue
 * before anything is written to the file; so events are taken once more after the look at which file is there.
 */
export class DirectoryWatch {
  /** By path. */
  readonly #watched = new Map<string, Watched & { readonly watcher: FSWatcher }>()
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #listener: WatchListener
  /** By path: what is to be looked at, with the directory that it is in. */
  #paths = new Map<string, Watched>()
  /** By path: events of its entry since the last look, or WRITTEN. */
  readonly #steps = new Map<string, number>()
  #isEverything = false
  /** Of the events that wait. */
  #firstMs = 0
  #lastMs = 0
  #cancel: (() => void) | undefined
  #isHurrying = false
  #hurriedMs = Number.NEGATIVE_INFINITY
  #isClosed = false
  /** When the last write to a manifest was noticed; monotonic. */
  writtenMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, timers: Timers, listener: WatchListener) {
    this.#clock = clock
    this.#timers = timers
    this.#listener = listener
  }

  /** Watches these directories and no others. */
  setDirectories(directories: readonly string[]): void {
    const wanted = new Set(directories)
    for (const directory of this.#watched.keys()) if (!wanted.has(directory)) this.#drop(directory)
    for (const directory of wanted) if (!this.#watched.has(directory)) this.#add(directory)
  }

  /** True if somebody was at the file a moment ago: it will be looked at. */
  isWaitingFor(path: string): boolean {
    return this.#paths.has(path)
  }

  /** To be called before each look at a file. */
  looksAt(path: string): void {
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

  /** `isOfEntry`: a name came or went; else the file was written to, or its attributes were. */
  #notice(watched: Watched, name: string | null, isOfEntry: boolean): void {
    if (name !== null && isManifest(name)) this.#noticeFile(watched, name, isOfEntry)
    // `..data`: a ConfigMap volume swaps all its files at once. No dot: maybe a new directory.
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
    // All events from before this look are told before the next turn's immediates.
    setImmediate(() => this.#lookAtReplaced(replaced))
  }

  #lookAtReplaced(replaced: readonly string[]): void {
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
