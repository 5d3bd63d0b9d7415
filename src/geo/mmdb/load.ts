import { closeSync, constants, fstatSync, openSync, read, readSync, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import type { InputError } from '../../base/errors.ts'
import { allocatePages } from '../../base/pages.ts'
import type { DatabaseImage } from './database.ts'
import { mmdbFault } from './fault.ts'

/** Maximum size of a database in memory; GeoIP2 Enterprise has about 0.5 GB. */
const FILE_OCTETS_MAX = 1024 * 1024 * 1024

const readLater = promisify(read)

/** Distinguishes versions of a file without reading it. */
export interface FileVersion {
  /** The clock of a file system moves in steps of some milliseconds, so a file can have the time of the one before. */
  readonly inode: number
  readonly mtimeMs: number
  readonly octets: number
}

interface LoadedFile {
  readonly image: DatabaseImage
  readonly version: FileVersion
}

export function isSameVersion(a: FileVersion, b: FileVersion): boolean {
  return a.inode === b.inode && a.mtimeMs === b.mtimeMs && a.octets === b.octets
}

/** Returns the current version of a file. Rejects with the system's error. */
export async function fileVersion(file: string): Promise<FileVersion> {
  return versionOf(await stat(file))
}

function versionOf(stats: Stats): FileVersion {
  return { inode: stats.ino, mtimeMs: stats.mtimeMs, octets: stats.size }
}

/** Returns the path of the CC0 country database that Sextant includes. */
export function bundledDatabasePath(): string {
  return createRequire(import.meta.url).resolve(
    '@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb',
  )
}

/**
 * One version of a database file, held open, so that threads can read it again after its path has
 * changed. Closed when every holder has released it.
 */
export class OpenFile {
  readonly source: DatabaseSource
  #holders = 1

  /** Throws InputError. */
  constructor(file: string) {
    // Without O_NONBLOCK, opening a FIFO would wait for its writer.
    const fd = orFault(file, () => openSync(file, constants.O_RDONLY | constants.O_NONBLOCK))
    const stats = fstatSync(fd)
    this.source = { file, fd, version: versionOf(stats) }
    if (stats.isFile()) return
    this.release()
    throw mmdbFault(file, 'is not a regular file')
  }

  hold(): this {
    this.#holders++
    return this
  }

  release(): void {
    this.#holders--
    if (this.#holders === 0) closeSync(this.source.fd)
  }
}

/** The data that a thread needs to read a file that another thread opened. Plain data. */
export interface DatabaseSource {
  /** Path, for messages. */
  readonly file: string
  /** Open while the caller holds the file: see `OpenFile.hold`. */
  readonly fd: number
  readonly version: FileVersion
}

/**
 * Reads a whole open file; `isShared`: into shared memory. Blocks the caller's thread. Throws
 * InputError, also if the file was written to after it was opened, because its content is then no
 * longer verified.
 */
export function readSource(source: DatabaseSource, isShared: boolean): DatabaseImage {
  const { file, fd } = source
  const bytes = allocate(source, isShared)
  let filled = 0
  while (filled < bytes.length) {
    const left = bytes.length - filled
    const octets = orFault(file, () => readSync(fd, bytes, filled, left, filled))
    if (octets === 0) break
    filled += octets
  }
  return complete(source, bytes, filled)
}

/** Does the same as `readSource`, into shared memory, without blocking the caller's thread. */
export async function readSourceLater(source: DatabaseSource): Promise<DatabaseImage> {
  const { file, fd } = source
  const bytes = allocate(source, true)
  let filled = 0
  while (filled < bytes.length) {
    const reading = readLater(fd, bytes, filled, bytes.length - filled, filled)
    const { bytesRead } = await reading.catch((error: unknown) => {
      throw unreadable(file, error)
    })
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return complete(source, bytes, filled)
}

/** Throws InputError if the file is too large. */
function allocate({ file, version }: DatabaseSource, isShared: boolean): Uint8Array {
  const size = version.octets
  if (size > FILE_OCTETS_MAX) throw mmdbFault(file, `is larger than ${FILE_OCTETS_MAX} octets`)
  return new Uint8Array(isShared ? new SharedArrayBuffer(size) : allocatePages(size), 0, size)
}

/** Throws InputError if the file was written to. */
function complete(
  { file, fd, version }: DatabaseSource,
  bytes: Uint8Array,
  filled: number,
): DatabaseImage {
  if (filled < bytes.length || !isSameVersion(versionOf(fstatSync(fd)), version)) {
    throw mmdbFault(file, 'was overwritten while in use: write a new file and rename it instead')
  }
  return { file, bytes, ignoreSpecial: file === bundledDatabasePath() }
}

/** Opens, reads and closes a file. Throws InputError. */
export function loadFileSync(file: string): LoadedFile {
  const open = new OpenFile(file)
  try {
    const { source } = open
    return { image: readSource(source, false), version: source.version }
  } finally {
    open.release()
  }
}

function orFault<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw unreadable(file, error)
  }
}

function unreadable(file: string, cause: unknown): InputError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return mmdbFault(file, `cannot be read: ${reason}`, cause)
}
