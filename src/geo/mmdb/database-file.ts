import type { Timers } from '../../base/timers.ts'
import type { GeoResult } from '../worker/job.ts'
import type { JobRunner } from '../worker/run-job.ts'
import { Database, type DatabaseImage } from './database.ts'
import { type FileVersion, fileVersion, isSameVersion, OpenFile, readSourceLater } from './load.ts'

/** How often a database file is checked for a change. */
const POLL_MS = 5_000

interface DatabaseFileOptions {
  readonly timers: Timers
  readonly runJob: JobRunner
}

/** Represents a missing file. */
const NO_VERSION: FileVersion = { inode: -1, mtimeMs: -1, octets: -1 }

/** Called for each new version; with an error if the version can't be used and the old one remains in use. */
type ChangeListener = (fault: Error | undefined) => void

/**
 * One MMDB file that is polled for changes. Users of one path share the object. The
 * last valid version remains open, so that jobs can read it after the path changes. The
 * content is in memory, once, only while a user reads entries.
 */
export class DatabaseFile {
  readonly path: string
  readonly #options: DatabaseFileOptions
  #open: OpenFile | undefined
  #image: DatabaseImage | undefined
  #database: Database | undefined
  /** When the version in use was built, until `takeBuildTime` returns it. */
  #builtSeconds: number | undefined
  /** When the version in use was built, in Unix seconds; 0 = unknown. */
  builtSeconds = 0
  /** The last version that failed, so that it is not tried again. */
  #refused: FileVersion | undefined
  #fault: Error | undefined
  #isPolling = false
  /** The last opening or polling step; steps run one after the other. Never rejects. */
  #steps: Promise<unknown> = Promise.resolve()
  readonly #stop: () => void
  readonly #listeners = new Set<ChangeListener>()
  /** Number of users that read entries. */
  #readers = 0
  #isClosed = false

  /** Starts to poll; call `catchUp` before anything else. */
  constructor(path: string, options: DatabaseFileOptions) {
    this.path = path
    this.#options = options
    this.#stop = options.timers.every(POLL_MS, () => {
      if (this.#isPolling) return
      this.#isPolling = true
      void this.poll().finally(() => {
        this.#isPolling = false
      })
    })
  }

  /**
   * Why the current file can't be used, so that an older version is in use; undefined = the current
   * file is in use.
   */
  get fault(): Error | undefined {
    return this.#fault
  }

  /** The content; undefined if no user reads entries. */
  get image(): DatabaseImage | undefined {
    return this.#image
  }

  /** `image` as a `Database`. */
  get database(): Database | undefined {
    return this.#database
  }

  /** Returns the version in use, for a job, which must release it. Undefined = no version is open. */
  hold(): OpenFile | undefined {
    return this.#open?.hold()
  }

  /**
   * Returns when the version in use was built, in Unix seconds (0 = unknown). Later calls return undefined until
   * another version is in use: whichever holder calls first reports the age.
   */
  takeBuildTime(): number | undefined {
    const builtSeconds = this.#builtSeconds
    this.#builtSeconds = undefined
    return builtSeconds
  }

  /** Keeps the content in memory from the next `catchUp` on; returns the function that ends that. */
  readEntries(): () => void {
    this.#readers++
    return () => {
      this.#readers--
      if (this.#readers === 0) this.#keep(undefined)
    }
  }

  /**
   * Opens the current version, unless it is in use. Rejects with InputError if it can't be used,
   * even if an older version is in use.
   */
  catchUp(): Promise<void> {
    return this.#inTurn(() => this.#catchUp())
  }

  close(): void {
    this.#isClosed = true
    this.#stop()
    this.#open?.release()
    this.#open = undefined
  }

  /** Returns a function that removes the listener. */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Checks whether the file changed. If so, another thread reads every entry of the new version,
   * then this object replaces the database. Never rejects.
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
    // Set until the version proves valid: one report per version, not one per poll.
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
    if (!this.#isInUse(open.source.version)) return this.#load(open, false)
    try {
      // This version is verified, so no thread has to be started for it.
      const isComplete = this.#readers === 0 || this.#image !== undefined
      const image = isComplete ? undefined : await readSourceLater(open.source)
      if (image !== undefined && this.#readers > 0 && !this.#isClosed) this.#keep(image)
    } finally {
      open.release()
    }
  }

  /** Verifies a version in another thread and adopts it. Rejects with InputError. */
  async #load(open: OpenFile, isThorough: boolean): Promise<void> {
    const { source } = open
    const isKept = this.#readers > 0
    try {
      const job = { kind: 'verify', source, isThorough, isKept } as const
      const result = await this.#options.runJob(job)
      if (!this.#isClosed) this.#adopt(open.hold(), result)
    } finally {
      open.release()
    }
  }

  #adopt(open: OpenFile, { image, builtSeconds }: GeoResult): void {
    const isNew = !this.#isInUse(open.source.version)
    if (isNew) {
      this.#builtSeconds = builtSeconds
      this.builtSeconds = builtSeconds ?? 0
    }
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
