import { readFileSync, statSync } from 'node:fs'
import { stampOf } from '../../base/stat.ts'

/** Larger files are refused, because they are read at once. */
const OCTETS_MAX = 1024 * 1024

/** Files whose content is read again when they change. The check costs one system call per file. */
export class WatchedFiles {
  readonly #paths: readonly string[]
  #stamps: readonly string[] | undefined

  constructor(paths: readonly string[]) {
    this.#paths = paths
  }

  /**
   * Returns the contents if a file has changed since the last call, or at the first call. Throws an
   * error if a file can't be read; the next call tries again.
   */
  readChanged(): readonly string[] | undefined {
    const stamps = this.#paths.map(stampOf)
    if (this.#stamps?.every((stamp, i) => stamp === stamps[i])) return undefined
    this.#stamps = undefined
    const texts = this.#paths.map(readRegular)
    this.#stamps = stamps
    return texts
  }
}

/** Reads a file. Opening a FIFO would block the thread. */
function readRegular(path: string): string {
  const stats = statSync(path)
  if (!stats.isFile()) throw new Error(`${path} is not a regular file`)
  if (stats.size > OCTETS_MAX) throw new Error(`${path} is larger than 1 MiB`)
  return readFileSync(path, 'utf8')
}
