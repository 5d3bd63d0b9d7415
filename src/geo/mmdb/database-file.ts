import type { Timers } from '../../base/timers.ts'
import type { JobRunner } from '../worker/run-job.ts'
import { Database, type DatabaseImage } from './database.ts'
import { type FileVersion, fileVersion, isSameVersion, OpenFile } from './load.ts'

/** How often a database file is checked for a change. */
export const POLL_MS = 5_000

export interface DatabaseFileOptions {
  readonly timers: Timers
  readonly runJob: JobRunner
}

/** Stands for a file that is gone. */
const NO_VERSION: FileVersion = { mtimeMs: -1, octets: -1 }

/** Called for each new version: with an error if the version can't be used, so that the old one stays in use. */
export type ChangeListener = (fault: Error | undefined) => void

const openFiles = new Map<string, DatabaseFile>()

/** What a holder needs of a file. */
export interface HoldOptions {
  /** The content is kept in memory, for entries to be read. Classes do not need it. */
  readonly readsEntries: boolean
}

/**
 * One MMDB file, watched. All callers that open the same path get the same object. The last good version stays open,
 * so that jobs can read it if the path changes. Its content is in memory, once, only while a holder reads entries.
 */
export class DatabaseFile {
  readonly path: string
  readonly #options: DatabaseFileOptions
  #open: OpenFile | undefined
  #image: DatabaseImage | undefined
  #database: Database | undefined
  /** The last version that was no good: not worth another try. */
  #refused: FileVersion | undefined
  #fault: Error | undefined
  #isPolling = false
  /** The last of the opening and polling steps, which run one after the other. Never rejects. */
  #steps: Promise<unknown> = Promise.resolve()
  readonly #stop: () => void
  readonly #listeners = new Set<ChangeListener>()
  #holders = 0
  /** Holders that read entries. */
  #readers = 0

  /**
   * Opens `path` or joins its holders; `release` it with the same options. Rejects with InputError if the file can't be
   * used, also where other holders use an older version of it.
   */
  static async acquire(
    path: string,
    hold: HoldOptions,
    options: DatabaseFileOptions,
  ): Promise<DatabaseFile> {
    const file = openFiles.get(path) ?? new DatabaseFile(path, options)
    openFiles.set(path, file)
    file.#holders++
    if (hold.readsEntries) file.#readers++
    try {
      await file.#inTurn(() => file.#catchUp())
    } catch (error) {
      file.release(hold)
      throw error
    }
    return file
  }

  private constructor(path: string, options: DatabaseFileOptions) {
    this.path = path
    this.#options = options
    this.#stop = options.timers.every(POLL_MS, () => {
      if (this.#isPolling) return
      this.#isPolling = true
      this.poll().finally(() => {
        this.#isPolling = false
      })
    })
  }

  /** Why the file as it is now can't be used, and an older version is; undefined = it is in use. */
  get fault(): Error | undefined {
    return this.#fault
  }

  /** The content; undefined while no holder reads entries. */
  get image(): DatabaseImage | undefined {
    return this.#image
  }

  /** `image`, opened. */
  get database(): Database | undefined {
    return this.#database
  }

  /** The version in use, for a job; to be released after it. Undefined = nothing was opened. */
  hold(): OpenFile | undefined {
    return this.#open?.hold()
  }

  release({ readsEntries }: HoldOptions): void {
    this.#holders--
    if (readsEntries) this.#readers--
    if (this.#readers === 0) this.#keep(undefined)
    if (this.#holders > 0) return
    this.#stop()
    this.#open?.release()
    this.#open = undefined
    openFiles.delete(this.path)
  }

  /** Returns the function that takes the listener off again. */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Checks whether the file changed and if so replaces the database, after another thread has read
   * every entry of the new one. Never rejects.
   */
  poll(): Promise<void> {
    return this.#inTurn(() => this.#poll())
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#steps.then(step)
    this.#steps = result.catch(() => {})
    return result
  }

  async #poll(): Promise<void> {
    const found = await fileVersion(this.path).catch(() => NO_VERSION)
    if (this.#isInUse(found)) this.#clearFault()
    if (!this.#isNew(found)) return
    // Until it proves good: one report per version, not one per poll.
    this.#refused = found
    try {
      await this.#load(new OpenFile(this.path), true)
    } catch (error) {
      const fault = error instanceof Error ? error : new Error(String(error))
      this.#fault = fault
      for (const listener of this.#listeners) listener(fault)
    }
  }

  #isNew(version: FileVersion): boolean {
    if (this.#isInUse(version)) return false
    return this.#refused === undefined || !isSameVersion(version, this.#refused)
  }

  #isInUse(version: FileVersion): boolean {
    return this.#open !== undefined && isSameVersion(version, this.#open.source.version)
  }

  async #catchUp(): Promise<void> {
    const open = new OpenFile(this.path)
    const isComplete = this.#readers === 0 || this.#image !== undefined
    if (this.#isInUse(open.source.version) && isComplete) open.release()
    else await this.#load(open, false)
  }

  /** Verifies a version in another thread and adopts it. Rejects with InputError. */
  async #load(open: OpenFile, isThorough: boolean): Promise<void> {
    const { source } = open
    const isKept = this.#readers > 0
    try {
      const job = { kind: 'verify', source, isThorough, isKept } as const
      const { image } = await this.#options.runJob(job)
      // Every holder may have left meanwhile.
      if (this.#holders > 0) this.#adopt(open.hold(), image)
    } finally {
      open.release()
    }
  }

  #adopt(open: OpenFile, image: DatabaseImage | undefined): void {
    const isNew = !this.#isInUse(open.source.version)
    this.#open?.release()
    this.#open = open
    this.#keep(this.#readers > 0 ? image : undefined)
    this.#clearFault()
    if (isNew) for (const listener of this.#listeners) listener(undefined)
  }

  #keep(image: DatabaseImage | undefined): void {
    this.#image = image
    this.#database = image === undefined ? undefined : new Database(image)
  }

  #clearFault(): void {
    this.#refused = undefined
    this.#fault = undefined
  }
}
