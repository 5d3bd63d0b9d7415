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

/** Written at a time. */
const STEP_CHARACTERS = 65_536

/** Tells one version of a file from every other: inode, time and size. '' = there is no file. */
export function stampOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? '' : printStamp(stats)
}

/**
 * Puts a new version in the place of the file of that stamp: after a crash it is either the old or the new
 * one. Returns the new stamp; undefined, and nothing was replaced, where another process was faster.
 * Throws the system's error.
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

/** A version of a file that is being written beside it, as `<path>.next`. Everything throws the system's error. */
export class NextFile {
  /** Its descriptor. */
  readonly file: number
  readonly #path: string
  readonly #next: string
  #text = ''
  /** Written so far. */
  octets = 0

  constructor(path: string, mode: number) {
    this.#path = path
    this.#next = `${path}.next`
    // What a write left that was cut short. Never through a link that somebody put there.
    rmSync(this.#next, { force: true })
    this.file = openSync(this.#next, 'wx', mode)
  }

  write(text: string): void {
    this.#text += text
    if (this.#text.length >= STEP_CHARACTERS) this.flush()
  }

  /** Hands what was written to the system. */
  flush(): void {
    const octets = Buffer.from(this.#text)
    this.#text = ''
    writeFileSync(this.file, octets)
    this.octets += octets.length
  }

  /** What was written outlasts a power cut. */
  sync(): void {
    this.flush()
    fsyncSync(this.file)
  }

  /** Takes the place of the file of that stamp; as `replaceFile`. Everything must be written and synced. */
  put(stamp: string): string | undefined {
    const written = fstatSync(this.file, { bigint: true })
    // Another process that writes the same file would have taken ours away.
    if (!this.#isStill(written.ino)) return undefined
    if (stampOf(this.#path) !== stamp) return undefined
    renameSync(this.#next, this.#path)
    syncDirectory(dirname(this.#path))
    return printStamp(written)
  }

  /** Leaves nothing behind but what was put. */
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
