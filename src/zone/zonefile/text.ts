import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { InputError, type Position } from '../../base/errors.ts'
import { statIfAny } from '../../base/stat.ts'

/** A file and its state when it was read. Equal stamps mean that the file is unchanged. */
export interface FileStamp {
  /** Path, as messages show it. */
  readonly file: string
  readonly stamp: string
}

/** A master file in memory. $INCLUDE paths are relative to the file's directory. */
export interface ZoneText extends FileStamp {
  readonly text: Buffer
}

/** Maximum size of a file, and of a zone with all included files: about ten million records. */
export const ZONE_OCTETS_MAX = 512 * 1024 * 1024
/** How often a file is read that changes meanwhile. */
const READS_MAX = 3

/**
 * Reads a whole regular file of at most `octetsMax`. Throws InputError at `position` for anything
 * else: a device or pipe might never end. Text that is read while the file is written may be part of a zone that looks
 * whole, so a file that does not stop to change is an error too.
 */
export function readZoneText(
  path: string,
  octetsMax: number = ZONE_OCTETS_MAX,
  position: Position | undefined = { file: path, line: 1 },
): ZoneText {
  // O_NONBLOCK: opening a pipe would wait for its writer.
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (cause) {
    throw new InputError(position, `open ${path}: ${reason(cause)}`, cause)
  }
  try {
    return readOpen(fd, path, octetsMax, position)
  } finally {
    closeSync(fd)
  }
}

function readOpen(
  fd: number,
  path: string,
  octetsMax: number,
  position: Position | undefined,
): ZoneText {
  let stat = fstatSync(fd)
  for (let reads = 0; reads < READS_MAX; reads++) {
    if (!stat.isFile()) throw new InputError(position, `${path} is not a regular file`)
    if (stat.size > octetsMax) {
      const message = `${path} is larger than the ${octetsMax} octets left for this zone; split it`
      throw new InputError(position, message)
    }
    const text = readStart(fd, stat.size)
    const stamp = printStamp(stat)
    stat = fstatSync(fd)
    if (printStamp(stat) === stamp) return { file: path, text, stamp }
  }
  const fix = 'write a new file and rename it'
  throw new InputError(position, `${path} changes while it is read; ${fix}`)
}

/** Returns the first `octetsMax` octets of the file, or all if it is shorter. */
function readStart(fd: number, octetsMax: number): Buffer {
  const text = Buffer.allocUnsafe(octetsMax)
  let octets = 0
  while (octets < octetsMax) {
    const read = readSync(fd, text, octets, octetsMax - octets, octets)
    if (read === 0) break
    octets += read
  }
  return text.subarray(0, octets)
}

/** Returns a file's identity, size and times as one string. */
function printStamp(stat: { ino: number; size: number; mtimeMs: number; ctimeMs: number }): string {
  return `${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`
}

/** True if a file changed since it was stamped; an inaccessible file has stamp ''. */
export function hasChanged(was: FileStamp): boolean {
  const stat = statIfAny(was.file)
  return (stat === undefined ? '' : printStamp(stat)) !== was.stamp
}

/** True if the files had different sizes when they were stamped, and so have different contents. */
export function hasOtherSize(one: FileStamp, other: FileStamp): boolean {
  return one.stamp.split(':')[1] !== other.stamp.split(':')[1]
}

/** Returns the operating system's message for a failed file operation. */
export function reason(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : ''
  if (code === 'ENOENT') return 'no such file or directory'
  if (code === 'EACCES') return 'permission denied'
  return cause instanceof Error ? cause.message : String(cause)
}
