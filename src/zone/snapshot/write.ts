import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { copyCaptured } from '../image/copy-captured.ts'
import type { CapturedImage } from '../image/writer.ts'
import { CHECKSUM, FOREIGN, PREAMBLE_OCTETS, printPreamble, scanPreamble } from './format.ts'

/** A snapshot to write, and its path. Plain data, so that it can be sent to a thread. */
export interface SnapshotJob {
  /** Absolute. */
  readonly path: string
  readonly image: CapturedImage
  /** JSON. */
  readonly facts: string
}

/** Octets written per system call. */
const STEP_OCTETS = 4 * 1024 * 1024
/** Only the server's user may read the file. */
const MODE = 0o600

/**
 * Replaces the file with a snapshot, unless the file is not a snapshot; returns the octets written.
 * Writes to `<path>.next` and renames it, so that the file is always complete, old or new, whenever
 * the process ends. Throws the reason if the write fails. Takes a second for a million names.
 */
export function writeSnapshot({ path, image, facts }: SnapshotJob): number {
  const reason = reasonToKeep(path)
  if (reason !== '') throw new Error(reason)
  const copy = copyCaptured(image)
  const arena = Buffer.from(copy.buffer, 0, copy.tail * 4)
  const json = Buffer.from(facts)
  const sizes = { factsOctets: json.length, arenaOctets: arena.length }
  return replaceFile(path, [Buffer.from(printPreamble(sizes)), json, arena])
}

/** Returns why the existing file must not be replaced; '' = it may be replaced, or does not exist. */
function reasonToKeep(path: string): string {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return ''
  if (stats.isSymbolicLink()) return 'it is a symbolic link'
  if (!stats.isFile()) return 'it is no file'
  const preamble = Buffer.alloc(PREAMBLE_OCTETS)
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const octets = readSync(file, preamble)
    return scanPreamble(preamble.subarray(0, octets)) === FOREIGN ? FOREIGN : ''
  } finally {
    closeSync(file)
  }
}

/** Writes the parts and their checksum. */
function replaceFile(path: string, parts: readonly Buffer[]): number {
  const next = `${path}.next`
  // Removes the file of an interrupted write. O_EXCL and O_NOFOLLOW below refuse a link that
  // another user puts there.
  rmSync(next, { force: true })
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const file = openSync(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, MODE)
  try {
    const hash = createHash(CHECKSUM)
    let octets = 0
    for (const part of parts) {
      for (let at = 0; at < part.length; at += STEP_OCTETS) {
        const step = part.subarray(at, at + STEP_OCTETS)
        hash.update(step)
        octets += writeAll(file, step)
      }
    }
    octets += writeAll(file, hash.digest())
    fsyncSync(file)
    // Another process that writes the same file may have replaced ours.
    if (!isStill(next, file)) throw new Error(`${next} is not ours any more`)
    renameSync(next, path)
    syncDirectory(dirname(path))
    return octets
  } catch (error) {
    if (isStill(next, file)) rmSync(next, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
}

/** True if `path` still names the open `file`, and not a file of another process. */
function isStill(path: string, file: number): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.ino === fstatSync(file).ino
}

function writeAll(file: number, octets: Buffer): number {
  for (let at = 0; at < octets.length; ) at += writeSync(file, octets, at)
  return octets.length
}

/** Makes the rename survive a power failure. */
function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
