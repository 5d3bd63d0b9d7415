import { readFileSync } from 'node:fs'
import { stampOf } from '../../persist/next-file.ts'

/** Files whose content is read again when they change. The check costs one system call per file. */
export class WatchedFiles {
  readonly #paths: readonly string[]
  #stamps: readonly string[] | undefined

  constructor(paths: readonly string[]) {
    this.#paths = paths
  }

  /**
   * Returns the contents if a file has changed since the last call, or at the first call. Throws
   * the system's error.
   */
  readChanged(): readonly string[] | undefined {
    const stamps = this.#paths.map(stampOf)
    if (this.#stamps?.every((stamp, i) => stamp === stamps[i])) return undefined
    this.#stamps = stamps
    return this.#paths.map((path) => readFileSync(path, 'utf8'))
  }
}
