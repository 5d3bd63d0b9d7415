import {
  closeSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'

/** Number of characters per write. */
const STEP_CHARACTERS = 65_536

/** Identifies a version of a file by inode, time and size. '' = the file is missing. */
export function stampOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? '' : printStamp(stats)
}

/**
 * Replaces a file if its stamp is still `stamp`. After a crash the file is either the old or the
 * new version. Returns the new stamp; undefined if another process replaced the file first, and
 * this call did not. Throws the system's error.
 */
export function replaceFile(path: string, stamp: string, text: string): string | undefined {
  const next = new NextFile(path, 0o644)
  try {
    next.write(text)
    next.sync()
    return next.put(stamp)
  } finally {
    next.close()
  }
}

/**
 * A new version of a file, written beside it as `<path>.next`. All methods throw the system's
 * error.
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
    // Removes the rest of an interrupted write. The new file is never opened through an existing
    // link.
    rmSync(this.#next, { force: true })
    this.file = openSync(this.#next, 'wx', mode)
  }

  write(text: string): void {
    this.#text += text
    if (this.#text.length >= STEP_CHARACTERS) this.flush()
  }

  /** Writes the buffered text to the system. */
  flush(): void {
    const octets = Buffer.from(this.#text)
    this.#text = ''
    writeFileSync(this.file, octets)
    this.octets += octets.length
  }

  /** Makes the written data survive a power failure. */
  sync(): void {
    this.flush()
    fsyncSync(this.file)
  }

  /**
   * Replaces the file if its stamp is still `stamp`, as `replaceFile`. All data must be written and
   * synced.
   */
  put(stamp: string): string | undefined {
    const written = fstatSync(this.file, { bigint: true })
    // If `.next` is missing or another file, another process that writes the same path replaced it.
    if (!this.#isStill(written.ino)) return undefined
    if (stampOf(this.#path) !== stamp) return undefined
    renameSync(this.#next, this.#path)
    syncDirectory(dirname(this.#path))
    return printStamp(written)
  }

  /** Closes and removes the new version unless `put` was successful. */
  close(): void {
    try {
      const { ino } = fstatSync(this.file, { bigint: true })
      if (this.#isStill(ino)) rmSync(this.#next, { force: true })
    } finally {
      closeSync(this.file)
    }
  }

  #isStill(ino: bigint): boolean {
    return lstatSync(this.#next, { bigint: true, throwIfNoEntry: false })?.ino === ino
  }
}

function printStamp(stats: { ino: bigint; mtimeNs: bigint; size: bigint }): string {
  return `${stats.ino} ${stats.mtimeNs} ${stats.size}`
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
