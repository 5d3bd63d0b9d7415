import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import type { Timers } from '../../base/timers.ts'
import { isManifest, isSystemError } from './directory.ts'

/** Quiet time before a change is read: a writer's several steps should be one. */
const QUIET_MS = 4
/** Longest wait while a writer goes on and on. */
const PATIENCE_MS = 40

/** What changed: some files, or possibly everything. */
export interface Disturbance {
  readonly paths: ReadonlySet<string>
  readonly isEverything: boolean
}

/** Watches directories and says, a few milliseconds after things have calmed down, what to look at. */
export class DirectoryWatch {
  readonly #watchers = new Map<string, FSWatcher>()
  readonly #timers: Timers
  readonly #onDisturbance: (disturbance: Disturbance) => void
  readonly #onFailure: (reason: string) => void
  #paths = new Set<string>()
  #isEverything = false
  #firstMs = 0
  #cancel: (() => void) | undefined

  /** `onFailure`: the system refuses a watch; from then on only polling sees changes there. */
  constructor(
    timers: Timers,
    onDisturbance: (disturbance: Disturbance) => void,
    onFailure: (reason: string) => void,
  ) {
    this.#timers = timers
    this.#onDisturbance = onDisturbance
    this.#onFailure = onFailure
  }

  /** Watches these directories and no others. */
  setDirectories(directories: readonly string[]): void {
    const wanted = new Set(directories)
    for (const directory of this.#watchers.keys()) if (!wanted.has(directory)) this.#drop(directory)
    for (const directory of wanted) if (!this.#watchers.has(directory)) this.#add(directory)
  }

  close(): void {
    this.#cancel?.()
    for (const directory of [...this.#watchers.keys()]) this.#drop(directory)
  }

  #add(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, (_event, name) =>
        this.#notice(directory, name),
      )
      watcher.on('error', () => this.#drop(directory))
      this.#watchers.set(directory, watcher)
    } catch (error) {
      if (!isSystemError(error)) throw error
      this.#onFailure(`can't watch ${directory}: ${error.message}`)
    }
  }

  #drop(directory: string): void {
    this.#watchers.get(directory)?.close()
    this.#watchers.delete(directory)
  }

  #notice(directory: string, name: string | null): void {
    if (name !== null && isManifest(name)) this.#paths.add(join(directory, name))
    // `..data`: a ConfigMap volume swaps all its files at once. No dot: maybe a new directory.
    else if (name === null || name.startsWith('..') || !name.includes('.'))
      this.#isEverything = true
    else return
    const now = performance.now()
    if (this.#cancel === undefined) this.#firstMs = now
    else if (now - this.#firstMs > PATIENCE_MS) return
    this.#cancel?.()
    this.#cancel = this.#timers.after(QUIET_MS, () => this.#flush())
  }

  #flush(): void {
    const disturbance = { paths: this.#paths, isEverything: this.#isEverything }
    this.#paths = new Set()
    this.#isEverything = false
    this.#cancel = undefined
    this.#onDisturbance(disturbance)
  }
}
