import type { Timers } from '../../base/timers.ts'
import { verifyTree } from '../classes/verify.ts'
import type { JobRunner } from '../worker/run-job.ts'
import { Database, type DatabaseImage } from './database.ts'
import {
  type FileVersion,
  fileVersion,
  fileVersionSync,
  isSameVersion,
  loadFile,
  loadFileSync,
} from './load.ts'

/** How often a database is looked at for a change. */
export const POLL_MS = 5_000

export interface DatabaseFileOptions {
  readonly timers: Timers
  readonly runJob: JobRunner
}

/** Stands for a file that is gone. */
const NO_VERSION: FileVersion = { mtimeMs: -1, octets: -1 }

/** Told of a new version: the error where it can't be used and the old one stays. */
export type ChangeListener = (fault: Error | undefined) => void

const openFiles = new Map<string, DatabaseFile>()

/**
 * One MMDB file, watched. Everyone who opens the same path gets the same object: a database is in
 * memory once, however many server blocks name it.
 */
export class DatabaseFile {
  readonly path: string
  database: Database
  image: DatabaseImage
  readonly #options: DatabaseFileOptions
  #version: FileVersion
  /** The last version that was no good: not worth another try. */
  #refused: FileVersion | undefined
  #fault: Error | undefined
  #polling: Promise<void> | undefined
  readonly #stop: () => void
  readonly #listeners = new Set<ChangeListener>()
  #holders = 1

  /**
   * Opens `path` or joins those who have; `release` it. Holds up the caller while it reads. Throws
   * InputError if the file can't be used, also where an older version of it is in use by others.
   */
  static acquire(path: string, options: DatabaseFileOptions): DatabaseFile {
    const open = openFiles.get(path)
    if (open === undefined) {
      const file = new DatabaseFile(path, options)
      openFiles.set(path, file)
      return file
    }
    open.#catchUp()
    open.#holders++
    return open
  }

  private constructor(path: string, options: DatabaseFileOptions) {
    const { image, version } = loadFileSync(path)
    this.path = path
    this.image = image
    this.database = new Database(image)
    verifyTree(this.database)
    this.#version = version
    this.#options = options
    this.#stop = options.timers.every(POLL_MS, () => {
      this.#polling ??= this.poll().finally(() => {
        this.#polling = undefined
      })
    })
  }

  /** Why the file as it is now can't be used, and an older version is; undefined = it is in use. */
  get fault(): Error | undefined {
    return this.#fault
  }

  release(): void {
    this.#holders--
    if (this.#holders > 0) return
    this.#stop()
    openFiles.delete(this.path)
  }

  /** Returns the function that takes the listener off again. */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Looks whether the file changed and if so replaces the database, after another thread has read
   * every entry of the new one. Never rejects.
   */
  async poll(): Promise<void> {
    const found = await fileVersion(this.path).catch(() => NO_VERSION)
    if (isSameVersion(found, this.#version)) this.#clearFault()
    if (!this.#isNew(found)) return
    // Until it proves good: one report per version, not one per poll.
    this.#refused = found
    try {
      const { image, version } = await loadFile(this.path)
      await this.#options.runJob({ kind: 'verify', image })
      this.#adopt(new Database(image), image, version)
    } catch (error) {
      const fault = error instanceof Error ? error : new Error(String(error))
      this.#fault = fault
      for (const listener of this.#listeners) listener(fault)
    }
  }

  #isNew(version: FileVersion): boolean {
    if (isSameVersion(version, this.#version)) return false
    return this.#refused === undefined || !isSameVersion(version, this.#refused)
  }

  #catchUp(): void {
    if (isSameVersion(fileVersionSync(this.path), this.#version)) return
    const { image, version } = loadFileSync(this.path)
    const database = new Database(image)
    verifyTree(database)
    this.#adopt(database, image, version)
  }

  #adopt(database: Database, image: DatabaseImage, version: FileVersion): void {
    this.database = database
    this.image = image
    this.#version = version
    this.#clearFault()
    for (const listener of this.#listeners) listener(undefined)
  }

  #clearFault(): void {
    this.#refused = undefined
    this.#fault = undefined
  }
}
