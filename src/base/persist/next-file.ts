import {
  closeSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { printStamp, stampOf } from '../stat.ts'
import { isSystemError } from '../system-error.ts'

/** Number of characters per write. */
const STEP_CHARACTERS = 65_536
/** Maximum number of attempts if another process creates the same file. */
const TRIES_MAX = 8

/**
 * A new version of a file, written beside it as `<path>.next`. If the process dies at any time, the
 * file is the old or the new version. All methods throw the system's error.
 */
export class NextFile {
  /** Descriptor of the new version. */
  readonly file: number
  readonly #path: string
  readonly #next: string
  #text = ''
  /** Number of octets written so far. */
  octets = 0

  constructor(path: string, mode: number) {
    this.#path = path
    this.#next = `${path}.next`
    this.file = create(this.#next, mode)
  }

  write(text: string): void {
    this.#text += text
    if (this.#text.length >= STEP_CHARACTERS) this.flush()
  }

  writeOctets(octets: Uint8Array): void {
    writeFileSync(this.file, octets)
    this.octets += octets.length
  }

  /** Writes the buffered text to the system. */
  flush(): void {
    const text = this.#text
    this.#text = ''
    this.writeOctets(Buffer.from(text))
  }

  /** Makes the written data survive a power failure. */
  sync(): void {
    this.flush()
    fsyncSync(this.file)
  }

  /**
   * Replaces the file with this version, which must be complete and synced. Returns its stamp;
   * undefined if another process writes the same file now, and this call did not replace it.
   * `stamp`: the version to replace; undefined = any version.
   */
  put(stamp?: string): string | undefined {
    const written = fstatSync(this.file, { bigint: true })
    // If `.next` is missing or another file, another process that writes the same path replaced it.
    if (inodeAt(this.#next) !== written.ino) return undefined
    if (stamp !== undefined && stampOf(this.#path) !== stamp) return undefined
    if (!rename(this.#next, this.#path)) return undefined
    // The other process may have replaced `.next` since the check. Its incomplete version is in
    // place then, and both processes write again.
    if (inodeAt(this.#path) !== written.ino) return undefined
    syncDirectory(dirname(this.#path))
    return printStamp(written)
  }

  /** Closes and removes the new version unless `put` was successful. */
  close(): void {
    try {
      const { ino } = fstatSync(this.file, { bigint: true })
      if (inodeAt(this.#next) === ino) rmSync(this.#next, { force: true })
    } finally {
      closeSync(this.file)
    }
  }
}

/**
 * Removes the rest of an interrupted write, and creates the file. It is never opened through an
 * existing link.
 */
function create(path: string, mode: number): number {
  for (let tries = 1; ; tries++) {
    rmSync(path, { force: true })
    try {
      return openSync(path, 'wx', mode)
    } catch (error) {
      // Another process created it since.
      if (!isSystemError(error) || error.code !== 'EEXIST' || tries === TRIES_MAX) throw error
    }
  }
}

/** Returns false if another process removed `from`. */
function rename(from: string, to: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (error) {
    if (!isSystemError(error) || error.code !== 'ENOENT') throw error
    return false
  }
}

function inodeAt(path: string): bigint | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
