import { type FSWatcher, watch } from 'node:fs'
import { isSystemError } from '../../base/system-error.ts'
import type { Timers } from '../../base/timers.ts'

/** Quiet time before a change is reported, so that the steps of one writer are one change. */
const QUIET_MS = 50
/** For folders that the system can't watch, such as network shares, and for those that do not exist yet. */
const POLL_MS = 10_000

/** The version of each file, by name. */
type Versions = ReadonlyMap<string, string>

interface FolderWatchParts {
  /** Returns the versions of all files that count. */
  readonly versions: () => Versions
  /** Returns that of one file; '' = it is missing. */
  readonly versionOf: (name: string) => string
  readonly listener: () => void
}

/** Reports changes of files in a folder, except those that this process made. */
export class FolderWatch {
  readonly #folder: string
  readonly #timers: Timers
  readonly #versions: () => Versions
  readonly #versionOf: (name: string) => string
  readonly #listener: () => void
  readonly #stopPolling: () => void
  #seen: Map<string, string>
  #watcher: FSWatcher | undefined
  #cancel: (() => void) | undefined

  constructor(folder: string, timers: Timers, { versions, versionOf, listener }: FolderWatchParts) {
    this.#folder = folder
    this.#timers = timers
    this.#versions = versions
    this.#versionOf = versionOf
    this.#listener = listener
    this.#seen = new Map(versions())
    this.#begin()
    this.#stopPolling = timers.every(POLL_MS, () => {
      if (this.#watcher === undefined) this.#begin()
      this.#check()
    })
  }

  /** Notes that this process changed files, whose changes are not reported. */
  accept(names: Iterable<string>): void {
    for (const name of names) {
      const version = this.#versionOf(name)
      if (version === '') this.#seen.delete(name)
      else this.#seen.set(name, version)
    }
  }

  close(): void {
    this.#stopPolling()
    this.#cancel?.()
    this.#end()
  }

  #begin(): void {
    try {
      this.#watcher = watch(this.#folder, { persistent: false }, () => this.#notice())
      this.#watcher.on('error', () => this.#end())
    } catch (error) {
      // The folder is polled.
      if (!isSystemError(error)) throw error
    }
  }

  #end(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  #notice(): void {
    this.#cancel ??= this.#timers.after(QUIET_MS, () => {
      this.#cancel = undefined
      this.#check()
    })
  }

  #check(): void {
    const now = this.#versions()
    const isSame =
      now.size === this.#seen.size &&
      [...now].every(([name, version]) => this.#seen.get(name) === version)
    if (isSame) return
    this.#seen = new Map(now)
    this.#listener()
  }
}
