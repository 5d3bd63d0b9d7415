import { createHash } from 'node:crypto'
import { closeSync, constants, lstatSync, openSync, readSync } from 'node:fs'
import { NextFile } from '../../base/persist/next-file.ts'
import { copyCaptured } from '../image/copy-captured.ts'
import { HEADER_TAIL } from '../image/layout.ts'
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
 * If the process ends at any time, the file is the old or the new version. Throws the reason if the
 * write fails. Takes a second for a million names.
 */
export function writeSnapshot({ path, image, facts }: SnapshotJob): number {
  checkPlace(path)
  const copy = copyCaptured(image)
  return writeParts(path, facts, Buffer.from(copy.buffer, 0, copy.tail * 4))
}

/** Does the same with the arena of an image that was published once and will not change. It is not copied. */
export function writeFinished(path: string, finished: SharedArrayBuffer, facts: string): number {
  checkPlace(path)
  const tail = new Uint32Array(finished)[HEADER_TAIL]!
  return writeParts(path, facts, Buffer.from(finished, 0, tail * 4))
}

function checkPlace(path: string): void {
  const reason = reasonToKeep(path)
  if (reason !== '') throw new Error(reason)
}

function writeParts(path: string, facts: string, arena: Buffer): number {
  const json = Buffer.from(facts)
  const sizes = { factsOctets: json.length, arenaOctets: arena.length }
  return replaceFile(path, [Buffer.from(printPreamble(sizes)), json, arena])
}

/** Returns why the existing file must not be replaced; '' = it may be replaced, or does not exist. */
function reasonToKeep(path: string): string {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return ''
  if (stats.isSymbolicLink()) return 'it is a symbolic link'
  if (!stats.isFile()) return 'it is not a regular file'
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
  const next = new NextFile(path, MODE)
  try {
    const hash = createHash(CHECKSUM)
    for (const part of parts) {
      for (let at = 0; at < part.length; at += STEP_OCTETS) {
        const step = part.subarray(at, at + STEP_OCTETS)
        hash.update(step)
        next.writeOctets(step)
      }
    }
    next.writeOctets(hash.digest())
    next.sync()
    if (next.put() === undefined) throw new Error('another process writes it at the same time')
    return next.octets
  } finally {
    next.close()
  }
}
